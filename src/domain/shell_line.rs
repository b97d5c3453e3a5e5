//! What a line for a shell may run, as far as rules may believe it.
//!
//! There are two readings, and each errs on the side where an error is harmless. [`plain_words`] serves rules that allow:
//! it knows one form of line, a single command whose every word stands there to the letter, and answers nothing for any
//! other. [`WideLine`] serves rules that refuse or ask: it finds every place at which a command may begin, also behind
//! another program, in a text in quotation marks and in what is put together only when the line runs.
//!
//! Neither reading follows what a program does: aliases, scripts, makefiles and a program's own settings stay unseen.

use provost_base::limits::{CALL_WORDS_FOLLOWED_MAX, CALL_WORDS_MAX};

/// The words of a line that is a single plain command; `None` for every other line.
///
/// A plain word has letters, digits and `_-./:,+@=`, or stands in quotation marks within which nothing has a meaning of
/// its own. So no variable, no output of a command, no pattern, no redirection, no second command, no comment, no escape
/// and no setting of a variable is in such a line.
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.chars().peekable();
    loop {
        while rest.next_if(|it| is_blank(*it)).is_some() {}
        if rest.peek().is_none() {
            break;
        }
        words.push(plain_word(&mut rest)?);
    }
    is_program(words.first()?).then_some(words)
}

/// The words of a command that a host starts without a shell; `None` if the first is no plain name of a program.
pub fn plain_list(words: &[String]) -> Option<Vec<String>> {
    let is_plain = |it: &String| !it.chars().any(char::is_control);
    (is_program(words.first()?) && words.iter().all(is_plain)).then(|| words.to_vec())
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn plain_word(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut word = String::new();
    let mut begins = true;
    while let Some(c) = rest.next_if(|it| !is_blank(*it)) {
        match c {
            '\'' | '"' => quoted(rest, c, &mut word)?,
            '=' if begins => return None,
            c if c.is_alphanumeric() || "_-./:,+@=".contains(c) => word.push(c),
            _ => return None,
        }
        begins = false;
    }
    Some(word)
}

/// Takes what stands up to the closing mark.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, mark: char, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            c if c == mark => return Some(()),
            c if c.is_control() || (mark == '"' && "$`\\!".contains(c)) => return None,
            c => word.push(c),
        }
    }
}

/// Whether a word names a program, and is no setting, option or number of a job.
fn is_program(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    word.chars().all(is_part) && word.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./".contains(c))
}

/// A word of a line, wherever it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineWord {
    /// The word without quotation marks and escapes.
    pub text: String,
    /// Whether it may be anything else, and any number of words, once the line runs.
    pub open: bool,
}

impl LineWord {
    /// The program's name if this word starts one: without its folder.
    pub fn program(&self) -> &str {
        let name = self.text.rsplit(['/', '\\']).next().unwrap_or_default();
        name.strip_suffix(".exe").unwrap_or(name)
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|it| it.eq_ignore_ascii_case(self.program()))
    }

    fn is_setting(&self) -> bool {
        let name = self.text.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    }
}

/// Words that stand one after the other without a sign that ends a command between them.
#[derive(Clone, Debug, Default)]
struct Stretch {
    words: Vec<LineWord>,
    /// Whether it stands in a text in quotation marks that began in the stretch before.
    within: bool,
}

impl Stretch {
    /// Where its program stands, behind settings of variables.
    fn program_at(&self) -> usize {
        self.words.iter().take_while(|it| !it.open && it.is_setting()).count()
    }

    /// Whether its program only reads its words, and runs none of them.
    fn only_reads(&self) -> bool {
        let words = self.words.get(self.program_at()..).unwrap_or_default();
        let [first, rest @ ..] = words else { return false };
        let verb = rest.first().filter(|it| !it.open).map_or("", |it| it.text.as_str());
        !first.open && (first.is_one_of(READERS) || (first.program() == "git" && GIT_READERS.contains(&verb)))
    }
}

/// Words of a shell behind which a command begins.
const KEYWORDS: &[&str] = &["if", "then", "elif", "else", "while", "until", "do", "{", "!"];

/// Programs that run another one, which they are given by its name.
const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "su",
    "runuser",
    "env",
    "command",
    "builtin",
    "exec",
    "eval",
    "time",
    "timeout",
    "nice",
    "ionice",
    "nohup",
    "setsid",
    "stdbuf",
    "xargs",
    "parallel",
    "watch",
    "flock",
    "strace",
    "busybox",
    "npx",
    "ssh",
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "ash",
    "fish",
    "nu",
    "pwsh",
    "powershell",
    "cmd",
];

/// Programs that run text which another command of the line may give them.
const INTERPRETERS: &[&str] = &[
    "python", "python2", "python3", "pypy", "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk",
    "source", ".", "tee",
];

/// Programs that run none of their words.
const READERS: &[&str] = &[
    "echo", "printf", "grep", "egrep", "fgrep", "cat", "ls", "head", "tail", "wc", "which", "type", "cd",
    "test", "[",
];

/// Commands of git that run none of their words.
const GIT_READERS: &[&str] = &["commit", "log", "show", "add", "status"];

/// A line with every place at which a command may begin.
#[derive(Clone, Debug)]
pub struct WideLine {
    stretches: Vec<Stretch>,
    words: usize,
}

impl WideLine {
    /// Reads a line; what a shell would refuse is read as far as it goes.
    pub fn read(line: &str) -> Self {
        let mut reader = Reader::default();
        reader.line(line);
        reader.end_stretch(false);
        let words = reader.done.iter().map(|it| it.words.len()).sum();
        Self { stretches: reader.done, words }
    }

    /// The words of a command that a host starts without a shell; texts among them may be lines for one.
    pub fn of_list(words: &[String]) -> Self {
        let quoted = words.iter().map(|it| format!("'{}' ", it.replace('\'', " "))).collect::<String>();
        Self::read(&quoted)
    }

    /// Whether the line has more words than are looked at, so that it may run anything.
    pub fn is_too_long(&self) -> bool {
        self.words > CALL_WORDS_MAX
    }

    /// Every word.
    pub fn words(&self) -> impl Iterator<Item = &LineWord> {
        self.stretches.iter().flat_map(|it| &it.words)
    }

    /// The words of each command that the line may run, its program first. Behind the end of a command may stand words of
    /// another one.
    pub fn commands(&self) -> Vec<&[LineWord]> {
        let runs_text = self.words().any(|it| it.is_one_of(WRAPPERS) || it.is_one_of(INTERPRETERS))
            || self
                .stretches
                .iter()
                .any(|it| !it.within && it.words.get(it.program_at()).is_some_and(|it| it.open));
        let mut all = Vec::new();
        let mut reads = false;
        for stretch in &self.stretches {
            if !stretch.within {
                reads = !runs_text && stretch.only_reads();
            }
            let (program, mut wrapped) = (stretch.program_at(), false);
            for (at, word) in stretch.words.iter().enumerate() {
                let begins = match at == program {
                    true => !(stretch.within && reads),
                    false => !reads && (!word.open || wrapped),
                };
                wrapped |= !word.open && word.is_one_of(WRAPPERS);
                if begins {
                    let end = stretch.words.len().min(at + CALL_WORDS_FOLLOWED_MAX);
                    all.push(&stretch.words[at..end]);
                }
            }
        }
        all
    }
}

/// Cuts a line into stretches.
#[derive(Default)]
struct Reader {
    done: Vec<Stretch>,
    stretch: Stretch,
    text: String,
    open: bool,
    /// Whether a word has begun: one in quotation marks may be empty.
    begun: bool,
    /// Whether the word has something in quotation marks, and so is no word of the shell's own.
    quoted: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let mut rest = line.chars().peekable();
        let mut mark = None;
        while let Some(c) = rest.next() {
            match (mark, c) {
                (None, '\'' | '"') => {
                    mark = Some(c);
                    (self.begun, self.quoted) = (true, true);
                }
                (Some(end), c) if c == end => mark = None,
                // Marks within marks are those of a text that is a line of its own.
                (Some(_), '\'' | '"') => {}
                (_, '\\') => {
                    if let Some(c) = rest.next().filter(|it| !matches!(it, '\n' | '\'' | '"')) {
                        self.push(c);
                    }
                }
                (None | Some('"'), '`') => self.output(),
                (None | Some('"'), '$') if rest.next_if_eq(&'(').is_some() => self.output(),
                (None | Some('"'), '$') => self.push_open('$'),
                (None, '*' | '?' | '[' | '{' | '}') => self.push_open(c),
                (_, '\n' | '\r' | ';' | '|' | '&' | '(' | ')') => self.end_stretch(mark.is_some()),
                (_, '<' | '>') => self.end_word(),
                (_, c) if c.is_whitespace() => self.end_word(),
                (_, c) => self.push(c),
            }
        }
    }

    fn push(&mut self, c: char) {
        self.text.push(c);
        self.begun = true;
    }

    fn push_open(&mut self, c: char) {
        self.open = true;
        self.push(c);
    }

    /// What a command prints stands here, and the command comes next.
    fn output(&mut self) {
        (self.open, self.begun) = (true, true);
        self.end_stretch(false);
    }

    fn end_word(&mut self) {
        let (text, begun) = (std::mem::take(&mut self.text), std::mem::take(&mut self.begun));
        let (open, quoted) = (std::mem::take(&mut self.open), std::mem::take(&mut self.quoted));
        if !begun {
            return;
        }
        if self.stretch.words.is_empty() && !quoted && KEYWORDS.contains(&text.as_str()) {
            return;
        }
        // Brackets by themselves are words of the shell's own.
        let open = open && !matches!(text.as_str(), "{" | "}" | "[" | "[[");
        self.stretch.words.push(LineWord { text, open });
    }

    /// Ends the stretch; the next one stands `within` quotation marks.
    fn end_stretch(&mut self, within: bool) {
        self.end_word();
        let next = Stretch { words: Vec::new(), within };
        let done = std::mem::replace(&mut self.stretch, next);
        if !done.words.is_empty() {
            self.done.push(done);
        }
    }
}

//! What a line for a shell may run, as far as rules may believe it.
//!
//! There are two readings, and each errs on the side where an error is harmless. [`plain_words`] serves rules that allow:
//! it knows one form of line, a single command whose every word stands there to the letter, and answers nothing for any
//! other. [`WideLine`] serves rules that refuse or ask: it finds every place at which a command may begin, also behind
//! another program, in a text in quotation marks and in what is put together only when the line runs.
//!
//! Neither reading follows what a program does: aliases, scripts, makefiles and a program's own settings stay unseen.

use std::rc::Rc;

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
    /// Whether it is no word of its own: the target of a redirection, or what follows a blank within quotation marks.
    aside: bool,
    /// Whether a text within quotation marks begins with it, so that it names a program where a shell is given that text.
    head: bool,
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

    /// Whether it is an interpreter, with or without a version at the end of its name.
    fn is_interpreter(&self) -> bool {
        let name = self.program().to_ascii_lowercase();
        INTERPRETERS.contains(&name.as_str())
            || INTERPRETERS_BEGIN.iter().any(|it| name.starts_with(it))
            || name.ends_with("awk")
    }

    /// The words that stand behind signs within this one by which a text tells another program what to run.
    fn parts(&self) -> Vec<Self> {
        let parts = self.text.split(['=', '!', '[', ']', ',']).skip(1).filter(|it| !it.is_empty());
        parts.map(|it| Self { text: it.to_owned(), open: self.open, aside: false, head: false }).collect()
    }

    /// The word without escapes, if it has some: what a shell makes of it that is given it as a text.
    pub fn unescaped(&self) -> Option<Self> {
        let has_some = self.text.contains('\\');
        has_some.then(|| Self { text: self.text.replace('\\', ""), ..self.clone() })
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
    /// Where its program stands, behind settings of variables and redirections.
    fn program_at(&self) -> usize {
        self.words.iter().take_while(|it| it.aside || (!it.open && it.is_setting())).count()
    }

    /// Whether its program, with nothing before it, only reads its words, and runs none of them.
    fn only_reads(&self) -> bool {
        if self.words.iter().all(|it| it.aside) {
            return true;
        }
        let [first, rest @ ..] = &self.words[..] else { return false };
        if first.aside {
            return false;
        }
        let verb = rest.first().filter(|it| !it.open).map_or("", |it| it.text.as_str());
        if first.is_one_of(WITH_SUBSCRIPTS) && rest.iter().any(|it| it.text.contains('[')) {
            return false;
        }
        !first.open && (first.is_one_of(READERS) || (first.program() == "git" && GIT_READERS.contains(&verb)))
    }
}

/// Words of a shell behind which a command begins.
const KEYWORDS: &[&str] = &["if", "then", "elif", "else", "while", "until", "do", "{", "!"];

/// Programs that run a text which they are given as a line of their own.
const SHELLS_OF_TEXTS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash", "eval", "su"];

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
const INTERPRETERS: &[&str] = &["deno", "bun", "source", ".", "tee"];

/// The same, by how their names begin: a version may follow.
const INTERPRETERS_BEGIN: &[&str] = &["python", "pypy", "perl", "ruby", "node", "php", "lua"];

/// Programs that run none of their words.
const READERS: &[&str] = &[
    "echo", "printf", "grep", "egrep", "fgrep", "cat", "ls", "head", "tail", "wc", "which", "type", "cd",
    "test", "[",
];

/// Those of them that evaluate the subscript of a variable that they are given, and run the commands in it.
const WITH_SUBSCRIPTS: &[&str] = &["test", "[", "printf"];

/// Commands of git that run none of their words.
const GIT_READERS: &[&str] = &["commit", "log", "show", "add", "status"];

/// A line with every place at which a command may begin.
#[derive(Clone, Debug)]
pub struct WideLine {
    stretches: Vec<Stretch>,
    /// The stretches of the line without its quotation marks and comments, if it may mean something else to its shell than it
    /// does here.
    bare: Vec<Stretch>,
    words: usize,
}

impl WideLine {
    /// Reads a line; what a shell would refuse is read as far as it goes.
    pub fn read(line: &str) -> Self {
        let mut reader = Reader::default();
        reader.line(line);
        reader.open_programs_of_texts();
        let words = reader.done.iter().map(|it| it.words.len()).sum();
        let mut bare = Reader { bare: true, ..Reader::default() };
        if reader.tangled && words <= CALL_WORDS_MAX {
            bare.line(line);
        }
        Self { stretches: reader.done, bare: bare.done, words }
    }

    /// The words of a command that a host starts without a shell; texts among them may be lines for one.
    pub fn of_list(words: &[String]) -> Self {
        let quoted = words.iter().map(|it| format!("'{}' ", it.replace('\'', " "))).collect::<String>();
        Self::read(&quoted)
    }

    /// A line that is known only by its beginning, so that it may run anything.
    pub fn unknown() -> Self {
        Self { stretches: Vec::new(), bare: Vec::new(), words: CALL_WORDS_MAX + 1 }
    }

    /// Whether the line has more words than are looked at, so that it may run anything.
    pub fn is_too_long(&self) -> bool {
        self.words > CALL_WORDS_MAX
    }

    /// Every word.
    pub fn words(&self) -> impl Iterator<Item = &LineWord> {
        self.stretches.iter().chain(&self.bare).flat_map(|it| &it.words)
    }

    /// The words of each command that the line may run, its program first. Behind the end of a command may stand words of
    /// another one.
    pub fn commands(&self) -> Vec<Begun<'_>> {
        let runs_text = self.words().any(|it| it.is_one_of(WRAPPERS) || it.is_interpreter());
        let mut unquoted = self.stretches.iter().filter(|it| !it.within);
        // A single command that is no reader may run what any other one is told.
        let reads = !runs_text && self.bare.is_empty() && unquoted.all(Stretch::only_reads);
        let mut all = Vec::new();
        for stretch in self.stretches.iter().chain(&self.bare) {
            let (program, mut wrapped) = (stretch.program_at(), false);
            for (at, word) in stretch.words.iter().enumerate() {
                let begins = match at == program {
                    true => !(stretch.within && reads),
                    false => !reads && (!word.open || wrapped),
                };
                wrapped |= !word.open && word.is_one_of(WRAPPERS);
                if begins {
                    all.push(Begun { told: None, words: &stretch.words[at..] });
                }
                if !reads && !word.open {
                    let parts: Rc<[LineWord]> = word.parts().into();
                    let begun = (0..parts.len()).map(|from| Some((Rc::clone(&parts), from)));
                    all.extend(begun.map(|told| Begun { told, words: &stretch.words[at + 1..] }));
                }
            }
        }
        all
    }
}

/// The words behind a place at which a command may begin.
#[derive(Clone, Debug)]
pub struct Begun<'a> {
    /// Parts of the word in which it begins, and which of them is the first.
    told: Option<(Rc<[LineWord]>, usize)>,
    words: &'a [LineWord],
}

impl Begun<'_> {
    /// As many words as patterns are compared with, the program first.
    pub fn words(&self) -> impl Iterator<Item = &LineWord> {
        let told = self.told.as_ref().and_then(|(parts, from)| parts.get(*from..)).unwrap_or_default();
        told.iter().chain(self.words).take(CALL_WORDS_FOLLOWED_MAX)
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
    /// Whether a text within quotation marks begins with the word.
    head: bool,
    /// Whether what is read stands within quotation marks.
    in_text: bool,
    /// Whether the word has something in quotation marks, and so is no word of the shell's own.
    quoted: bool,
    /// Whether the word is the target of a redirection.
    target: bool,
    /// Whether the word follows a blank within quotation marks.
    follows: bool,
    /// Whether the line may mean something else to its shell: it has more lines, comments, texts for input, or something that
    /// is put together with quotation marks of its own, or a mark that does not end.
    tangled: bool,
    /// Whether quotation marks and comments have no meaning.
    bare: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let mut rest = line.chars().peekable();
        let mut mark = None;
        while let Some(c) = rest.next() {
            match (mark, c) {
                (_, '\'' | '"') if self.bare => self.begun = true,
                (None, '\'' | '"') => {
                    mark = Some(c);
                    self.head |= !self.begun;
                    (self.begun, self.quoted, self.in_text) = (true, true, true);
                }
                (Some(end), c) if c == end => (mark, self.in_text) = (None, false),
                // Marks within marks are those of a text that is a line of its own.
                (Some(_), '\'' | '"') => {}
                (None, '#') if !self.begun && !self.bare => {
                    self.tangled = true;
                    while rest.next_if(|it| *it != '\n').is_some() {}
                }
                (None | Some('"'), '\\') => {
                    if let Some(c) = rest.next().filter(|it| !matches!(it, '\n' | '\'' | '"')) {
                        self.push(c);
                    }
                }
                (None | Some('"'), '`') => self.output(),
                (None | Some('"'), '$') => {
                    self.tangled |= matches!(rest.peek(), Some('{' | '\'' | '"'));
                    match rest.next_if_eq(&'(') {
                        Some(_) => self.output(),
                        None => self.push_open('$'),
                    }
                }
                // What these stand for in a text is not known, and in most texts they stand for themselves.
                (None, '*' | '?' | '[' | '{' | '}') if self.bare => self.push(c),
                (None, '*' | '?' | '[' | '{' | '}') => self.push_open(c),
                (_, '\n' | '\r' | ';' | '|' | '&' | '(' | ')') => {
                    self.tangled |= mark.is_none() && matches!(c, '\n' | '\r') && rest.peek().is_some();
                    self.end_stretch(mark.is_some());
                }
                (None, '<' | '>') => {
                    let is_text = c == '<' && rest.peek() == Some(&'<');
                    self.tangled |= is_text;
                    self.redirected();
                    while rest.next_if(|it| matches!(it, '<' | '>' | '&' | '|')).is_some() {}
                    self.target = rest.peek() != Some(&'(');
                }
                (_, '<' | '>') => self.end_word(),
                (mark, c) if c.is_whitespace() => {
                    self.end_word();
                    self.follows = mark.is_some() && !self.stretch.within && !self.stretch.words.is_empty();
                }
                (_, c) => self.push(c),
            }
        }
        self.tangled |= mark.is_some();
        self.end_stretch(false);
    }

    /// A shell that is given a text finds the text's programs by patterns and variables, as it does outside of quotation marks.
    fn open_programs_of_texts(&mut self) {
        let mut all = self.done.iter().flat_map(|it| &it.words);
        if !all.any(|it| it.is_one_of(SHELLS_OF_TEXTS)) {
            return;
        }
        for word in self.done.iter_mut().flat_map(|it| &mut it.words) {
            word.open |= word.head && word.text.contains(['*', '?', '[', '{', '$', '`']) && word.text != "[";
        }
    }

    fn push(&mut self, c: char) {
        self.head |= !self.begun && self.in_text && self.stretch.words.is_empty();
        self.text.push(c);
        self.begun = true;
    }

    fn push_open(&mut self, c: char) {
        self.open = true;
        self.push(c);
    }

    /// What a command prints stands here, and the command comes next.
    fn output(&mut self) {
        (self.open, self.begun, self.tangled) = (true, true, true);
        self.end_stretch(false);
    }

    /// Ends the word before a redirection; a number there is no word.
    fn redirected(&mut self) {
        if !self.quoted && !self.text.is_empty() && self.text.chars().all(|it| it.is_ascii_digit()) {
            self.text.clear();
            self.begun = false;
        }
        self.end_word();
    }

    fn end_word(&mut self) {
        if !self.begun {
            return;
        }
        self.begun = false;
        let text = std::mem::take(&mut self.text);
        let (open, quoted) = (std::mem::take(&mut self.open), std::mem::take(&mut self.quoted));
        let aside = std::mem::take(&mut self.target) | std::mem::take(&mut self.follows);
        if self.stretch.words.is_empty() && !quoted && KEYWORDS.contains(&text.as_str()) {
            return;
        }
        // Brackets by themselves are words of the shell's own.
        let open = open && !matches!(text.as_str(), "{" | "}" | "[" | "[[");
        let head = std::mem::take(&mut self.head);
        self.stretch.words.push(LineWord { text, open, aside, head });
    }

    /// Ends the stretch; the next one stands `within` quotation marks.
    fn end_stretch(&mut self, within: bool) {
        self.end_word();
        (self.target, self.follows) = (false, false);
        let next = Stretch { words: Vec::new(), within };
        let done = std::mem::replace(&mut self.stretch, next);
        if !done.words.is_empty() {
            self.done.push(done);
        }
    }
}

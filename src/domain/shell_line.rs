//! The commands that a line for a shell may run, as far as rules can rely on it.
//!
//! There are two readings, and each errs on the side where an error is harmless. [`plain_words`] serves rules that allow: it
//! knows one form of line, a single command whose every word is literal, and returns nothing for any other. [`WideLine`]
//! serves rules that deny or ask: it finds every place at which a command may begin, even behind another program, in a text
//! in quotation marks, and in parts that are put together only when the line runs.
//!
//! Neither reading follows the action of a program: aliases, scripts, makefiles and a program's own settings stay unseen.

use std::rc::Rc;

use provost_base::limits::{CALL_WORDS_FOLLOWED_MAX, CALL_WORDS_MAX};

/// Returns the words of a line that is a single plain command; `None` for every other line.
///
/// A plain word has letters, digits and `_-./:,+@=`, or is in quotation marks, without any character that has a
/// meaning within them. So such a line has no variable, output of a command, pattern, redirection, second command,
/// comment, escape or setting of a variable.
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

/// Returns the words of a command that a host starts without a shell; `None` if the first is not a plain name of a program.
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

/// Takes the text up to the closing mark.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, mark: char, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            c if c == mark => return Some(()),
            c if c.is_control() || (mark == '"' && "$`\\!".contains(c)) => return None,
            c => word.push(c),
        }
    }
}

/// Checks whether a word names a program, and is not a setting, an option or the number of a job.
fn is_program(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    word.chars().all(is_part) && word.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./".contains(c))
}

/// A word of a line, at any place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineWord {
    /// The word without quotation marks and escapes.
    pub text: String,
    /// Whether the word may become anything else, and any number of words, once the line runs.
    pub open: bool,
    /// Whether it is not a word of its own: the target of a redirection, or text after a blank within quotation marks.
    aside: bool,
    /// Whether a text within quotation marks begins with it, so that it names a program if a shell gets that text.
    head: bool,
}

impl LineWord {
    /// Returns the program's name, without its folder, if this word starts a program.
    pub fn program(&self) -> &str {
        let name = self.text.rsplit(['/', '\\']).next().unwrap_or_default();
        name.strip_suffix(".exe").unwrap_or(name)
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|it| it.eq_ignore_ascii_case(self.program()))
    }

    /// Checks whether it is an interpreter, with or without a version at the end of its name.
    fn is_interpreter(&self) -> bool {
        let name = self.program().to_ascii_lowercase();
        INTERPRETERS.contains(&name.as_str())
            || INTERPRETERS_BEGIN.iter().any(|it| name.starts_with(it))
            || name.ends_with("awk")
    }

    /// Returns the words within this one behind signs by which a text tells another program which command to run.
    fn parts(&self) -> Vec<Self> {
        let parts = self.text.split(['=', '!', '[', ']', ',']).skip(1).filter(|it| !it.is_empty());
        parts.map(|it| Self { text: it.to_owned(), open: self.open, aside: false, head: false }).collect()
    }

    /// Returns the word without escapes, if it has any: the word that a shell makes of it when the shell gets it in a text.
    pub fn unescaped(&self) -> Option<Self> {
        let has_some = self.text.contains('\\');
        has_some.then(|| Self { text: self.text.replace('\\', ""), ..self.clone() })
    }

    fn is_setting(&self) -> bool {
        let name = self.text.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    }
}

/// Consecutive words without a sign between them that ends a command.
#[derive(Clone, Debug, Default)]
struct Stretch {
    words: Vec<LineWord>,
    /// Whether it is in a text in quotation marks that began in the stretch before.
    within: bool,
}

impl Stretch {
    /// Returns the index of its program, behind settings of variables and redirections.
    fn program_at(&self) -> usize {
        self.words.iter().take_while(|it| it.aside || (!it.open && it.is_setting())).count()
    }

    /// Checks whether its program, with nothing before it, only reads its words, and runs none of them.
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

/// Words of a shell after which a command begins.
const KEYWORDS: &[&str] = &["if", "then", "elif", "else", "while", "until", "do", "{", "!"];

/// Programs that run a text from their arguments as a line of its own.
const SHELLS_OF_TEXTS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash", "eval", "su"];

/// Programs that run another program, whose name they get.
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

/// Beginnings of the names of further ones; a version may follow.
const INTERPRETERS_BEGIN: &[&str] = &["python", "pypy", "perl", "ruby", "node", "php", "lua"];

/// Programs that run none of their words.
const READERS: &[&str] = &[
    "echo", "printf", "grep", "egrep", "fgrep", "cat", "ls", "head", "tail", "wc", "which", "type", "cd",
    "test", "[",
];

/// The readers that evaluate the subscript of a variable in their arguments, and run the commands in it.
const WITH_SUBSCRIPTS: &[&str] = &["test", "[", "printf"];

/// Commands of git that run none of their words.
const GIT_READERS: &[&str] = &["commit", "log", "show", "add", "status"];

/// A line with every place at which a command may begin.
#[derive(Clone, Debug)]
pub struct WideLine {
    stretches: Vec<Stretch>,
    /// The stretches of the line without its quotation marks and comments, if its shell may read the line
    /// differently.
    bare: Vec<Stretch>,
    words: usize,
}

impl WideLine {
    /// Reads a line; a line that a shell would refuse is read as far as possible.
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

    /// Reads the words of a command that a host starts without a shell; texts among them may be lines for one.
    pub fn of_list(words: &[String]) -> Self {
        let quoted = words.iter().map(|it| format!("'{}' ", it.replace('\'', " "))).collect::<String>();
        Self::read(&quoted)
    }

    /// Returns a line whose beginning alone is known, so that it may run anything.
    pub fn unknown() -> Self {
        Self { stretches: Vec::new(), bare: Vec::new(), words: CALL_WORDS_MAX + 1 }
    }

    /// Checks whether the line has more words than are examined, so that it may run anything.
    pub fn is_too_long(&self) -> bool {
        self.words > CALL_WORDS_MAX
    }

    /// Returns every word.
    pub fn words(&self) -> impl Iterator<Item = &LineWord> {
        self.stretches.iter().chain(&self.bare).flat_map(|it| &it.words)
    }

    /// Returns the words of each command that the line may run, its program first. After the end of a command,
    /// words of another one may follow.
    pub fn commands(&self) -> Vec<Begun<'_>> {
        let runs_text = self.words().any(|it| it.is_one_of(WRAPPERS) || it.is_interpreter());
        let mut unquoted = self.stretches.iter().filter(|it| !it.within);
        // A single command that is not a reader may run text from any other one.
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

/// The words after a place at which a command may begin.
#[derive(Clone, Debug)]
pub struct Begun<'a> {
    /// Parts of the word in which the command begins, and the index of the first one that counts.
    told: Option<(Rc<[LineWord]>, usize)>,
    words: &'a [LineWord],
}

impl Begun<'_> {
    /// Returns the words, program first, up to the number with which patterns are compared.
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
    /// Whether a word has begun: a word in quotation marks may be empty.
    begun: bool,
    /// Whether a text within quotation marks begins with the word.
    head: bool,
    /// Whether the present character is within quotation marks.
    in_text: bool,
    /// Whether the word has a part in quotation marks, and so is not a word of the shell itself.
    quoted: bool,
    /// Whether the word is the target of a redirection.
    target: bool,
    /// Whether the word follows a blank within quotation marks.
    follows: bool,
    /// Whether the shell may read the line differently: it has several lines, comments, texts for input, a part
    /// that is put together with quotation marks of its own, or a mark without an end.
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
                // Marks within marks belong to a text that is a line of its own.
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
                // The meaning of these characters in a text is not known; in most texts they stand for themselves.
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

    /// Marks words of texts as open if a shell gets a text: it finds the text's programs by patterns and variables,
    /// as outside of quotation marks.
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

    /// Handles the output of a command, which becomes a part of the word; the command itself comes next.
    fn output(&mut self) {
        (self.open, self.begun, self.tangled) = (true, true, true);
        self.end_stretch(false);
    }

    /// Ends the word before a redirection; a number there is not a word.
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
        // Single brackets are words of the shell itself.
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

//! Patterns over the commands of hosts' tools.
//!
//! A rule that allows is met by a single plain command that a pattern describes from its first word to its last. Any other
//! rule is met as soon as the words of a pattern may begin a command anywhere in the line. So what cannot be read is never
//! allowed, and is refused by each rule that refuses commands.

use serde::Serialize;

use super::file::Ruling;
use super::form::{Form, texts};
use super::glob::NameGlobs;
use super::reader::{Notes, Section};
use provost_base::limits::COMMAND_PATTERN_WORDS_MAX;
use provost_domain::ToolCommand;
use provost_domain::shell_line::LineWord;

/// Patterns over a command, word by word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Commands(pub Vec<Box<str>>);

/// A command as a rule examines it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commanded<'a> {
    pub(super) command: &'a ToolCommand,
    /// Whether it would run in a folder of the caller's work tree.
    pub(super) inside: bool,
}

impl Form for Commands {
    type Found<'a> = Commanded<'a>;
    type Test = (Vec<Pattern>, Ruling);

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        texts(notes, from, key, pattern).map(Self)
    }

    fn text(&self) -> String {
        self.0.join(", ")
    }

    fn compile(&self, ruling: Ruling) -> Result<(Vec<Pattern>, Ruling), String> {
        let patterns: Result<Vec<Pattern>, String> =
            self.0.iter().map(|it| Pattern::new(it, ruling)).collect();
        Ok((patterns?, ruling))
    }

    fn holds((patterns, ruling): &(Vec<Pattern>, Ruling), found: Commanded<'_>) -> bool {
        match ruling {
            Ruling::Allow => {
                let plain = found.command.plain.as_deref().filter(|_| found.inside);
                plain.is_some_and(|words| patterns.iter().any(|it| it.is(words)))
            }
            Ruling::Approve | Ruling::Deny => {
                let wide = &found.command.wide;
                wide.is_too_long()
                    || wide.commands().iter().any(|words| patterns.iter().any(|it| it.may_be(words)))
            }
        }
    }

    fn shown(found: Commanded<'_>) -> String {
        let outside = if found.inside { "" } else { ", in a folder outside of the work tree" };
        let text = &found.command.text;
        match found.command.plain {
            Some(_) => format!("{text}{outside}"),
            None => format!("{text}, which is no single plain command{outside}"),
        }
    }
}

/// Checks a pattern and brings it to one spelling.
fn pattern(text: &str) -> Result<Box<str>, String> {
    let words: Vec<&str> = text.split([' ', '\t']).filter(|it| !it.is_empty()).collect();
    let Some((last, before)) = words.split_last() else { return Err("is empty".to_owned()) };
    if words.len() > COMMAND_PATTERN_WORDS_MAX {
        return Err(format!("`{text}` has more than {COMMAND_PATTERN_WORDS_MAX} words"));
    }
    if let Some(c) = text.chars().find(|c| (c.is_control() && *c != '\t') || "'\"`$\\;|&<>()".contains(*c)) {
        return Err(format!(
            "`{text}`: `{}` has no place here; write the words as the program gets them",
            c.escape_debug()
        ));
    }
    if before.iter().any(|it| it.contains("**")) || (last.contains("**") && *last != "**") {
        return Err(format!(
            "`{text}`: `**` stands alone and last, for any number of words; `*` is any text in one word"
        ));
    }
    if words[0] == "**" {
        return Err(format!("`{text}` names no program"));
    }
    Ok(words.join(" ").into())
}

/// A pattern, compiled.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    program: NameGlobs,
    words: Vec<(NameGlobs, bool)>,
    /// Whether any number of words may follow.
    open: bool,
}

impl Pattern {
    fn new(text: &str, ruling: Ruling) -> Result<Self, String> {
        let mut words = text.split(' ');
        let program = words.next().unwrap_or_default();
        if ruling == Ruling::Allow && program.contains('*') {
            return Err(format!("`{text}`: a rule that allows names the program without `*`"));
        }
        let (open, words): (Vec<&str>, Vec<&str>) = words.partition(|it| *it == "**");
        let glob = |it: &str| NameGlobs::new(&[it.into()]);
        let program = match ruling {
            Ruling::Allow => glob(program)?,
            // The name by which a file system that does not tell letters apart finds it.
            Ruling::Approve | Ruling::Deny => glob(&program.to_ascii_lowercase())?,
        };
        let words = words.into_iter().map(|it| Ok((glob(it)?, it.starts_with('*'))));
        Ok(Self { program, words: words.collect::<Result<_, String>>()?, open: !open.is_empty() })
    }

    /// Whether this is the command, from its first word to its last. A pattern that begins with a star stands for no option:
    /// with options many programs run others.
    fn is(&self, words: &[String]) -> bool {
        let Some((program, words)) = words.split_first() else { return false };
        let (listed, more) = words.split_at(words.len().min(self.words.len()));
        let is_option = |it: &String| it.starts_with('-');
        self.program.matches(program)
            && listed.len() == self.words.len()
            && listed
                .iter()
                .zip(&self.words)
                .all(|(word, (glob, starred))| glob.matches(word) && !(*starred && is_option(word)))
            && (more.is_empty() || (self.open && !more.iter().any(is_option)))
    }

    /// Whether a command that begins with these words may be it: options, each with a word behind it, may stand between.
    fn may_be(&self, words: &[LineWord]) -> bool {
        let Some((program, words)) = words.split_first() else { return false };
        if program.open {
            return true;
        }
        let named = program.program().to_ascii_lowercase();
        if !self.program.matches(&named) && !self.program.matches(&program.text.to_ascii_lowercase()) {
            return false;
        }
        let mut reached = vec![false; words.len() + 3];
        reached[0] = true;
        for (glob, _) in &self.words {
            let mut next = vec![false; words.len() + 3];
            for (at, word) in words.iter().enumerate() {
                if !reached[at] {
                    continue;
                }
                if word.open {
                    return true;
                }
                next[at + 1] |= glob.matches(&word.text);
                if word.text.starts_with('-') {
                    (reached[at + 1], reached[at + 2]) = (true, true);
                }
            }
            reached = next;
        }
        reached.contains(&true)
    }
}

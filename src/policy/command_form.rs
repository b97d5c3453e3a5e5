//! Patterns over the commands of hosts' tools.
//!
//! A rule that allows matches a single plain command that a pattern describes from its first word to its last. Any
//! other rule matches as soon as the words of a pattern may begin a command anywhere in the line. So a line that
//! cannot be read is never allowed, and is refused by each rule that refuses commands.

use serde::Serialize;

use super::file::Ruling;
use super::form::{Form, texts};
use super::glob::NameGlobs;
use super::reader::{Notes, Section};
use provost_base::limits::COMMAND_PATTERN_WORDS_MAX;
use provost_domain::ToolCommand;
use provost_domain::shell_line::{Begun, LineWord};

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
                    || wide.commands().iter().any(|begun| patterns.iter().any(|it| it.may_be(begun)))
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

/// A word of a pattern that has a star, as a rule that allows reads it.
#[derive(Clone, Debug)]
struct Star {
    /// The text before the first star.
    before: Box<str>,
}

impl Star {
    fn of(pattern: &str) -> Option<Self> {
        pattern.split_once('*').map(|(before, _)| Self { before: before.into() })
    }

    /// Checks whether a matching word is the pattern's own word with names in place of its stars.
    fn may_be(&self, word: &str) -> bool {
        let rest = word.get(self.before.len()..).unwrap_or_default();
        match &*self.before {
            "" => is_name(word),
            before => !climbs(word) && (before.contains('=') || !sets(word, rest)),
        }
    }
}

/// Checks whether a word is a mere name: no option, no file with more words, no command of an editor, no setting,
/// and no path out of its folder.
fn is_name(word: &str) -> bool {
    !word.starts_with(['-', '+', '@']) && !climbs(word) && !sets(word, word)
}

/// Checks whether a path leaves its folder.
fn climbs(word: &str) -> bool {
    word.split(['/', '\\', '=', ':', ',']).any(|it| it == "..")
}

/// Checks whether a word sets a value: a name, then `=` within the text that a star stands for.
fn sets(word: &str, starred: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    starred.contains('=') && name.chars().all(|it| it.is_alphanumeric() || "_-.:+".contains(it))
}

/// A pattern, compiled.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    program: NameGlobs,
    words: Vec<(NameGlobs, Option<Star>)>,
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
            // The name under which a file system that ignores case finds it.
            Ruling::Approve | Ruling::Deny => glob(&program.to_ascii_lowercase())?,
        };
        let words = words.into_iter().map(|it| Ok((glob(it)?, Star::of(it))));
        Ok(Self { program, words: words.collect::<Result<_, String>>()?, open: !open.is_empty() })
    }

    /// Checks whether this is the command, from its first word to its last. A star stands for a name, and for none
    /// of the forms by which many programs run others.
    fn is(&self, words: &[String]) -> bool {
        let Some((program, words)) = words.split_first() else { return false };
        let (listed, more) = words.split_at(words.len().min(self.words.len()));
        self.program.matches(program)
            && listed.len() == self.words.len()
            && listed.iter().zip(&self.words).all(|(word, (glob, star))| {
                glob.matches(word) && star.as_ref().is_none_or(|it| it.may_be(word))
            })
            && (more.is_empty() || (self.open && more.iter().all(|it| is_name(it))))
    }

    /// Checks whether a command that begins with these words may match: options, each with a word behind it, may
    /// stand between.
    fn may_be(&self, begun: &Begun<'_>) -> bool {
        let mut words = begun.words();
        let Some(program) = words.next() else { return false };
        if program.open {
            return true;
        }
        let is_it = |it: &LineWord| {
            self.program.matches(&it.program().to_ascii_lowercase())
                || self.program.matches(&it.text.to_ascii_lowercase())
        };
        if !is_it(program) && !program.unescaped().is_some_and(|it| is_it(&it)) {
            return false;
        }
        let words: Vec<&LineWord> = words.collect();
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
                let unescaped = || word.unescaped().is_some_and(|it| glob.matches(&it.text));
                next[at + 1] |= glob.matches(&word.text) || unescaped();
                if word.text.starts_with('-') {
                    (reached[at + 1], reached[at + 2]) = (true, true);
                }
            }
            reached = next;
        }
        reached.contains(&true)
    }
}

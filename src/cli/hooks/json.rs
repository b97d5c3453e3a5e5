//! JSON that belongs to people: read with the place of everything in it, and changed in those places alone, so that
//! comments, order and indentation of the rest stay as they are.

use std::ops::Range;

use crate::base::limits::HOOK_JSON_DEPTH_MAX;

/// Indentation where the file shows none of its own.
const INDENT: &str = "  ";

/// Something in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    /// Where it is.
    pub(super) at: Range<usize>,
    /// What it is.
    pub(super) what: What,
}

/// What a node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// `{...}`, member by member.
    Object(Vec<Member>),
    /// `[...]`.
    Array(Vec<Node>),
    /// A text, as it is meant.
    Text(String),
    /// A number, or a word.
    Other,
}

/// A member of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Member {
    /// From its name to the end of its value.
    pub(super) at: Range<usize>,
    /// Its name.
    pub(super) name: String,
    /// Its value.
    pub(super) value: Node,
}

impl Node {
    /// The member of that name.
    pub(super) fn member(&self, name: &str) -> Option<&Node> {
        let What::Object(members) = &self.what else { return None };
        members.iter().find(|it| it.name == name).map(|it| &it.value)
    }

    /// What is in a list; nothing for anything else.
    pub(super) fn items(&self) -> &[Node] {
        match &self.what {
            What::Array(items) => items,
            _ => &[],
        }
    }

    /// The text that it is.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Text(text) => Some(text),
            _ => None,
        }
    }

    fn parts(&self) -> Vec<&Range<usize>> {
        match &self.what {
            What::Object(members) => members.iter().map(|it| &it.at).collect(),
            What::Array(items) => items.iter().map(|it| &it.at).collect(),
            _ => Vec::new(),
        }
    }
}

/// Reads a text.
///
/// # Errors
/// What is wrong with it, and in which line.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let mut reader = Reader { text, at: text.len() - text.trim_start_matches('\u{feff}').len() };
    let root = reader.node(0);
    let whole = root.and_then(|root| {
        reader.skip()?;
        if reader.at == text.len() { Ok(root) } else { Err("something follows it".into()) }
    });
    whole.map_err(|why: String| {
        let line = text[..reader.at.min(text.len())].matches('\n').count() + 1;
        format!("line {line}: {why}")
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes over blanks and comments.
    fn skip(&mut self) -> Result<(), String> {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").ok_or("a comment does not end")?;
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, String> {
        if depth > HOOK_JSON_DEPTH_MAX {
            return Err("it is nested too deeply".into());
        }
        self.skip()?;
        let from = self.at;
        let what = match self.next() {
            Some(b'{') => What::Object(self.list(b'}', |it| it.named(depth))?),
            Some(b'[') => What::Array(self.list(b']', |it| it.node(depth + 1))?),
            Some(b'"') => What::Text(self.string()?),
            Some(_) => self.word()?,
            None => return Err("it ends too early".into()),
        };
        Ok(Node { at: from..self.at, what })
    }

    /// What stands between two brackets, with commas between.
    fn list<T>(
        &mut self,
        end: u8,
        mut one: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.at += 1;
        let mut found = Vec::new();
        loop {
            self.skip()?;
            if self.next() == Some(end) && found.is_empty() {
                break;
            }
            found.push(one(self)?);
            self.skip()?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(it) if it == end => break,
                _ => return Err(format!("a comma or `{}` is missing", char::from(end))),
            }
        }
        self.at += 1;
        Ok(found)
    }

    fn named(&mut self, depth: usize) -> Result<Member, String> {
        let from = self.at;
        if self.next() != Some(b'"') {
            return Err("a name in quotes is missing".into());
        }
        let name = self.string()?;
        self.skip()?;
        if self.next() != Some(b':') {
            return Err("a colon is missing".into());
        }
        self.at += 1;
        let value = self.node(depth + 1)?;
        Ok(Member { at: from..self.at, name, value })
    }

    fn string(&mut self) -> Result<String, String> {
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let len = end.ok_or("a text does not end")? + 2;
        let text =
            serde_json::from_str(&rest[..len]).map_err(|_| "a text is not as JSON has it".to_owned())?;
        self.at += len;
        Ok(text)
    }

    fn word(&mut self) -> Result<What, String> {
        let rest = &self.text[self.at..];
        let ends = |c: char| c.is_whitespace() || ",:{}[]\"/".contains(c);
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        serde_json::from_str::<serde_json::Value>(word).map_err(|_| "this is no value".to_owned())?;
        self.at += word.len();
        Ok(What::Other)
    }
}

/// Where the indentation of a line begins, if only indentation stands before `at`.
fn line_start(text: &str, at: usize) -> Option<usize> {
    let before = &text[..at];
    let start = before.trim_end_matches([' ', '\t']).len();
    (before[..start].is_empty() || before[..start].ends_with('\n')).then_some(start)
}

/// The indentation of the line in which something stands.
fn indent_of(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |it| it + 1);
    let rest = &text[line..];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

/// One step of indentation, as the file has it.
fn step<'a>(text: &'a str, root: &Node) -> &'a str {
    let first =
        root.parts().first().and_then(|it| line_start(text, it.start).map(|from| &text[from..it.start]));
    first.filter(|it| !it.is_empty()).unwrap_or(INDENT)
}

/// How lines end in it.
fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The text with one more part at the end of a list or an object of it. The part is given with two blanks a step, and
/// without indentation of its own.
pub(super) fn append(text: &str, root: &Node, into: &Node, part: &str) -> String {
    let (step, end) = (step(text, root), line_end(text));
    let outer = indent_of(text, into.at.start);
    let inner = match into.parts().last() {
        Some(last) if line_start(text, last.start).is_some() => indent_of(text, last.start).to_owned(),
        _ => format!("{outer}{step}"),
    };
    let lines = part.lines().map(|line| {
        let plain = line.trim_start_matches(INDENT);
        let deep = (line.len() - plain.len()) / INDENT.len();
        format!("{inner}{}{plain}", step.repeat(deep))
    });
    let part = lines.collect::<Vec<_>>().join(end);
    let close = into.at.end - 1;
    let Some(last) = into.parts().last().map(|it| it.end) else {
        // Comments stay; blanks go.
        let kept = text[..close].trim_end();
        return format!("{kept}{end}{part}{end}{outer}{}", &text[close..]);
    };
    let kept = &text[last..close];
    let tail = kept.trim_end();
    // On one line with what encloses it, it stays on one.
    let after = if kept.contains('\n') { kept[tail.len()..].to_owned() } else { format!("{end}{outer}") };
    format!("{},{tail}{end}{part}{after}{}", &text[..last], &text[close..])
}

/// The text without one part of a list or an object of it; comments stay.
pub(super) fn remove(text: &str, from: &Node, part: &Range<usize>) -> String {
    let parts = from.parts();
    let index = parts.iter().position(|it| *it == part);
    let (before, after) = match index {
        Some(index) => {
            (index.checked_sub(1).map(|it| parts[it].end), parts.get(index + 1).map(|it| it.start))
        }
        None => return text.to_owned(),
    };
    match (before, after) {
        (_, Some(after)) => {
            let between = &text[part.end..after];
            let comma = comma_in(between);
            let rest = format!("{}{}", between[..comma].trim_start(), between[comma + 1..].trim_start());
            format!("{}{rest}{}", &text[..part.start], &text[after..])
        }
        (Some(before), None) => {
            let between = &text[before..part.start];
            let comma = comma_in(between);
            let kept = between[comma + 1..].trim_end();
            // A comment to the end of its line must not take more along.
            let end = if kept.rsplit('\n').next().is_some_and(|it| it.contains("//")) { "\n" } else { "" };
            let after =
                if end.is_empty() { &text[part.end..] } else { text[part.end..].trim_start_matches('\n') };
            format!("{}{}{kept}{end}{after}", &text[..before], &between[..comma])
        }
        (None, None) => {
            let inside = text[from.at.start + 1..part.start].trim_end();
            let after = &text[part.end..];
            let after = if inside.is_empty() { after.trim_start() } else { after };
            format!("{}{inside}{after}", &text[..=from.at.start])
        }
    }
}

/// Where the comma is between two parts; comments may have commas, too.
fn comma_in(between: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &between[at..];
        at += match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => rest.find("*/").map_or(rest.len(), |it| it + 2),
            [b',', ..] | [] => return at,
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
}

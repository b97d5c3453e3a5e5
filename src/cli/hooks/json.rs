//! JSON files that belong to people: only Provost's parts are changed, so that comments, order, indentation and line
//! ends of the rest stay. `base::jsonc` parses them and returns the positions.

use jsonc_parser::ast::Value;
use jsonc_parser::common::{Range, Ranged as _};

use provost_base::jsonc;

/// The indentation where the file shows none of its own.
const INDENT: &str = "  ";

/// The blanks between JSON's parts; a comment may end with another blank.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// A text with its parsed value.
pub(super) struct Tree<'a> {
    /// The byte order mark, if it begins with one.
    mark: &'a str,
    /// The text after the mark.
    text: &'a str,
    /// The parsed value.
    pub(super) root: Value<'a>,
    commas: Vec<usize>,
}

/// Returns the member with that name.
pub(super) fn member<'t, 'a>(node: &'t Value<'a>, name: &str) -> Option<&'t Value<'a>> {
    node.as_object()?.get(name).map(|it| &it.value)
}

/// Returns the elements of a list; empty for anything else.
pub(super) fn items<'t, 'a>(node: &'t Value<'a>) -> &'t [Value<'a>] {
    node.as_array().map_or(&[], |it| &it.elements)
}

/// Returns the value of a string.
pub(super) fn text<'t>(node: &'t Value<'_>) -> Option<&'t str> {
    node.as_string_lit().map(|it| &*it.value)
}

fn parts(node: &Value<'_>) -> Vec<Range> {
    match node {
        Value::Object(it) => it.properties.iter().map(|it| it.range).collect(),
        Value::Array(it) => it.elements.iter().map(|it| it.range()).collect(),
        _ => Vec::new(),
    }
}

/// Parses a text.
///
/// # Errors
/// The mistake, and its line.
pub(super) fn parse(text: &str) -> Result<Tree<'_>, String> {
    let (mark, text) = text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 });
    let jsonc::Tree { value, commas } = jsonc::parse(text)?;
    Ok(Tree { mark, text, root: value, commas })
}

impl Tree<'_> {
    /// Returns the text with one more part at the end of a list or an object. The part is given with two blanks a
    /// step, and without indentation of its own.
    pub(super) fn append(&self, into: &Value<'_>, part: &str) -> String {
        let (text, step, end) = (self.text, self.step(), self.line_end());
        let outer = self.indent_of(into.start());
        let parts = parts(into);
        let inner = match parts.last() {
            Some(last) if self.line_start(last.start).is_some() => self.indent_of(last.start).to_owned(),
            _ => format!("{outer}{step}"),
        };
        let lines = part.lines().map(|line| {
            let plain = line.trim_start_matches(INDENT);
            let deep = (line.len() - plain.len()) / INDENT.len();
            format!("{inner}{}{plain}", step.repeat(deep))
        });
        let part = lines.collect::<Vec<_>>().join(end);
        let close = into.end() - 1;
        let Some(last) = parts.last().map(|it| it.end) else {
            // Comments stay; blanks are removed.
            let kept = text[..close].trim_end_matches(BLANKS);
            return format!("{}{kept}{end}{part}{end}{outer}{}", self.mark, &text[close..]);
        };
        let kept = &text[last..close];
        let tail = kept.trim_end_matches(BLANKS);
        // A part on one line with its enclosing braces stays on one line.
        let after = if kept.contains('\n') { kept[tail.len()..].to_owned() } else { format!("{end}{outer}") };
        format!("{}{},{tail}{end}{part}{after}{}", self.mark, &text[..last], &text[close..])
    }

    /// Returns the text without one part of a list or an object; comments stay.
    pub(super) fn remove(&self, from: &Value<'_>, part: Range) -> String {
        let (text, parts) = (self.text, parts(from));
        let Some(index) = parts.iter().position(|it| *it == part) else {
            return format!("{}{text}", self.mark);
        };
        let (before, after) = (index.checked_sub(1).map(|it| parts[it].end), parts.get(index + 1));
        let left = match (before, after) {
            (_, Some(after)) => {
                let comma = self.comma_after(part.end);
                let rest = [&text[part.end..comma], &text[comma + 1..after.start]];
                let rest = rest.map(|it| it.trim_start_matches(BLANKS));
                format!("{}{}{}", &text[..part.start], rest.concat(), &text[after.start..])
            }
            (Some(before), None) => {
                let comma = self.comma_after(before);
                let kept = text[comma + 1..part.start].trim_end_matches(BLANKS);
                format!("{}{}", &text[..comma], self.joined(kept, &text[part.end..]))
            }
            (None, None) => {
                let inside = text[from.start() + 1..part.start].trim_end_matches(BLANKS);
                let after = &text[part.end..];
                let after = if inside.is_empty() { after.trim_start_matches(BLANKS) } else { after };
                format!("{}{}", &text[..=from.start()], self.joined(inside, after))
            }
        };
        format!("{}{left}", self.mark)
    }

    /// Joins comments and the text after them, with a line end between if the last comment would swallow it.
    fn joined(&self, comments: &str, after: &str) -> String {
        let last = comments.rsplit('\n').next().unwrap_or_default();
        let end = if last.contains("//") && !after.starts_with(['\r', '\n']) { self.line_end() } else { "" };
        format!("{comments}{end}{after}")
    }

    /// Returns the position of the next comma between two parts; commas in comments and strings do not count.
    fn comma_after(&self, at: usize) -> usize {
        let next = self.commas.partition_point(|it| *it < at);
        self.commas.get(next).copied().unwrap_or(at)
    }

    /// Returns the beginning of a line's indentation, if only indentation stands before `at`.
    fn line_start(&self, at: usize) -> Option<usize> {
        let before = &self.text[..at];
        let start = before.trim_end_matches([' ', '\t']).len();
        (before[..start].is_empty() || before[..start].ends_with('\n')).then_some(start)
    }

    /// Returns the indentation of the line that contains a position.
    fn indent_of(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |it| it + 1);
        let rest = &self.text[line..];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    /// Returns one step of the file's indentation.
    fn step(&self) -> &str {
        let first = parts(&self.root).first().map(|it| it.start);
        let first = first.and_then(|at| self.line_start(at).map(|from| &self.text[from..at]));
        first.filter(|it| !it.is_empty()).unwrap_or(INDENT)
    }

    /// Returns the file's line end.
    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}

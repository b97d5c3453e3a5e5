//! Puts new text in the place of a selection, and returns the whole file. A6s 6.7.
//!
//! Editors remove the white space at both ends of a selection: its first line has lost its indentation, which the file
//! still has. This module does no input or output.

use memchr::memmem;

/// The reason why a selection has no place in a file. Each is a part of a sentence that names the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPlace {
    /// The selection is there more than once.
    Several(usize),
    /// The selection is not there.
    Nowhere,
}

impl NoPlace {
    /// Returns the error for the user who made the selection.
    pub fn says(self, file: &str) -> String {
        match self {
            Self::Several(times) => {
                format!("The selection occurs {times} times in {file}; select more of the text around it")
            }
            Self::Nowhere => format!("The selection is not in {file} on disk; save the buffer first"),
        }
    }
}

/// A selection in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed<'a> {
    before: &'a str,
    inside: &'a str,
    after: &'a str,
}

/// Finds the only place of a selection: exactly, or else without regard to blanks at the ends of lines.
///
/// # Errors
/// [`NoPlace`].
pub fn place<'a>(file: &'a str, code: &str) -> Result<Placed<'a>, NoPlace> {
    let (from, to) = match only(file, code) {
        Ok(from) => (from, from + code.len()),
        Err(NoPlace::Nowhere) => {
            let (bare, lines) = without_blanks(file);
            let wanted = without_blanks(code.trim()).0;
            let from = only(&bare, &wanted)?;
            (back(&lines, from), back(&lines, from + wanted.len() - 1) + 1)
        }
        Err(several) => return Err(several),
    };
    Ok(Placed { before: &file[..from], inside: &file[from..to], after: &file[to..] })
}

/// Returns the place of a text in another one, if it occurs there exactly once.
fn only(file: &str, code: &str) -> Result<usize, NoPlace> {
    if code.trim().is_empty() {
        return Err(NoPlace::Nowhere);
    }
    let finder = memmem::Finder::new(code);
    let first = finder.find(file.as_bytes()).ok_or(NoPlace::Nowhere)?;
    // The next occurrence may begin within this one.
    match finder.find(&file.as_bytes()[first + 1..]) {
        None => Ok(first),
        Some(_) => Err(NoPlace::Several(finder.find_iter(file.as_bytes()).count().max(2))),
    }
}

/// The beginning of a line: its offset without blanks at the ends of lines, and with them.
type Begins = (usize, usize);

/// Returns a text without blanks at the ends of its lines, and the beginnings of its lines.
fn without_blanks(text: &str) -> (String, Vec<Begins>) {
    let (mut bare, mut begins, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    for line in text.split('\n') {
        if at > 0 {
            bare.push('\n');
        }
        begins.push((bare.len(), at));
        bare.push_str(line.trim_end());
        at += line.len() + 1;
    }
    (bare, begins)
}

/// Converts an offset in the text without blanks to one in the original text.
fn back(lines: &[Begins], at: usize) -> usize {
    let line = lines.partition_point(|(bare, _)| *bare <= at).saturating_sub(1);
    lines.get(line).map_or(at, |(bare, was)| was + (at - bare))
}

impl<'a> Placed<'a> {
    /// Returns the blanks before the selection, if only blanks stand before it in its line.
    fn indent(&self) -> &'a str {
        let line = &self.before[self.before.rfind('\n').map_or(0, |at| at + 1)..];
        if line.trim().is_empty() { line } else { "" }
    }

    /// Returns the selected text as it stands in the file, with the indentation of its first line.
    pub fn whole(&self) -> String {
        format!("{}{}", self.indent(), self.inside)
    }

    /// Returns the whole file with new text in the selection's place.
    pub fn with(&self, new: &str) -> String {
        let core = self.inside.trim();
        let start = self.inside.len() - self.inside.trim_start().len();
        let (lead, rest) = self.inside.split_at(start);
        let new = fitted(self.indent(), core, new);
        let new = if self.has_carriage_returns() { new.replace('\n', "\r\n") } else { new };
        [self.before, lead, &new, &rest[core.len()..], self.after].concat()
    }

    fn has_carriage_returns(&self) -> bool {
        let lines = if self.inside.contains('\n') { [self.inside; 2] } else { [self.before, self.after] };
        lines.iter().any(|it| it.contains("\r\n"))
    }
}

/// Fits new text into the place of the old text: without white space at its ends, and indented as far as the old text. Some
/// agents give it the indentation that it has in the file, some begin at the left margin.
fn fitted(indent: &str, old: &str, new: &str) -> String {
    let new = new.replace("\r\n", "\n");
    let new = new.trim_end().trim_start_matches('\n');
    let new = &new[new.lines().take_while(|line| line.trim().is_empty()).map(|line| line.len() + 1).sum()..];
    let lead = blanks(new);
    let text = new.trim_start();
    if indent.is_empty() || !lead.is_empty() || !begins_at_the_left(indent, old, text) {
        return text.to_owned();
    }
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |mut all, line| {
        all.push('\n');
        if !line.trim().is_empty() {
            all.push_str(indent);
        }
        all.push_str(line);
        all
    })
}

/// Checks whether the lines after the first one lack the indentation that they would have in the file.
fn begins_at_the_left(indent: &str, old: &str, new: &str) -> bool {
    let Some(new_least) = least(new) else { return false };
    let opens = new.lines().next().is_some_and(|line| line.trim_end().ends_with([':', '{', '(', '[']));
    match least(old) {
        // A block stands further in than the line that opens it.
        _ if opens => following(new).next().is_some_and(|line| blanks(line).len() <= indent.len()),
        Some(old_least) => new_least + indent.len() <= old_least,
        None => new_least < indent.len(),
    }
}

/// Returns the lines after the first one, without the empty ones.
fn following(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip(1).filter(|line| !line.trim().is_empty())
}

/// Returns the least indentation of the lines after the first one.
fn least(text: &str) -> Option<usize> {
    following(text).map(|line| blanks(line).len()).min()
}

fn blanks(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

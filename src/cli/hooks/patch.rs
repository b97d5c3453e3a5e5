//! Codex's patches: the files that one writes, and their contents afterwards.
//!
//! `*** Begin Patch`, then for each file `*** Add File:`, `*** Delete File:` or `*** Update File:` with an optional
//! `*** Move to:`, then `*** End Patch`. A part that does not fit its file is not guessed: such a file counts as
//! changed as a whole.

/// The change that a patch makes to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Creates the file, or writes it as a whole.
    Whole(String),
    /// Removes the file.
    Gone,
    /// Changes parts of the file.
    Parts(Vec<Part>),
}

/// A part of a file that is replaced by another one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Part {
    /// A line before the part.
    after: Option<String>,
    /// Whether the part stands at the end of the file.
    at_end: bool,
    old: Vec<String>,
    new: Vec<String>,
}

/// A file of a patch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Patched {
    /// Its path, as the patch names it.
    pub(super) path: String,
    /// The change.
    pub(super) change: Change,
    /// Its new name, if it is renamed.
    pub(super) to: Option<String>,
}

/// Returns the files of a patch, in order; empty if the text has no patch.
pub(super) fn read(text: &str) -> Vec<Patched> {
    let Some(begin) = text.find("*** Begin Patch") else { return Vec::new() };
    let mut files: Vec<Patched> = Vec::new();
    for line in text[begin..].lines().skip(1) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim_end() == "*** End Patch" {
            break;
        }
        // After an added or deleted file, blanks before the next heading do not count.
        let is_in_parts = files.last().is_some_and(|it| matches!(it.change, Change::Parts(_)));
        let begin = if is_in_parts { line } else { line.trim() };
        if let Some(file) = heading(begin) {
            files.push(file);
        } else if let Some(to) = line.strip_prefix("*** Move to: ") {
            if let Some(file) = files.last_mut() {
                file.to = Some(to.trim().to_owned());
            }
        } else if let Some(file) = files.last_mut() {
            take(&mut file.change, line);
        }
    }
    files
}

fn heading(line: &str) -> Option<Patched> {
    let file = |path: &str, change| Patched { path: path.trim().to_owned(), change, to: None };
    if let Some(path) = line.strip_prefix("*** Add File: ") {
        return Some(file(path, Change::Whole(String::new())));
    }
    if let Some(path) = line.strip_prefix("*** Delete File: ") {
        return Some(file(path, Change::Gone));
    }
    line.strip_prefix("*** Update File: ").map(|path| file(path, Change::Parts(Vec::new())))
}

/// Adds one line of a patch to the change of its file.
fn take(change: &mut Change, line: &str) {
    let parts = match change {
        Change::Whole(text) => {
            text.push_str(line.strip_prefix('+').unwrap_or(line));
            text.push('\n');
            return;
        }
        Change::Gone => return,
        Change::Parts(parts) => parts,
    };
    if let Some(after) = line.strip_prefix("@@") {
        let after = after.strip_prefix(' ').filter(|it| !it.is_empty()).map(str::to_owned);
        parts.push(Part { after, ..Part::default() });
        return;
    }
    if line == "*** End of File" {
        if let Some(part) = parts.last_mut() {
            part.at_end = true;
        }
        return;
    }
    if parts.is_empty() {
        parts.push(Part::default());
    }
    let Some(part) = parts.last_mut() else { return };
    match line.as_bytes().first() {
        Some(b'-') => part.old.push(line[1..].to_owned()),
        Some(b'+') => part.new.push(line[1..].to_owned()),
        _ => {
            let same = line.strip_prefix(' ').unwrap_or(line).to_owned();
            part.old.push(same.clone());
            part.new.push(same);
        }
    }
}

/// Finds some lines from a line on, or at the end of the file where the patch wants them there and they are there.
/// Where the lines are not there literally, Codex ignores first blanks at the ends of lines, then also those at their
/// beginnings, then the kinds of dashes, quotation marks and blanks; so does this.
fn found(lines: &[&str], wanted: &[&str], from: usize, at_end: bool) -> Option<usize> {
    let equal: [fn(&str, &str) -> bool; 4] = [
        |a, b| a == b,
        |a, b| a.trim_end() == b.trim_end(),
        |a, b| a.trim() == b.trim(),
        |a, b| levelled(a) == levelled(b),
    ];
    let last = lines.len().checked_sub(wanted.len())?;
    let from = if at_end { from.max(last) } else { from };
    let rest = lines.get(from..)?;
    equal.iter().find_map(|same| {
        let fits = |window: &[&str]| window.iter().zip(wanted).all(|(a, b)| same(a, b));
        rest.windows(wanted.len()).position(fits).map(|at| from + at)
    })
}

/// Returns a line with plain dashes, quotation marks and blanks.
fn levelled(line: &str) -> String {
    let plain = |c: char| match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    };
    line.trim().chars().map(plain).collect()
}

/// Returns a file's content with its parts replaced; `None` where one of them is not in it.
pub(super) fn apply(before: &str, parts: &[Part]) -> Option<String> {
    let mut lines: Vec<&str> = before.split('\n').collect();
    let ends = lines.last() == Some(&"");
    if ends {
        lines.pop();
    }
    let (mut out, mut at): (Vec<&str>, usize) = (Vec::new(), 0);
    for part in parts {
        let mut from = at;
        if let Some(after) = &part.after {
            from = found(&lines, &[after.as_str()], at, false)? + 1;
        }
        let mut old: Vec<&str> = part.old.iter().map(String::as_str).collect();
        let mut new: Vec<&str> = part.new.iter().map(String::as_str).collect();
        let found = match part.old.is_empty() {
            true if part.after.is_some() => from,
            true => lines.len(),
            false => match found(&lines, &old, from, part.at_end) {
                Some(found) => found,
                // An empty line after the last one is not a line of the file.
                None if old.last() == Some(&"") => {
                    old.pop();
                    if new.last() == Some(&"") {
                        new.pop();
                    }
                    found(&lines, &old, from, part.at_end)?
                }
                None => return None,
            },
        };
        out.extend(&lines[at..found]);
        out.extend(&new);
        at = found + old.len();
    }
    out.extend(&lines[at..]);
    let mut text = out.join("\n");
    text.push('\n');
    Some(text)
}

/// Returns the files that a patch in the form of `diff` names, without the first `strip` folders of each path.
pub(super) fn named(text: &str, strip: usize) -> Vec<String> {
    const HEADS: [&str; 5] = ["+++ ", "--- ", "rename to ", "rename from ", "copy to "];
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some(head) = HEADS.iter().find(|it| line.starts_with(**it)) else { continue };
        // A time may follow the path. Renames are listed without the letter of the side.
        let path = line[head.len()..].split('\t').next().unwrap_or_default().trim();
        let strip = if head.starts_with(['+', '-']) { strip } else { strip.saturating_sub(1) };
        let path = path.splitn(strip + 1, '/').nth(strip).unwrap_or_default();
        if !path.is_empty() && path != "dev/null" && path != "/dev/null" && !found.iter().any(|it| it == path)
        {
            found.push(path.to_owned());
        }
    }
    found
}

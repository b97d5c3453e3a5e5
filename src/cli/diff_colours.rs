//! A difference for a terminal, without any control characters of its own: signs and headers in colour, and lines coloured
//! by their language.

use std::collections::BTreeMap;

use provost_base::visible;
use provost_view::{self as view, DiffFile, DiffLine, LineMarks, Piece, TokenKind};

/// Returns the difference of one file or several, in colours unless `NO_COLOR` forbids them.
pub(super) fn drawn(diff: &str) -> String {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    match is_plain {
        true => diff.lines().map(|line| visible(line) + "\n").collect(),
        false => coloured(diff),
    }
}

/// Does the same with colours.
fn coloured(diff: &str) -> String {
    let mut files = view::diff_files(diff);
    view::mark(&mut files);
    let mut known = files.iter().flat_map(lines);
    let mut text = String::with_capacity(diff.len() * 2);
    for line in diff.lines() {
        match known.next().flatten() {
            Some((it, marks)) => text.push_str(&in_colour(line, it, marks)),
            // The last lines of a long file have no marks.
            None => text.push_str(&styled(&visible(line), base_of(kind(line)))),
        }
        text.push('\n');
    }
    text
}

/// Returns each line of a file with its marks, in order.
fn lines(file: &DiffFile) -> impl Iterator<Item = Option<(&DiffLine, Option<&LineMarks>)>> {
    let marks: BTreeMap<usize, &LineMarks> =
        file.marks.iter().filter_map(|it| Some((usize::try_from(it.0).ok()?, it))).collect();
    let known = file.lines.iter().enumerate().map(move |(at, it)| Some((it, marks.get(&at).copied())));
    known.chain(std::iter::repeat_n(None, file.more))
}

fn kind(line: &str) -> &'static str {
    match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "remove",
        Some(b'@') => "hunk",
        _ => "same",
    }
}

fn base_of(is: &str) -> &'static str {
    match is {
        "add" => "32",
        "remove" => "31",
        "hunk" => "36",
        "head" => "1",
        _ => "",
    }
}

/// Returns a line with hidden characters shown: its sign, and its text in pieces.
fn in_colour(line: &str, it: &DiffLine, marks: Option<&LineMarks>) -> String {
    let base = base_of(it.is);
    let sign =
        if matches!(it.is, "add" | "remove" | "same") { line.get(..1).unwrap_or_default() } else { "" };
    let piece = |it: &Piece<'_>| {
        let token = it.kind.map_or("", code_of);
        let changed = if it.is_changed { "4" } else { "" };
        let all: Vec<&str> = [base, token, changed].into_iter().filter(|it| !it.is_empty()).collect();
        styled(it.text, &all.join(";"))
    };
    let pieces: String = view::pieces(&it.text, marks).iter().map(piece).collect();
    styled(sign, base) + &pieces
}

/// Returns the style of a token, beside the colour that tells added from removed lines.
fn code_of(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Comment => "2;3",
        TokenKind::Text => "33",
        TokenKind::Number => "35",
        TokenKind::Word => "34",
        TokenKind::Type => "36",
        TokenKind::Name => "1",
    }
}

fn styled(text: &str, code: &str) -> String {
    match text.is_empty() || code.is_empty() {
        true => text.to_owned(),
        false => format!("\x1b[{code}m{text}\x1b[m"),
    }
}

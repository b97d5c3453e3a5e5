//! Colours and changed words of a difference. Marks are positions in its lines, without text. So they can stand
//! beside the bytes that a passkey signs, and cannot change the text that a person reads.

use std::time::{Duration, Instant};

use provost_base::limits::{COLOURED_BYTES_MAX, COLOURED_MS_MAX};
pub use provost_syntax::TokenKind;
use provost_syntax::{Language, ParseDeadline, language_of, tokens};

use super::{DiffFile, DiffLine, LineMarks};

/// Returns the marks of each file, in order; `paths` tell the languages. Lines that are not reached within
/// [`COLOURED_MS_MAX`] stay plain. This takes time, so threads that answer requests leave it to others.
pub fn marks(files: &[DiffFile], paths: &[&str]) -> Vec<Vec<LineMarks>> {
    let until = Instant::now() + Duration::from_millis(COLOURED_MS_MAX);
    files.iter().zip(paths).map(|(file, path)| of_file(file, language_of(path), until)).collect()
}

/// Computes the marks of each file and puts them into it, with the language of its own path.
pub fn mark(files: &mut [DiffFile]) {
    let paths: Vec<String> = files.iter().map(|it| it.path.clone()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let found = marks(files, &paths);
    files.iter_mut().zip(found).for_each(|(file, marks)| file.marks = marks);
}

/// A part of a line in one look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece<'a> {
    /// Its text.
    pub text: &'a str,
    /// The kind of its token, where that is coloured.
    pub kind: Option<TokenKind>,
    /// Whether it differs from the other line.
    pub is_changed: bool,
}

/// Splits a line into pieces: each character of the text is in exactly one of them.
pub fn pieces<'a>(text: &'a str, marks: Option<&LineMarks>) -> Vec<Piece<'a>> {
    let Some(LineMarks(_, colours, changed)) = marks else {
        return vec![Piece { text, kind: None, is_changed: false }];
    };
    let mut colours = colours.chunks_exact(3).peekable();
    let mut found: Vec<Piece<'_>> = Vec::new();
    // The beginning of the last piece, and the number of units of UTF-16 before the current character.
    let (mut from, mut passed) = (0, 0_u32);
    for (at, c) in text.char_indices() {
        while colours.next_if(|it| it[0].saturating_add(it[1]) <= passed).is_some() {}
        let colour = colours.peek().filter(|it| it[0] <= passed);
        let kind = colour.and_then(|it| COLOURS.get(usize::try_from(it[2]).ok()?).copied());
        let is_changed = changed.is_some_and(|(from, to)| (from..to).contains(&passed));
        let to = at + c.len_utf8();
        match found.last_mut() {
            Some(last) if (last.kind, last.is_changed) == (kind, is_changed) => last.text = &text[from..to],
            _ => {
                from = at;
                found.push(Piece { text: &text[from..to], kind, is_changed });
            }
        }
        passed = passed.saturating_add(u32::try_from(c.len_utf16()).unwrap_or(1));
    }
    found
}

fn of_file(file: &DiffFile, language: Option<Language>, until: Instant) -> Vec<LineMarks> {
    let mut colours: Vec<Vec<u32>> = vec![Vec::new(); file.lines.len()];
    if let Some(language) = language {
        // Removed lines are read in the old file, all others in the new one.
        for (side, gone) in [("add", false), ("remove", true)] {
            let is_of = |it: &DiffLine| it.is == "same" || it.is == side;
            colour(file, language, until, is_of, |it| gone == (it.is == "remove"), &mut colours);
        }
    }
    let changed = changed_words(&file.lines);
    let all = colours.into_iter().zip(changed).enumerate();
    let all = all.filter(|(_, (colours, changed))| !colours.is_empty() || changed.is_some());
    all.map(|(at, (colours, changed))| LineMarks(number(at), colours, changed)).collect()
}

/// Colours the wanted lines among those of one side.
fn colour(
    file: &DiffFile,
    language: Language,
    until: Instant,
    is_of_side: impl Fn(&DiffLine) -> bool,
    is_wanted: impl Fn(&DiffLine) -> bool,
    colours: &mut [Vec<u32>],
) {
    let mut text = String::new();
    // The beginning and the end of each line of the side in the text, with its index in the file.
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    for (at, line) in file.lines.iter().enumerate().filter(|(_, it)| is_of_side(it)) {
        let from = text.len();
        text.push_str(&line.text);
        places.push((from, text.len(), at));
        text.push('\n');
        if text.len() > COLOURED_BYTES_MAX {
            return;
        }
    }
    let patience = ParseDeadline { until: Some(until), cancelled: None };
    let mut line = 0;
    // The last line with a colour, the position in the text up to which it is counted, and the number of its units of UTF-16.
    let (mut last, mut counted, mut passed) = (usize::MAX, 0, 0);
    for token in tokens(language, &text, &patience) {
        while places.get(line).is_some_and(|(_, end, _)| *end <= token.range.start) {
            line += 1;
        }
        // A comment or a string may go on over several lines.
        for (from, end, at) in places[line..].iter().take_while(|(from, ..)| *from < token.range.end) {
            let part = token.range.start.max(*from)..token.range.end.min(*end);
            if part.is_empty() || !is_wanted(&file.lines[*at]) {
                continue;
            }
            if last != *at {
                (last, counted, passed) = (*at, *from, 0);
            }
            let end = part.end;
            let (Some(before), Some(inner)) = (text.get(counted..part.start), text.get(part)) else {
                continue;
            };
            let begins = passed + units(before);
            let long = units(inner);
            colours[*at].extend([begins, long, class(token.kind)]);
            (counted, passed) = (end, begins + long);
        }
    }
}

/// The meaning of the numbers of colours: a number is an index into this list.
const COLOURS: [TokenKind; 6] = [
    TokenKind::Comment,
    TokenKind::Text,
    TokenKind::Number,
    TokenKind::Word,
    TokenKind::Type,
    TokenKind::Name,
];

/// The number of a colour.
fn class(kind: TokenKind) -> u32 {
    number(COLOURS.iter().position(|it| *it == kind).unwrap_or_default())
}

fn units(text: &str) -> u32 {
    number(text.encode_utf16().count())
}

fn number(it: usize) -> u32 {
    u32::try_from(it).unwrap_or(u32::MAX)
}

/// Returns the changed part of each line, where removed lines are followed by added lines that replace them.
fn changed_words(lines: &[DiffLine]) -> Vec<Option<(u32, u32)>> {
    let mut changed = vec![None; lines.len()];
    let run = |from: usize, is: &str| lines[from..].iter().take_while(|it| it.is == is).count();
    let mut at = 0;
    while at < lines.len() {
        let gone = run(at, "remove");
        let come = if gone > 0 { run(at + gone, "add") } else { 0 };
        for n in 0..gone.min(come) {
            let (old, new) = (at + n, at + gone + n);
            if let Some((before, after)) = different(&lines[old].text, &lines[new].text) {
                (changed[old], changed[new]) = (before, after);
            }
        }
        at += (gone + come).max(1);
    }
    changed
}

/// A range of a line.
type Part = Option<(u32, u32)>;

/// Returns the changed parts of two lines, in whole words; `None` where most of them is different, since that is another line.
fn different(old: &str, new: &str) -> Option<(Part, Part)> {
    let (before, after) = (words(old), words(new));
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before[same..].iter().rev().zip(after[same..].iter().rev());
    let same_end = rest.take_while(|(a, b)| a == b).count();
    let in_common: usize =
        before[..same].iter().chain(&before[before.len() - same_end..]).map(|it| it.trim().len()).sum();
    if in_common * 3 < old.trim().len().max(new.trim().len()) {
        return None;
    }
    let part = |words: &[&str]| {
        let length = |words: &[&str]| words.iter().map(|it| units(it)).sum::<u32>();
        let from = length(&words[..same]);
        let to = from + length(&words[same..words.len() - same_end]);
        (from < to).then_some((from, to))
    };
    Some((part(&before), part(&after)))
}

/// Splits a text into words, blanks and signs, in order.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut found = Vec::new();
    let (mut from, mut last) = (0, None);
    for (at, c) in text.char_indices() {
        // Each sign stands for itself.
        if at > 0 && (last != Some(kind(c)) || kind(c) == 2) {
            found.push(&text[from..at]);
            from = at;
        }
        last = Some(kind(c));
    }
    if from < text.len() {
        found.push(&text[from..]);
    }
    found
}

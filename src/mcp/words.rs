//! Others' words in what a model reads: shortened, without escape sequences, and behind a bar, so that they cannot pass
//! for the tool's own.

use crate::jail::plain_text;

/// The beginning of a text, in characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = plain_text(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The beginning of a text in one line.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    short(&words.join(" "), most)
}

/// The first of some texts, and how many there are beyond those.
pub(super) fn first_of(all: &[String], most: usize) -> Vec<String> {
    let mut shown: Vec<String> = all.iter().take(most).map(|it| one_line(it, PATH_CHARS)).collect();
    if all.len() > most {
        shown.push(format!("and {} more", all.len() - most));
    }
    shown
}

/// Longest path that is shown whole, in characters.
const PATH_CHARS: usize = 300;

/// Words from elsewhere, behind a bar: they are data, whatever they say.
pub(super) fn fenced(words: &str) -> String {
    plain_text(words).lines().map(|line| format!("\n  | {line}")).collect()
}

/// A heading, and below it as many lines as hosts take in one answer's text.
pub(super) fn listed(head: &str, lines: impl Iterator<Item = String>) -> String {
    const BYTES: usize = 10 << 10;
    let mut text = head.to_owned();
    for line in lines {
        if text.len() + line.len() >= BYTES {
            text.push_str("\n- … the rest is in the structured answer");
            break;
        }
        text.push_str("\n- ");
        text.push_str(&line);
    }
    text
}

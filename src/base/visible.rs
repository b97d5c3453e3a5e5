//! Text for a person who decides about it: every character is visible.

use std::fmt::Write as _;

/// Returns a text in which no character is hidden. Control characters and characters that are invisible or turn the
/// direction of text around are written as `\u{1b}`, with their code point in hexadecimal; line feeds and tabs
/// stay. So a person reads characters that a terminal would act on, or swallow with everything after them.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = c.is_control() || super::lookalikes::is_hidden(c);
        match c {
            '\n' | '\t' => shown.push(c),
            c if hides => {
                // Writing into a String does not fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Returns the name of a file in one line, without hidden characters: all of its spaces are kept, and other blanks
/// and line ends are written as code points as well. A longer name is cut to `most` characters.
pub fn visible_name(name: &str, most: usize) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_whitespace() && c != ' ' {
            true => {
                // Writing into a String does not fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            false => shown.push(c),
        }
    }
    let shown = visible(&shown);
    match shown.char_indices().nth(most) {
        Some(_) => shown.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        None => shown,
    }
}

/// Returns the beginning of a text, at most `most` bytes including the sign that something was left out.
pub fn clipped(text: &str, most: usize) -> String {
    const MORE: char = '…';
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(MORE.len_utf8()));
    format!("{}{MORE}", &text[..end])
}

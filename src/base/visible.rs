//! Text for a person who decides about it: every character is visible.

use std::fmt::Write as _;

/// A text in which nothing hides. Control characters and characters that show nothing or turn the direction
/// of text around are written as `\u{1b}`, with their code point in hexadecimal; line feeds and tabs stay.
/// What a terminal would act upon, or swallow with all that follows, is read instead.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = c.is_control() || super::lookalikes::is_hidden(c);
        match c {
            '\n' | '\t' => shown.push(c),
            c if hides => {
                // A String takes everything.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// The name of a file in one line, in which nothing hides: all of its spaces are kept, and other blanks and
/// line ends are written as code points as well. Of a longer one, `most` characters.
pub fn visible_name(name: &str, most: usize) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_whitespace() && c != ' ' {
            true => {
                // A String takes everything.
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

/// The beginning of a text, of at most so many bytes with the sign that something was left out.
pub fn clipped(text: &str, most: usize) -> String {
    const MORE: char = '…';
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(MORE.len_utf8()));
    format!("{}{MORE}", &text[..end])
}

//! The text of Kotlin as Provost shows it to the grammar, which lacks some of the language. These parts are blank:
//!
//! - annotations before the expression that is a function's body, and before `set(value)`, which would end the function or the
//!   property for the grammar;
//! - comments before a declaration on its line, which hide the end of the line before from the grammar;
//! - `by store` directly before the members of a type, which the grammar reads as a call of `store` with a lambda;
//! - the ends of lines between the name of a type and the word `constructor`;
//! - `& Any` behind a type, and the dollars before a text that say how many of them insert a value.
//!
//! The last member of a type whose body ends on the same line gets the end of a line, because the grammar reads such a type as
//! an enumeration; a member with a body before another one on the same line gets a semicolon. `is A if b ->` becomes
//! `is A ,  b ->`, and `context(a: A)` before a declaration becomes an annotation.
//!
//! All bytes keep their places. The dialect reads symbols, names and signatures from the file itself.

use std::ops::Range;

use super::kotlin_mask_bodies::{Bodies, HEAD_MAX, begins_declaration, context, delegate, guarded};

/// What the grammar is shown instead of a file; none where it can be shown the file itself.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut shown, mut at) = (None::<Vec<u8>>, 0);
    let mut before = Before { last: b';', is_value: false, is_line_between: false };
    let mut bodies = Bodies::default();
    while at < bytes.len() {
        let from = at;
        match bytes[at] {
            b'"' | b'\'' => {
                at = behind_text(bytes, at);
                dynamic_within(&mut shown, bytes, from..at);
                before.is_now(b'"', false);
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = behind_comment(bytes, at);
                if bytes[from + 1] == b'*' && before.hides_its_end() && goes_on(&bytes[at..]) {
                    blank(&mut shown, bytes, from, at);
                }
            }
            b'@' if before.is_value || is_before_accessor(bytes, at) => {
                at = behind_annotation(bytes, at);
                blank(&mut shown, bytes, from, at);
            }
            byte if byte.is_ascii_whitespace() => {
                before.is_line_between |= byte == b'\n';
                at += 1;
            }
            byte if is_of_word(byte) => {
                while at < bytes.len() && is_of_word(bytes[at]) {
                    at += 1;
                }
                at = word(&mut shown, bytes, from..at, &mut bodies, &before);
                before.is_now(byte, false);
            }
            b'$' | b'&' => {
                at = sign(&mut shown, bytes, at);
                before.is_now(byte_before(bytes, at), false);
            }
            byte => {
                let ends_body = bodies.mark(byte);
                if ends_body && before.lacks_its_end() && bytes[at - 1] == b' ' {
                    shown.get_or_insert_with(|| bytes.to_vec())[at - 1] = b'\n';
                }
                if byte == b'}' && bodies.is_among_members() && begins_declaration(&bytes[at + 1..]) {
                    shown.get_or_insert_with(|| bytes.to_vec())[at + 1] = b';';
                }
                let beside = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
                let is_value = byte == b'='
                    && beside(Some(at + 1)) != b'='
                    && !matches!(beside(at.checked_sub(1)), b'=' | b'!' | b'<' | b'>');
                before.is_now(byte, is_value);
                at += 1;
            }
        }
    }
    shown
}

/// What stands before a place, without blanks and comments.
struct Before {
    last: u8,
    /// Whether that is an equals sign that gives something a value.
    is_value: bool,
    is_line_between: bool,
}

impl Before {
    fn is_now(&mut self, last: u8, is_value: bool) {
        *self = Self { last, is_value, is_line_between: false };
    }

    /// Whether the grammar misses an end of what stands before a brace.
    fn lacks_its_end(&self) -> bool {
        !self.is_line_between && !matches!(self.last, b'{' | b';' | b',')
    }

    /// Whether the grammar takes what follows a comment here for a part of what stands before it.
    fn hides_its_end(&self) -> bool {
        match self.last {
            b'{' => !self.is_line_between,
            b',' | b'(' | b';' => false,
            b'}' => true,
            _ => self.is_line_between,
        }
    }
}

pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Takes in a word, and masks the construct that it begins. Returns the place behind the word or the construct.
fn word(
    shown: &mut Option<Vec<u8>>,
    bytes: &[u8],
    word: Range<usize>,
    bodies: &mut Bodies,
    before: &Before,
) -> usize {
    let text = &bytes[word.clone()];
    match text {
        b"by" if bodies.is_before_members() => {
            let (end, is_before_body) = delegate(bytes, word.end);
            if is_before_body {
                blank(shown, bytes, word.start, end);
            }
            return end;
        }
        b"if" if bodies.is_among_cases() => {
            if let Some(says_else) = guarded(bytes, word.start) {
                blank(shown, bytes, says_else.unwrap_or(word.start), word.end);
                if says_else.is_none() {
                    shown.get_or_insert_with(|| bytes.to_vec())[word.start] = b',';
                }
            }
        }
        b"context" if before.is_line_between || matches!(before.last, b'{' | b'}' | b';') => {
            if let Some(end) = context(bytes, word.end) {
                blank(shown, bytes, word.end + 1, end - 1);
                shown.get_or_insert_with(|| bytes.to_vec())[word.start] = b'@';
                return end;
            }
        }
        // The grammar takes this name for a type.
        b"dynamic" => shown.get_or_insert_with(|| bytes.to_vec())[word.end - 1] = b'_',
        b"constructor" if bodies.is_before_members() => {
            if let Some(head) = bodies.head().filter(|head| word.start - head < HEAD_MAX) {
                join_lines(shown.get_or_insert_with(|| bytes.to_vec()), head, word.start);
            }
        }
        _ => {}
    }
    bodies.word(text, before.last, word.start);
    word.end
}

/// Masks the name `dynamic` in the values that a text inserts.
fn dynamic_within(shown: &mut Option<Vec<u8>>, bytes: &[u8], text: Range<usize>) {
    let name = b"{dynamic";
    for (at, _) in bytes[text.clone()].windows(name.len()).enumerate().filter(|(_, it)| *it == name) {
        shown.get_or_insert_with(|| bytes.to_vec())[text.start + at + name.len() - 1] = b'_';
    }
}

/// Joins the lines between two places, unless a comment stands there.
fn join_lines(shown: &mut [u8], from: usize, to: usize) {
    if !shown[from..to].windows(2).any(|it| it == b"//") {
        shown[from..to].iter_mut().filter(|it| matches!(**it, b'\n' | b'\r')).for_each(|it| *it = b' ');
    }
}

/// Blanks `& Any`, and the dollars before a text. Returns the place behind the sign or the blank part.
fn sign(shown: &mut Option<Vec<u8>>, bytes: &[u8], from: usize) -> usize {
    let behind = |byte: u8| from + bytes[from..].iter().take_while(|it| **it == byte).count();
    let end = behind(bytes[from]);
    if bytes[from] == b'$' {
        if bytes.get(end) == Some(&b'"') {
            blank(shown, bytes, from, end);
        }
        return end;
    }
    let blanks = bytes[end..].iter().take_while(|it| **it == b' ').count();
    let any = end + blanks..end + blanks + 3;
    if end == from + 1 && bytes.get(any.clone()) == Some(b"Any") {
        blank(shown, bytes, from, any.end);
        return any.end;
    }
    end
}

fn byte_before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b';')
}

/// Checks whether a getter or a setter follows the annotation at a place, also behind a word such as `private`.
fn is_before_accessor(bytes: &[u8], at: usize) -> bool {
    let bytes = &bytes[..bytes.len().min(at + HEAD_MAX)];
    let behind = &bytes[behind_annotation(bytes, at)..];
    const WHO: [&[u8]; 4] = [b"private ", b"protected ", b"internal ", b"public "];
    let text = behind.trim_ascii_start();
    let text = WHO.iter().find_map(|who| text.strip_prefix(*who)).unwrap_or(text).trim_ascii_start();
    text.starts_with(b"set(") || text.starts_with(b"get(")
}

/// Whether something follows on the same line.
fn goes_on(behind: &[u8]) -> bool {
    behind.iter().find(|it| !matches!(it, b' ' | b'\t')).is_some_and(|it| !matches!(it, b'\n' | b'\r'))
}

/// Blanks a part of a file, but not the ends of its lines.
fn blank(shown: &mut Option<Vec<u8>>, bytes: &[u8], from: usize, to: usize) {
    for byte in &mut shown.get_or_insert_with(|| bytes.to_vec())[from..to] {
        if !matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// The end of `@Name`, `@a.Name(…)` or `@[Name Other]`.
fn behind_annotation(bytes: &[u8], from: usize) -> usize {
    let is_word =
        |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.' | b':' | b'`') || it >= 0x80;
    let mut at = from + 1;
    while at < bytes.len() && is_word(bytes[at]) {
        at += 1;
    }
    match bytes.get(at) {
        Some(b'(' | b'[') => behind_near_brackets(bytes, at).unwrap_or(at),
        _ => at,
    }
}

/// The end of brackets with all that is between them; none where they do not end within [`HEAD_MAX`] bytes.
pub(super) fn behind_near_brackets(bytes: &[u8], from: usize) -> Option<usize> {
    let bytes = &bytes[..bytes.len().min(from + HEAD_MAX)];
    let (mut at, mut depth) = (from, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                at = behind_text(bytes, at);
                continue;
            }
            b'(' | b'[' => depth += 1,
            b')' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The end of a text. What is inserted into one may have texts itself, between which this one seems to go on.
pub(super) fn behind_text(bytes: &[u8], from: usize) -> usize {
    let quote = bytes[from];
    if bytes[from..].starts_with(b"\"\"\"") {
        let end = bytes[from + 3..].windows(3).position(|it| it == b"\"\"\"");
        return end.map_or(bytes.len(), |end| from + 3 + end + 3);
    }
    let mut at = from + 1;
    while at < bytes.len() && bytes[at] != quote {
        match bytes[at] {
            b'\n' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (at + 1).min(bytes.len())
}

/// The end of a comment; comments of several lines stand within each other.
fn behind_comment(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 2;
    if bytes[from + 1] == b'/' {
        return bytes[at..].iter().position(|it| *it == b'\n').map_or(bytes.len(), |end| at + end);
    }
    let mut depth = 1_usize;
    while at < bytes.len() && depth > 0 {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

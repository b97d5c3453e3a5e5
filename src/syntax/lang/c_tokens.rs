//! The tokens of C and C++, as far as they have to be distinguished before a file is parsed.

use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    /// Punctuation, by its byte.
    Mark(u8),
    /// A text or a number.
    Value,
    /// A line of the preprocessor, with its continuation lines.
    Directive,
}

#[derive(Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Token {
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// All tokens but comments, in order.
pub(super) fn tokens(source: &[u8]) -> Vec<Token> {
    let mut found = Vec::with_capacity(source.len() / 5);
    let mut at = 0;
    let mut at_line_start = true;
    while at < source.len() {
        let start = at;
        let kind = match source[at] {
            b'\n' => {
                at_line_start = true;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'\\' => {
                at += 1;
                continue;
            }
            b'/' if matches!(source.get(at + 1), Some(b'/' | b'*')) => {
                at = behind_comment(source, at);
                continue;
            }
            b'#' if at_line_start => {
                at = behind_directive(source, at);
                Kind::Directive
            }
            b'"' | b'\'' => {
                at = behind_text(source, at);
                Kind::Value
            }
            byte if byte.is_ascii_digit() => {
                while at < source.len() && (is_word(source[at]) || matches!(source[at], b'.' | b'\'')) {
                    at += 1;
                }
                Kind::Value
            }
            byte if is_word(byte) => {
                while at < source.len() && is_word(source[at]) {
                    at += 1;
                }
                match (source.get(at), &source[start..at]) {
                    (Some(b'"'), prefix) if prefix.ends_with(b"R") && prefix.len() < 4 => {
                        at = behind_raw_text(source, at);
                        Kind::Value
                    }
                    (Some(b'"' | b'\''), b"L" | b"u" | b"U" | b"u8") => {
                        at = behind_text(source, at);
                        Kind::Value
                    }
                    _ => Kind::Word,
                }
            }
            byte => {
                at += 1;
                Kind::Mark(byte)
            }
        };
        at_line_start = false;
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        found.push(Token { kind, start: offset(start), end: offset(at) });
    }
    found
}

fn behind_comment(source: &[u8], at: usize) -> usize {
    if source[at + 1] == b'*' {
        let end = source[at + 2..].windows(2).position(|it| it == b"*/");
        return end.map_or(source.len(), |end| at + 2 + end + 2);
    }
    behind_line(source, at)
}

/// The end of a line, and of those that it goes on in.
fn behind_line(source: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < source.len() && source[at] != b'\n' {
        at += if source[at] == b'\\' { if source.get(at + 1) == Some(&b'\r') { 3 } else { 2 } } else { 1 };
    }
    at.min(source.len())
}

/// The end of a directive: comments in it may go over several lines.
fn behind_directive(source: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < source.len() && source[at] != b'\n' {
        match source[at] {
            b'\\' => at += if source.get(at + 1) == Some(&b'\r') { 3 } else { 2 },
            b'/' if source.get(at + 1) == Some(&b'*') => at = behind_comment(source, at),
            b'/' if source.get(at + 1) == Some(&b'/') => return behind_line(source, at),
            _ => at += 1,
        }
    }
    at.min(source.len())
}

/// The end of a text in quotation marks, which ends with its line at the latest.
fn behind_text(source: &[u8], from: usize) -> usize {
    let quote = source[from];
    let mut at = from + 1;
    while at < source.len() && source[at] != quote {
        match source[at] {
            b'\n' => return at,
            b'\\' => at += if source.get(at + 1) == Some(&b'\r') { 3 } else { 2 },
            _ => at += 1,
        }
    }
    (at + 1).min(source.len())
}

/// The end of `"mark( … )mark"`.
fn behind_raw_text(source: &[u8], from: usize) -> usize {
    let Some(open) = source[from..].iter().take(32).position(|it| *it == b'(') else {
        return behind_text(source, from);
    };
    let mark = &source[from + 1..from + open];
    let mut end = Vec::with_capacity(mark.len() + 2);
    end.push(b')');
    end.extend_from_slice(mark);
    end.push(b'"');
    let found = source[from + open..].windows(end.len()).position(|it| it == end);
    found.map_or(source.len(), |found| from + open + found + end.len())
}

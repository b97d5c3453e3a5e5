//! Kotlin as its grammar is shown it: annotations before the expression that is a function's body are blank. They would end the
//! function for the grammar.
//!
//! Nothing changes its place. Symbols, names and signatures are read from the file itself.

/// What the grammar is shown instead of a file; none where it can be shown the file itself.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut shown, mut at) = (None::<Vec<u8>>, 0);
    // Whether the last byte that counts is an equals sign that gives something a value.
    let mut is_value = false;
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                at = behind_text(bytes, at);
                is_value = false;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => at = behind_comment(bytes, at),
            b'@' if is_value => {
                let end = behind_annotation(bytes, at);
                for byte in &mut shown.get_or_insert_with(|| bytes.to_vec())[at..end] {
                    if !matches!(*byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
                at = end;
            }
            byte => {
                let beside = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
                is_value = match byte {
                    b'=' => {
                        beside(Some(at + 1)) != b'='
                            && !matches!(beside(at.checked_sub(1)), b'=' | b'!' | b'<' | b'>')
                    }
                    byte if byte.is_ascii_whitespace() => is_value,
                    _ => false,
                };
                at += 1;
            }
        }
    }
    shown
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
        Some(b'(' | b'[') => behind_brackets(bytes, at).unwrap_or(at),
        _ => at,
    }
}

/// The end of brackets with all that is between them; none where they do not end.
fn behind_brackets(bytes: &[u8], from: usize) -> Option<usize> {
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
fn behind_text(bytes: &[u8], from: usize) -> usize {
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

//! Code that programs have written: an edit of it is lost with their next run, so nothing is read from it.

use super::Language;

/// Where the words may stand: within so many bytes from the beginning, before the first line of code.
const LOOKED_AT: usize = 16 * 1024;

/// Whether a file says of itself that a program has written it, as its language has it.
pub(super) fn is_generated(language: Language, bytes: &[u8]) -> bool {
    let says: fn(&[u8]) -> bool = match language {
        // <https://go.dev/s/generatedcode>: a line of its own before the first that is no comment.
        Language::Go => |line| {
            line.starts_with(b"// Code generated ") && line.ends_with(b" DO NOT EDIT.") && line.len() > 31
        },
        // By the convention that rustfmt and others keep to.
        Language::Rust => |line| line.starts_with(b"//") && has(line, b"@generated"),
        Language::TypeScript | Language::Tsx | Language::JavaScript | Language::Python => return false,
    };
    let head = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let mut in_comment = false;
    for line in head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if says(line) && !in_comment {
            return true;
        }
        let begins = !in_comment && line.starts_with(b"/*");
        in_comment = (in_comment || begins) && !line.ends_with(b"*/");
        if !(in_comment || begins || line.is_empty() || line.starts_with(b"//") || line.ends_with(b"*/")) {
            return false;
        }
    }
    false
}

fn has(line: &[u8], words: &[u8]) -> bool {
    line.windows(words.len()).any(|it| it == words)
}

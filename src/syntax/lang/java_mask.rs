//! The text of Java as Provost shows it to the grammar, if a file does not parse. All bytes keep their places.
//!
//! - `this(…)` and `super(…)` behind other statements of a constructor become calls of a method, because the grammar knows them only
//!   as the first statement.
//! - `import module java.base;` loses the word `module`.

use super::kotlin_mask::is_of_word;

/// Returns the text for a second parse of a file; `None` if it has no such call.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None::<Vec<u8>>;
    // The last byte that is no blank and in no comment.
    let (mut at, mut last) = (0, b'{');
    while at < bytes.len() {
        let from = at;
        match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = behind_comment(bytes, at);
                continue;
            }
            b'"' | b'\'' => at = behind_text(bytes, at),
            byte if is_of_word(byte) || byte == b'$' => {
                at += bytes[at..].iter().take_while(|it| is_of_word(**it) || **it == b'$').count();
                let is_constructor = matches!(&bytes[from..at], b"this" | b"super")
                    && bytes[at..].iter().find(|it| !it.is_ascii_whitespace()) == Some(&b'(');
                if is_constructor && matches!(last, b';' | b'}' | b'.') {
                    shown.get_or_insert_with(|| bytes.to_vec())[from] = b'_';
                }
                if &bytes[from..at] == b"import" && is_of_module(&bytes[at..]) {
                    let word = at + 1;
                    shown.get_or_insert_with(|| bytes.to_vec())[word..word + 6].fill(b' ');
                }
            }
            _ => at += 1,
        }
        last = bytes[at - 1];
    }
    shown
}

/// Checks whether the text behind the word `import` names a module.
pub(super) fn is_of_module(behind: &[u8]) -> bool {
    behind
        .strip_prefix(b" module ")
        .is_some_and(|it| it.trim_ascii_start().first().is_some_and(|it| is_of_word(*it)))
}

fn behind_comment(bytes: &[u8], from: usize) -> usize {
    let inside = &bytes[from + 2..];
    let length = match bytes[from + 1] {
        b'*' => inside.windows(2).position(|it| it == b"*/").map(|it| it + 2),
        _ => inside.iter().position(|it| *it == b'\n'),
    };
    length.map_or(bytes.len(), |length| from + 2 + length)
}

/// Returns the end of a text, which ends with its line unless it has three quotes.
fn behind_text(bytes: &[u8], from: usize) -> usize {
    let is_block = bytes[from..].starts_with(b"\"\"\"");
    let mut at = from + if is_block { 3 } else { 1 };
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' if !is_block => return at,
            b'"' if is_block && bytes[at..].starts_with(b"\"\"\"") => return at + 3,
            byte if byte == bytes[from] && !is_block => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

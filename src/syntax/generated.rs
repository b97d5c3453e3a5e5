//! Code that programs have written: an edit of it is lost with their next run, so nothing is read from it.

/// Where the words may stand: within so many bytes from the beginning, before the first line of code.
const LOOKED_AT: usize = 16 * 1024;

/// Whether a line of a comment says that a program has written the file.
pub(super) type Says = fn(&[u8]) -> bool;

/// In languages in which nothing is agreed on.
pub(super) fn nothing(_: &[u8]) -> bool {
    false
}

/// <https://go.dev/s/generatedcode>: a line of its own before the first that is no comment.
pub(super) fn as_go_has_it(line: &[u8]) -> bool {
    line.starts_with(b"// Code generated ") && line.ends_with(b" DO NOT EDIT.") && line.len() > 31
}

/// By the convention that rustfmt and others keep to.
pub(super) fn by_mark(line: &[u8]) -> bool {
    const MARK: &[u8] = b"@generated";
    line.starts_with(b"//") && line.windows(MARK.len()).any(|it| it == MARK)
}

/// Whether a file says of itself that a program has written it.
pub(super) fn is_generated(says: Says, bytes: &[u8]) -> bool {
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

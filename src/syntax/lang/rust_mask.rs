//! The text of Rust as Provost shows it to the grammar: the word `safe` before a foreign function or static is blank, because the
//! grammar lacks it. All bytes keep their places.

/// Returns the text for the grammar; `None` if the grammar takes the file itself.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_there =
        |it: &[u8]| matches!(it, [b' ' | b'\t' | b'\n', b's', b'a', b'f', b'e', b' ', b'f' | b's', ..]);
    let mut shown = None::<Vec<u8>>;
    for (at, _) in bytes.windows(7).enumerate().filter(|(_, it)| is_there(it)) {
        let behind = &bytes[at + 6..];
        if behind.starts_with(b"fn ") || behind.starts_with(b"static ") {
            shown.get_or_insert_with(|| bytes.to_vec())[at + 1..at + 5].fill(b' ');
        }
    }
    shown
}

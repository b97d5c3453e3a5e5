//! The text of PHP as Provost shows it to the grammar, if a file does not parse. All bytes keep their places.
//!
//! - `(void) f();` loses its cast, and `final public string $name` among the parameters of a constructor its `final`.
//! - What stands behind `__halt_compiler();` is data and no code.

/// The words before a promoted property. The grammar knows all but `final`.
const BEHIND_FINAL: [&[u8]; 4] = [b"public", b"protected", b"private", b"readonly"];

/// Returns the text for a second parse of a file; `None` if it has none of these.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None::<Vec<u8>>;
    let mut blank = |from: usize, to: usize| {
        let shown = shown.get_or_insert_with(|| bytes.to_vec());
        shown[from..to].iter_mut().filter(|it| !matches!(**it, b'\n' | b'\r')).for_each(|it| *it = b' ');
    };
    // The last byte that is no blank.
    let mut last = b';';
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' if bytes[at..].starts_with(b"(void)")
                && matches!(last, b';' | b'{' | b'}' | b':' | b'p') =>
            {
                blank(at, at + 6);
            }
            b'f' if matches!(last, b'(' | b',' | b']') && is_promoted(&bytes[at..]) => blank(at, at + 5),
            b'_' if bytes[at..].starts_with(b"__halt_compiler();") => {
                blank(at, bytes.len());
                break;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = *byte;
        }
    }
    shown
}

/// Checks whether the text begins with `final` before the words of a promoted property.
fn is_promoted(text: &[u8]) -> bool {
    let Some(behind) = text.strip_prefix(b"final ") else { return false };
    let behind = behind.trim_ascii_start();
    BEHIND_FINAL.iter().any(|word| behind.starts_with(word))
}

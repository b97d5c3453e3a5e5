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
    // The last byte that is no blank, and in no comment.
    let (mut last, mut at) = (b';', 0);
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        if let Some(length) = comment(rest) {
            at += length;
            continue;
        }
        match byte {
            b'(' if rest.starts_with(b"(void)") && matches!(last, b';' | b'{' | b'}' | b':' | b'p') => {
                blank(at, at + 6);
            }
            b'f' if matches!(last, b'(' | b',' | b']') && is_promoted(rest) => blank(at, at + 5),
            b'_' if matches!(last, b';' | b'{' | b'}' | b'p') && halts(rest) => {
                blank(at, bytes.len());
                break;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = *byte;
        }
        at += 1;
    }
    shown
}

/// Returns the length of the comment that begins a text. What looks like one within a literal ends with its line, too.
fn comment(text: &[u8]) -> Option<usize> {
    match text {
        [b'/', b'*', behind @ ..] => {
            Some(2 + behind.windows(2).position(|it| it == b"*/").map_or(behind.len(), |it| it + 2))
        }
        [b'#', b'[', ..] => None,
        [b'/', b'/', ..] | [b'#', ..] => Some(text.iter().take_while(|it| **it != b'\n').count()),
        _ => None,
    }
}

/// Checks whether a text begins with `__halt_compiler();`, in any case.
fn halts(text: &[u8]) -> bool {
    const WORD: &[u8] = b"__halt_compiler";
    let Some((word, behind)) = text.split_at_checked(WORD.len()) else { return false };
    let is_sign = |it: &&u8| !it.is_ascii_whitespace();
    word.eq_ignore_ascii_case(WORD) && behind.iter().take(32).filter(is_sign).take(3).eq(b"();")
}

/// Checks whether the text begins with `final` before the words of a promoted property.
fn is_promoted(text: &[u8]) -> bool {
    let Some(behind) = text.strip_prefix(b"final ") else { return false };
    let behind = behind.trim_ascii_start();
    BEHIND_FINAL.iter().any(|word| behind.starts_with(word))
}

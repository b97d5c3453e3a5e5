//! The text of C# as Provost shows it to the grammar, which lacks the newest parts of the language: only the members of
//! `extension(Store store) { … }`, and `allows ref struct` as one word. All bytes keep their places.

/// Returns the text for the grammar; `None` if the grammar takes the file itself.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None::<Vec<u8>>;
    // Extensions do not contain each other.
    let mut behind = 0;
    for (at, word) in bytes.windows(9).enumerate() {
        match word {
            b"extension" if at >= behind => {
                let Some((open, close)) = block(bytes, at) else { continue };
                behind = close.unwrap_or(bytes.len());
                let Some(close) = close else { continue };
                let shown = shown.get_or_insert_with(|| bytes.to_vec());
                for byte in shown[at..=open].iter_mut().filter(|it| !matches!(**it, b'\n' | b'\r')) {
                    *byte = b' ';
                }
                shown[close] = b' ';
            }
            b"allows re" if bytes[at..].starts_with(b"allows ref struct") => {
                let shown = shown.get_or_insert_with(|| bytes.to_vec());
                (shown[at + 6], shown[at + 10]) = (b'_', b'_');
            }
            _ => {}
        }
    }
    shown
}

/// The most bytes before the members of an extension.
const HEAD_MAX: usize = 4_096;

/// Returns the places of the braces of the extension that the word at a place begins; the second is `None` if it does not end.
fn block(bytes: &[u8], at: usize) -> Option<(usize, Option<usize>)> {
    let before = bytes[..at].trim_ascii_end().last();
    // Attributes and comments may stand before it.
    let is_start = before.is_none_or(|it| matches!(it, b'{' | b'}' | b';' | b']' | b'/'))
        || bytes[at.saturating_sub(HEAD_MAX)..at].trim_ascii_start().is_empty()
        || bytes[..at].iter().rev().find(|it| !matches!(**it, b' ' | b'\t')) == Some(&b'\n');
    if !is_start || !matches!(bytes[at + 9..].trim_ascii_start().first(), Some(b'(' | b'<')) {
        return None;
    }
    let mut open = None;
    let (mut depth, mut brackets, mut from) = (0_usize, 0_usize, at + 9);
    // The members may be long; they are read once, since nothing between their braces begins an extension.
    let head = &bytes[..bytes.len().min(at + HEAD_MAX)];
    let mut text = head;
    while let Some(byte) = text.get(from) {
        match byte {
            b'"' | b'\'' => from = behind_text(text, from) - 1,
            b'/' if matches!(text.get(from + 1), Some(b'/')) => {
                from += text[from..].iter().take_while(|it| **it != b'\n').count();
            }
            b'/' if matches!(text.get(from + 1), Some(b'*')) => {
                let end = text[from + 2..].windows(2).position(|it| it == b"*/");
                from = end.map_or(text.len(), |end| from + 2 + end + 1);
            }
            b'(' => brackets += 1,
            b')' if open.is_none() => brackets = brackets.checked_sub(1)?,
            b'=' | b';' if open.is_none() => return None,
            b'{' => {
                if open.is_none() && brackets > 0 {
                    return None;
                }
                open = open.or(Some(from));
                text = bytes;
                depth += 1;
            }
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return open.map(|open| (open, Some(from)));
                }
            }
            _ => {}
        }
        from += 1;
    }
    open.map(|open| (open, None))
}

/// Returns the end of a text; a text in three or more quotes ends with as many.
fn behind_text(bytes: &[u8], from: usize) -> usize {
    let quotes = bytes[from..].iter().take_while(|it| **it == b'"').count();
    if quotes >= 3 {
        let end = bytes[from + quotes..].windows(quotes).position(|it| it.iter().all(|it| *it == b'"'));
        return end.map_or(bytes.len(), |end| from + quotes + end + quotes);
    }
    let is_verbatim = matches!(from.checked_sub(1).and_then(|it| bytes.get(it)), Some(b'@'))
        || bytes[..from].ends_with(b"@$");
    let mut at = from + 1;
    while at < bytes.len() && bytes[at] != bytes[from] {
        match bytes[at] {
            b'\n' if !is_verbatim => return at,
            b'\\' if !is_verbatim => at += 2,
            _ => at += 1,
        }
    }
    (at + 1).min(bytes.len())
}

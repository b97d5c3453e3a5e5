//! The text of C# as Provost shows it to the grammar, which lacks the newest parts of the language: only the members of
//! `extension(Store store) { … }`, `allows ref struct` as one word, and `operator +` instead of `operator +=`. All bytes keep
//! their places.

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
            [b'o', b'p', b'e', b'r', b'a', b't', b'o', b'r', _] => {
                let before = at.checked_sub(1).map_or(b' ', |it| bytes[it]);
                let is_word = before.is_ascii_whitespace() || before == b'.';
                if let Some(equals) = compound(bytes, at + 8).filter(|_| is_word) {
                    shown.get_or_insert_with(|| bytes.to_vec())[equals] = b' ';
                }
            }
            _ => {}
        }
    }
    shown
}

/// Returns the text for a second parse of a file that did not parse; `None` if it has none of these:
///
/// - `store?.size = 1`, which loses the `?`;
/// - parameters of lambdas with a modifier and no type, `(text, out size) => …`, which lose the modifier;
/// - lines with directives for the program that runs a file, `#:package …`, which are blank.
pub(crate) fn mask_newer(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None::<Vec<u8>>;
    let mut blank = |from: usize, to: usize| {
        let shown = shown.get_or_insert_with(|| bytes.to_vec());
        shown[from..to].iter_mut().filter(|it| !matches!(**it, b'\n' | b'\r')).for_each(|it| *it = b' ');
    };
    for (at, pair) in bytes.windows(2).enumerate() {
        match pair {
            b"?." | b"?[" if is_assigned(&bytes[at + 1..]) => blank(at, at + 1),
            b"=>" => {
                for (from, to) in modifiers_before(bytes, at) {
                    blank(from, to);
                }
            }
            b"#:" if at == 0 || bytes[at - 1] == b'\n' => {
                let line = bytes[at..].iter().take_while(|it| !matches!(**it, b'\n' | b'\r')).count();
                blank(at, at + line);
            }
            _ => {}
        }
    }
    shown
}

/// The most bytes of what is given a value, and of a list of parameters before an arrow.
const TARGET_MAX: usize = 256;

/// Checks whether names and elements behind each other are given a value.
fn is_assigned(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut goes_on = |byte: &u8| {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' if depth > 0 => depth -= 1,
            byte if depth > 0 => return !matches!(byte, b';' | b'{' | b'}'),
            byte => return byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'?' | b'!' | b'@'),
        }
        true
    };
    let target = text.iter().take(TARGET_MAX).take_while(|it| goes_on(it)).count();
    let behind = text[target..].trim_ascii_start();
    let sign = behind.iter().take_while(|it| b"+-*/%&|^<>?=".contains(it)).count();
    let is_given =
        |sign: &[u8]| sign.ends_with(b"=") && !matches!(sign, b"==" | b"!=" | b"<=" | b">=" | b"===");
    is_given(&behind[..sign])
}

/// Returns the modifiers of the parameters between brackets before an arrow, if no parameter has a type.
fn modifiers_before(bytes: &[u8], arrow: usize) -> Vec<(usize, usize)> {
    let Some(inside) = bytes[arrow.saturating_sub(TARGET_MAX)..arrow].trim_ascii_end().strip_suffix(b")")
    else {
        return Vec::new();
    };
    let Some(open) = inside.iter().rposition(|it| matches!(it, b'(' | b')' | b';' | b'{')) else {
        return Vec::new();
    };
    if inside[open] != b'(' {
        return Vec::new();
    }
    let from = arrow.saturating_sub(TARGET_MAX) + open + 1;
    let (mut found, mut at) = (Vec::new(), from);
    for parameter in inside[open + 1..].split(|it| *it == b',') {
        let words: Vec<&[u8]> =
            parameter.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty()).collect();
        if let [b"ref" | b"out" | b"in" | b"scoped", name] = words[..] {
            found.push((at, at + parameter.trim_ascii_end().len() - name.len()));
        }
        at += parameter.len() + 1;
    }
    found
}

/// Returns the place of the equals sign of `operator +=(…)` and `operator checked +=(…)`, by the end of the word `operator`.
fn compound(bytes: &[u8], from: usize) -> Option<usize> {
    let behind_blanks = |at: usize| at + bytes[at..].iter().take_while(|it| it.is_ascii_whitespace()).count();
    let mut at = behind_blanks(from);
    if bytes[at..].starts_with(b"checked") {
        at = behind_blanks(at + 7);
    }
    const SIGNS: [&[u8]; 11] =
        [b">>>=", b">>=", b"<<=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^="];
    let sign = SIGNS.iter().find(|it| bytes[at..].starts_with(it))?;
    let behind = at + sign.len();
    (bytes.get(behind_blanks(behind)) == Some(&b'(')).then_some(behind - 1)
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
        // Each byte is looked at once, however many quotes there are.
        let mut run = 0;
        let ends = |byte: &u8| {
            run = if *byte == b'"' { run + 1 } else { 0 };
            run == quotes
        };
        let end = bytes[from + quotes..].iter().position(ends);
        return end.map_or(bytes.len(), |end| from + quotes + end + 1);
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

//! The text of TypeScript, JavaScript and JSX as Provost shows it to their grammars. All bytes keep their places.
//!
//! - The types in `styled.div<Props>` before a template are blank, because the grammar reads the angles as comparisons.
//! - `import("./store").Store<T>`, a type with type arguments, becomes a name.
//! - An `&` in a text between tags becomes another character, if the file does not parse with it.
//! - In a file of TypeScript that does not parse, `in` and `out` before a parameter of types, `type` of `export type *`, `defer` of
//!   an import and `accessor` are blank, and `using` of a loop becomes `const`.

/// The most bytes between a template and the beginning of its types.
const TYPES_MAX: usize = 4_096;

/// Returns the text for the grammar of TypeScript; `None` if the grammar takes the file itself.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None::<Vec<u8>>;
    for (at, pair) in bytes.windows(2).enumerate() {
        match pair {
            b">`" => {
                if let Some(from) = types_before(bytes, at) {
                    blank(shown.get_or_insert_with(|| bytes.to_vec()), from, at + 1);
                }
            }
            b"t(" if bytes[..=at].ends_with(b"import") => {
                if let Some(end) = imported_type(bytes, at + 1) {
                    shown.get_or_insert_with(|| bytes.to_vec())[at + 1..end].fill(b'_');
                }
            }
            _ => {}
        }
    }
    shown
}

/// Returns the text for a second parse of a file of TypeScript; `None` if it has none of the newer words.
pub(crate) fn mask_newer(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None::<Vec<u8>>;
    // The last byte before the word, without blanks, and the word before it.
    let (mut last, mut before, mut at) = (b';', 0..0, 0);
    while at < bytes.len() {
        if !is_of_word(bytes[at]) {
            if !bytes[at].is_ascii_whitespace() {
                (last, before) = (bytes[at], 0..0);
            }
            at += 1;
            continue;
        }
        let word = at..at + bytes[at..].iter().take_while(|it| is_of_word(**it)).count();
        at = word.end;
        let behind = bytes[at..].trim_ascii_start();
        let (next, is_apart) = (behind.first().copied().unwrap_or_default(), behind.len() < bytes.len() - at);
        let is_before_name = is_apart && (is_of_word(next) || matches!(next, b'#' | b'[' | b'"' | b'\''));
        let is_masked = match (&bytes[word.clone()], &bytes[before.clone()]) {
            (b"type", b"export") => next == b'*',
            (b"defer", b"import") => next == b'*',
            (b"accessor", _) if is_before_name => !matches!(last, b'.' | b',' | b'('),
            (b"in" | b"out", b"" | b"in") => {
                // A parameter of types may have such a name; so may an import or a value.
                let next = &behind[..behind.iter().take_while(|it| is_of_word(**it)).count()];
                let is_name = matches!(next, b"extends" | b"as" | b"satisfies" | b"instanceof")
                    || (next == b"in" && bytes[word.clone()] == *b"out");
                matches!(last, b'<' | b',') && is_before_name && !is_name
            }
            // A method with this name.
            (b"accessor", _) if next == b'(' && !matches!(last, b'.' | b',' | b'(' | b'=') => {
                shown.get_or_insert_with(|| bytes.to_vec())[word.start] = b'_';
                false
            }
            (b"using", b"" | b"await") if matches!(last, b'(') && is_before_name => {
                blank(shown.get_or_insert_with(|| bytes.to_vec()), before.start, before.end);
                shown.get_or_insert_with(|| bytes.to_vec())[word.clone()].copy_from_slice(b"const");
                false
            }
            _ => false,
        };
        if is_masked {
            blank(shown.get_or_insert_with(|| bytes.to_vec()), word.start, word.end);
        }
        before = word;
    }
    shown
}

/// The same for a file with tags, in which each `&` is replaced as well.
pub(crate) fn mask_newer_and_tags(bytes: &[u8]) -> Option<Vec<u8>> {
    let newer = mask_newer(bytes);
    mask_between_tags(newer.as_deref().unwrap_or(bytes)).or(newer)
}

/// Returns the text of a file that does not parse with each `&` replaced; `None` if the file has no tags or no `&`. The replacement
/// is an operator of as many bytes, so that an `&` in code still parses.
pub(crate) fn mask_between_tags(bytes: &[u8]) -> Option<Vec<u8>> {
    let has_tags = bytes.windows(2).any(|it| it == b"</" || it == b"/>");
    let mut shown = None::<Vec<u8>>;
    for at in bytes.iter().enumerate().filter_map(|(at, it)| (has_tags && *it == b'&').then_some(at)) {
        if !is_entity(&bytes[at + 1..]) {
            shown.get_or_insert_with(|| bytes.to_vec())[at] = b'|';
        }
    }
    shown
}

/// Checks whether the text behind an `&` is the name of a character: `&nbsp;`.
fn is_entity(behind: &[u8]) -> bool {
    let name = behind.iter().take_while(|it| it.is_ascii_alphanumeric() || **it == b'#').count();
    name > 0 && behind.get(name) == Some(&b';')
}

/// Returns the place at which the types before a template begin, if they end at `end`.
fn types_before(bytes: &[u8], end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (end.saturating_sub(TYPES_MAX)..=end).rev() {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
        match bytes[at] {
            // The angle of an arrow is no bracket.
            b'>' if before != b'=' => depth += 1,
            b'>' if at == end => return None,
            b'<' => {
                depth -= 1;
                if depth == 0 {
                    let is_called = is_of_word(before) || matches!(before, b')' | b']');
                    return is_called.then_some(at);
                }
            }
            b'`' => return None,
            _ => {}
        }
    }
    None
}

/// Returns the end of `("./store")`, if a type with type arguments follows.
fn imported_type(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from + 1..)?;
    let quote = rest.first().filter(|it| matches!(it, b'"' | b'\''))?;
    let inside = rest[1..].iter().position(|it| it == quote || *it == b'\n')?;
    let end = from + 1 + 1 + inside + 1;
    let mut behind = bytes[end..].strip_prefix(b")")?;
    let mut last = b' ';
    while let Some(named) = behind.strip_prefix(b".") {
        last = named.first().copied()?;
        behind = &named[named.iter().take_while(|it| is_of_word(**it)).count()..];
    }
    // The methods of a promise begin with a small letter.
    (last.is_ascii_uppercase() && behind.first() == Some(&b'<')).then_some(end + 1)
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Blanks a part of a file, but not the ends of its lines.
fn blank(shown: &mut [u8], from: usize, to: usize) {
    for byte in shown[from..to].iter_mut().filter(|it| !matches!(**it, b'\n' | b'\r')) {
        *byte = b' ';
    }
}

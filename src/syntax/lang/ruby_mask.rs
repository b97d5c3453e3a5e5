//! The text of Ruby as Provost shows it to the grammar, if a file does not parse: the grammar does not know that the body of a method
//! without `end` may call another method without brackets. All bytes keep their places.
//!
//! - `def show = puts a, b: c` becomes `def show = puts+a+   c`: each argument stays an expression within the method.
//! - `def show = each a do …` becomes `def show = each(a)do …`.

use super::kotlin_mask::is_of_word;

/// The most bytes of a list of parameters or of arguments that are searched.
const SEARCHED_MAX: usize = 4_096;

/// The most bytes that are searched for the beginning of the next line with code.
const NEXT_LINE_SEARCHED_MAX: usize = 256;

/// Words that begin an expression of their own, and call nothing.
const NO_METHODS: &[&[u8]] = &[
    b"if", b"unless", b"case", b"while", b"until", b"for", b"begin", b"not", b"defined", b"nil", b"true",
    b"false",
];

/// Words that stand behind an expression.
const BEHIND: &[&[u8]] =
    &[b"if", b"unless", b"while", b"until", b"rescue", b"and", b"or", b"in", b"then", b"end"];

/// Returns the text for a second parse of a file; `None` if no method in it has such a body.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None::<Vec<u8>>;
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(4).position(|it| it == b"def ") {
        let at = from + at;
        from = at + 4;
        if !begins_statement(&bytes[..at]) {
            continue;
        }
        if let Some(blank) = body(bytes, from).and_then(|body| behind_command(bytes, body)) {
            let arguments = Arguments::of(bytes, blank + 1);
            arguments.show(blank, shown.get_or_insert_with(|| bytes.to_vec()));
            // What was searched is not searched again.
            from = arguments.end.max(from);
        }
    }
    shown
}

/// Checks whether a definition may begin behind a text: on its line stand words alone, such as `private`. A comment or a literal has other signs.
fn begins_statement(before: &[u8]) -> bool {
    let line = before.iter().rev().take_while(|it| **it != b'\n');
    before.last().is_none_or(|it| !is_of_word(*it))
        && line.take(64).all(|it| is_of_word(*it) || matches!(it, b' ' | b'\t' | b'\r' | b';'))
}

fn byte_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(b'\n')
}

fn behind_blanks(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|it| matches!(**it, b' ' | b'\t')).count()
}

fn behind_word(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|it| is_of_word(**it)).count()
}

/// Returns the place of the body of a method without `end`, by the place of the method's name.
fn body(bytes: &[u8], name: usize) -> Option<usize> {
    let named = behind_blanks(bytes, name);
    let is_name = |it: &&u8| !it.is_ascii_whitespace() && !matches!(**it, b'(' | b';');
    let mut at = named + bytes[named..].iter().take(SEARCHED_MAX).take_while(is_name).count();
    let has_name = at > named;
    at = behind_blanks(bytes, at);
    if byte_at(bytes, at) == b'(' {
        at = behind_blanks(bytes, behind_brackets(bytes, at)?);
    }
    if !has_name || byte_at(bytes, at) != b'=' || !byte_at(bytes, at + 1).is_ascii_whitespace() {
        return None;
    }
    let behind = &bytes[at + 1..];
    Some(at + 1 + behind.iter().take_while(|it| it.is_ascii_whitespace()).count())
}

/// Returns the end of brackets, unless it is far away.
fn behind_brackets(bytes: &[u8], from: usize) -> Option<usize> {
    let bytes = &bytes[..bytes.len().min(from + SEARCHED_MAX)];
    let (mut at, mut depth) = (from, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                at = behind_text(bytes, at);
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
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

/// Returns the end of a text; what is inserted into it may have texts itself.
fn behind_text(bytes: &[u8], from: usize) -> usize {
    let (mut at, mut inserted) = (from + 1, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'#' if bytes[from] == b'"' && byte_at(bytes, at + 1) == b'{' => inserted += 1,
            b'}' => inserted = inserted.saturating_sub(1),
            byte if byte == bytes[from] && inserted == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Returns the place of the blank between a method's name, with its receiver, and its first argument; `None` if no call without
/// brackets stands there.
fn behind_command(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let begins = at + bytes[at..].iter().take_while(|it| matches!(**it, b'@' | b'$')).count();
        at = behind_word(bytes, begins);
        if at == begins || NO_METHODS.contains(&&bytes[from..at]) {
            return None;
        }
        if matches!(byte_at(bytes, at), b'?' | b'!') && byte_at(bytes, at + 1) != b'=' {
            at += 1;
        }
        while matches!(byte_at(bytes, at), b'(' | b'[') {
            at = behind_brackets(bytes, at)?;
        }
        match (byte_at(bytes, at), byte_at(bytes, at + 1)) {
            (b'.', next) if next != b'.' => at += 1,
            (b'&', b'.') | (b':', b':') => at += 2,
            (b' ' | b'\t', _) => break,
            _ => return None,
        }
    }
    begins_argument(bytes, behind_blanks(bytes, at)).then_some(at)
}

/// Checks whether an argument begins at a place behind a blank: an operator has a blank behind it, too.
fn begins_argument(bytes: &[u8], at: usize) -> bool {
    let word = &bytes[at..behind_word(bytes, at)];
    if !word.is_empty() {
        return byte_at(bytes, at + word.len()) == b':' || !BEHIND.contains(&word) && word != b"do";
    }
    let next = byte_at(bytes, at + 1);
    let is_beside = !next.is_ascii_whitespace() && next != b'=';
    match byte_at(bytes, at) {
        b'"' | b'\'' | b'`' | b'@' | b'$' | b'[' | b'(' | b'~' => true,
        b'!' => is_beside && next != b'~',
        b':' | b'*' | b'%' | b'/' => is_beside,
        b'-' => next == b'>' || is_beside,
        b'&' => is_beside && !matches!(next, b'&' | b'.'),
        b'<' => next == b'<' && !byte_at(bytes, at + 2).is_ascii_whitespace(),
        _ => false,
    }
}

/// The arguments of a call without brackets.
struct Arguments {
    /// What the grammar is shown of them, by their places.
    written: Vec<(usize, u8)>,
    end: usize,
    /// Whether `do` follows them, behind a blank.
    has_block: bool,
}

impl Arguments {
    fn of(bytes: &[u8], from: usize) -> Self {
        let bytes = &bytes[..bytes.len().min(from + SEARCHED_MAX)];
        let mut all = Self { written: Vec::new(), end: bytes.len(), has_block: false };
        let mut at = all.begin(bytes, from);
        // The last byte that is no blank, which says whether a line goes on.
        let (mut depth, mut last) = (0_usize, b',');
        while at < bytes.len() {
            let byte = bytes[at];
            match byte {
                b'"' | b'\'' | b'`' => at = behind_text(bytes, at) - 1,
                b'#' => at += bytes[at..].iter().take_while(|it| **it != b'\n').count() - 1,
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth > 0 => depth -= 1,
                b')' | b']' | b'}' | b';' if depth == 0 => return Self { end: at, ..all },
                b'\n' if depth == 0 && !goes_on(bytes, at, last) => return Self { end: at, ..all },
                b',' if depth == 0 => {
                    all.written.push((at, b'+'));
                    at = all.begin(bytes, at + 1) - 1;
                }
                b'=' if depth == 0 && byte_at(bytes, at + 1) == b'>' => {
                    all.written.extend([(at, b'+'), (at + 1, b' ')]);
                    at += 1;
                }
                _ if is_of_word(byte) => {
                    let end = behind_word(bytes, at);
                    let (word, before) = (&bytes[at..end], byte_at(bytes, at - 1));
                    let is_apart = depth == 0 && matches!(before, b' ' | b'\t');
                    if is_apart && (word == b"do" || BEHIND.contains(&word)) {
                        return Self { end: at, has_block: word == b"do", ..all };
                    }
                    at = end - 1;
                }
                _ => {}
            }
            if !byte.is_ascii_whitespace() && byte != b'#' {
                last = byte;
            }
            at += 1;
        }
        all
    }

    /// Blanks what stands before the value of an argument: `key:`, and the signs of a list or a block. Returns the place behind that.
    fn begin(&mut self, bytes: &[u8], from: usize) -> usize {
        let begins = from + bytes[from..].iter().take_while(|it| it.is_ascii_whitespace()).count();
        let signs = bytes[begins..].iter().take_while(|it| matches!(**it, b'*' | b'&')).count();
        let end = begins + signs;
        let is_alone = matches!(byte_at(bytes, end), b',' | b'\n' | b'\r' | b';');
        // A list or a block without a name is passed on.
        self.written.extend((begins..end).map(|at| (at, if is_alone { b'0' } else { b' ' })));
        let word = behind_word(bytes, end);
        if word == end || byte_at(bytes, word) != b':' || byte_at(bytes, word + 1) == b':' {
            return end;
        }
        // `key:` without a value is also the value's name.
        let value = word + 1 + bytes[word + 1..].iter().take_while(|it| it.is_ascii_whitespace()).count();
        let has_value = byte_at(bytes, value) != b',' && !bytes[word + 1..value].contains(&b'\n');
        let blank = if has_value { end..word + 1 } else { word..word + 1 };
        self.written.extend(blank.map(|at| (at, b' ')));
        word + 1
    }

    fn show(&self, blank: usize, shown: &mut [u8]) {
        if self.has_block {
            (shown[blank], shown[self.end - 1]) = (b'(', b')');
        } else {
            shown[blank] = b'+';
            self.written.iter().for_each(|(at, byte)| shown[*at] = *byte);
        }
    }
}

/// Checks whether a list of arguments goes on behind the end of a line.
fn goes_on(bytes: &[u8], at: usize, last: u8) -> bool {
    let next = bytes[at..].get(..NEXT_LINE_SEARCHED_MAX).unwrap_or(&bytes[at..]).trim_ascii_start();
    b",+-*/=|&<.\\".contains(&last)
        || next.starts_with(b"&.")
        || (next.starts_with(b".") && !next.starts_with(b".."))
}

//! Brackets and quotes of a command line.
#![forbid(unsafe_code)]

use provost_base::limits::BRACES_AHEAD_MAX;

/// The part of a text that has not been read yet.
pub(super) type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Returns the text between an opening bracket, which was read, and the bracket that closes it.
pub(super) fn balanced(rest: &mut Rest<'_>) -> String {
    let (mut inner, mut open) = (String::new(), 0_usize);
    for next in rest.by_ref() {
        match next {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        inner.push(next);
    }
    inner.split_off(inner.len().min(1))
}

/// Returns the text between `${`, which was read, and the brace that closes it.
pub(super) fn braced(rest: &mut Rest<'_>) -> String {
    let (mut inner, mut open) = (String::new(), 0_usize);
    for next in rest.by_ref() {
        match next {
            '{' if inner.ends_with('$') => open += 1,
            '}' if open == 0 => break,
            '}' => open -= 1,
            _ => {}
        }
        inner.push(next);
    }
    inner
}

/// Returns a variable's name, and the word that stands for its value where it has none, or takes its place.
pub(super) fn default_of(inner: &str) -> Option<(&str, &str)> {
    let end = inner.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'))?;
    let (name, rest) = inner.split_at(end);
    let default = rest.strip_prefix(':').unwrap_or(rest).strip_prefix(['-', '=', '+'])?;
    (!name.is_empty()).then_some((name, default))
}

/// Returns the text that follows a brace up to the first blank or operator: choices have none.
pub(super) fn ahead_of(rest: &Rest<'_>) -> String {
    let is_in = |sign: &char| !(sign.is_whitespace() || ";|&".contains(*sign));
    rest.clone().take(BRACES_AHEAD_MAX).take_while(is_in).collect()
}

/// Returns the text in `$'…'`, whose beginning was read.
pub(super) fn unescaped(rest: &mut Rest<'_>) -> String {
    let mut text = String::new();
    while let Some(next) = rest.next().filter(|it| *it != '\'') {
        if next != '\\' {
            text.push(next);
            continue;
        }
        match rest.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('x') => text.extend(coded(rest, None, 16, 2)),
            Some('u') => text.extend(coded(rest, None, 16, 4)),
            Some('U') => text.extend(coded(rest, None, 16, 8)),
            Some(first @ '0'..='7') => text.extend(coded(rest, Some(first), 8, 3)),
            other => text.extend(other),
        }
    }
    text
}

/// Reads a sign that is written as a number.
fn coded(rest: &mut Rest<'_>, first: Option<char>, radix: u32, most: usize) -> Option<char> {
    let mut number = first.and_then(|it| it.to_digit(radix)).unwrap_or_default();
    for _ in usize::from(first.is_some())..most {
        let Some(digit) = rest.peek().and_then(|it| it.to_digit(radix)) else { break };
        rest.next();
        number = number.saturating_mul(radix).saturating_add(digit);
    }
    char::from_u32(number)
}

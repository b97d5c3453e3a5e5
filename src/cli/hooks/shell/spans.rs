//! Finds the ends of open parts in a line for a shell: quotations, parentheses, and texts in the following lines.

use super::words::{Chars, SEPARATORS};

/// Skips a text up to the line that ends it, and returns the text.
pub(super) fn pass_text(rest: &mut Chars<'_>, end: &str) -> String {
    let mut text = String::new();
    while rest.peek().is_some() {
        let line: String = rest.by_ref().take_while(|it| *it != '\n').collect();
        if line.trim_start_matches('\t') == end {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Returns the text up to a sign, and removes both.
pub(super) fn up_to(rest: &mut Chars<'_>, end: char) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next().filter(|it| *it != end) {
        match c {
            '\\' => match rest.next() {
                Some(c) if c == end || c == '\\' => text.push(c),
                other => text.extend([c].into_iter().chain(other)),
            },
            c => text.push(c),
        }
    }
    text
}

/// Returns the text up to the parenthesis that closes an open one; parentheses within quotation marks, comments and
/// texts in the following lines do not count.
pub(super) fn up_to_close(rest: &mut Chars<'_>) -> String {
    // An arithmetic parenthesis: it closes as the others do, and has no texts.
    const RECKONS: char = '=';
    let (mut line, mut before) = (String::new(), '(');
    // The closing signs of the open parts; a text in quotation marks may contain such a line of its own.
    let mut open = vec![')'];
    let (mut texts, mut reckoned) = (Vec::new(), 0_usize);
    while let Some(c) = rest.next() {
        let inner = open.last().copied().map(|it| if it == RECKONS { ')' } else { it });
        let reckons = reckoned > 0;
        match (inner, c) {
            (_, '\\') => {
                line.push(c);
                line.extend(rest.next());
                before = c;
                continue;
            }
            (Some(')'), '\'') => {
                line.push(c);
                line.extend(rest.by_ref().take_while(|it| *it != c));
            }
            (Some(')'), '#') if before.is_whitespace() || (before == '(' && !reckons) => {
                while rest.next_if(|it| *it != '\n').is_some() {}
                continue;
            }
            (Some(')'), '<') if !reckons && before != '<' => texts.extend(end_of_text(rest)),
            (Some(')'), '\n') if !texts.is_empty() => {
                line.push(c);
                texts.drain(..).for_each(|end: String| take_text(rest, &end, &mut line));
                before = c;
                continue;
            }
            (Some('"'), '"') | (Some(')'), ')') => {
                reckoned -= usize::from(open.pop() == Some(RECKONS));
            }
            (Some(')'), '"') => open.push('"'),
            (Some(')'), '(') if before == '(' => {
                open.push(RECKONS);
                reckoned += 1;
            }
            (Some(')'), '(') => open.push(')'),
            (Some('"'), '(') if before == '$' => open.push(')'),
            _ => {}
        }
        if open.is_empty() {
            break;
        }
        line.push(c);
        before = c;
    }
    line
}

/// Returns the line that ends the text beginning in the next line, after the first `<` of `<<END`. Removes nothing.
fn end_of_text(rest: &Chars<'_>) -> Option<String> {
    let mut ahead = rest.clone();
    ahead.next_if_eq(&'<')?;
    if ahead.peek() == Some(&'<') {
        return None;
    }
    ahead.next_if_eq(&'-');
    while ahead.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
    let end: String = match ahead.next_if(|it| matches!(it, '\'' | '"')) {
        Some(mark) => ahead.take_while(|it| *it != mark).collect(),
        None => ahead.take_while(|it| !it.is_whitespace() && !SEPARATORS.contains(*it)).collect(),
    };
    Some(end.replace(['\\', '\'', '"'], "")).filter(|it| !it.is_empty())
}

/// Takes lines up to the one that ends a text, which a closing parenthesis may follow.
fn take_text(rest: &mut Chars<'_>, end: &str, line: &mut String) {
    while rest.peek().is_some() {
        while let Some(c) = rest.next_if_eq(&'\t') {
            line.push(c);
        }
        let mut ahead = rest.clone();
        if end.chars().all(|it| ahead.next_if_eq(&it).is_some())
            && ahead.peek().is_none_or(|it| matches!(it, '\n' | ')'))
        {
            line.push_str(end);
            line.push('\n');
            ahead.next_if_eq(&'\n');
            *rest = ahead;
            return;
        }
        line.extend(rest.by_ref().take_while(|it| *it != '\n'));
        line.push('\n');
    }
}

/// Returns the text of `$'…'`.
pub(super) fn escaped(rest: &mut Chars<'_>) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next().filter(|it| *it != '\'') {
        let Some(c) = (if c == '\\' {
            rest.next()
        } else {
            text.push(c);
            continue;
        }) else {
            break;
        };
        let (digits, most, radix) = match c {
            'x' => (String::new(), 2, 16),
            'u' => (String::new(), 4, 16),
            'U' => (String::new(), 8, 16),
            '0'..='7' => (c.to_string(), 3, 8),
            'n' => {
                text.push('\n');
                continue;
            }
            't' => {
                text.push('\t');
                continue;
            }
            c => {
                text.push(c);
                continue;
            }
        };
        let mut digits = digits;
        while digits.len() < most
            && let Some(c) = rest.next_if(|it| it.is_digit(radix))
        {
            digits.push(c);
        }
        text.extend(u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32));
    }
    text
}

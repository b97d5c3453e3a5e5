//! The braces of Kotlin that hold a type's members or the cases of a `when`, and the constructs directly before such braces.

use super::kotlin_mask::{behind_near_brackets, behind_text, is_of_word};
use provost_base::limits::SOURCE_DEPTH_MAX;

/// The most bytes of a head, a condition or a context that are searched, so that hostile files cost no more than others.
pub(super) const HEAD_MAX: usize = 1_024;

/// The open braces and brackets around a place.
#[derive(Default)]
pub(super) struct Bodies {
    open: Vec<Body>,
    /// The construct whose body the next brace opens.
    next: Next,
    /// The number of open brackets within the innermost braces.
    brackets: usize,
}

/// The content of a pair of braces.
#[derive(Clone, Copy)]
struct Body {
    /// Whether the braces hold the members of a type.
    has_members: bool,
    /// Whether the braces hold the constants of an enumeration; false behind the semicolon that ends them.
    has_entries: bool,
    /// Whether the braces hold the cases of a `when`.
    has_cases: bool,
    /// The state outside of the braces: the construct that waits for its body, and the number of open brackets.
    around: (Next, usize),
}

#[derive(Clone, Copy, Default)]
struct Next {
    /// The place of the word `class`, `interface` or `object`, if the type's members may follow.
    of_type: Option<usize>,
    is_enumeration: bool,
    is_when: bool,
}

impl Bodies {
    pub(super) fn word(&mut self, word: &[u8], before: u8, at: usize) {
        // The words between the brackets of a constructor end no type.
        if self.brackets > 0 {
            return;
        }
        match word {
            b"class" | b"interface" | b"object" => self.next.of_type = (before != b':').then_some(at),
            b"enum" => self.next.is_enumeration = true,
            b"when" => self.next = Next { is_when: true, ..Next::default() },
            b"fun" | b"val" | b"var" | b"init" | b"by" | b"typealias" => self.next = Next::default(),
            _ => {}
        }
    }

    /// Takes in a mark. Returns whether the mark ends the members of a type.
    pub(super) fn mark(&mut self, mark: u8) -> bool {
        match mark {
            b'(' | b'[' => self.brackets += 1,
            b')' | b']' => self.brackets = self.brackets.saturating_sub(1),
            b';' => {
                if let Some(inner) = self.open.last_mut().filter(|_| self.brackets == 0) {
                    inner.has_entries = false;
                }
            }
            b'{' => self.begin(),
            b'}' => {
                let Some(ended) = self.open.pop() else { return false };
                (self.next, self.brackets) = ended.around;
                return ended.has_members;
            }
            _ => {}
        }
        false
    }

    fn begin(&mut self) {
        // Brackets deeper than the bound for a file end nothing.
        if self.open.len() >= SOURCE_DEPTH_MAX {
            return;
        }
        let is_free = self.brackets == 0;
        let is_entry = is_free && self.open.last().is_some_and(|it| it.has_entries);
        let Next { of_type, is_enumeration, is_when } = self.next;
        let is_type = of_type.is_some();
        let has_members = is_free && (is_type || is_entry);
        let has_entries = is_free && is_type && is_enumeration;
        let has_cases = is_free && is_when;
        let around = if is_free { (Next::default(), 0) } else { (self.next, self.brackets) };
        self.open.push(Body { has_members, has_entries, has_cases, around });
        (self.next, self.brackets) = (Next::default(), 0);
    }

    /// Checks whether a type's members may follow.
    pub(super) fn is_before_members(&self) -> bool {
        self.next.of_type.is_some() && self.brackets == 0
    }

    /// Returns the place at which that type begins.
    pub(super) fn head(&self) -> Option<usize> {
        self.next.of_type
    }

    /// Checks whether the place is directly within the members of a type.
    pub(super) fn is_among_members(&self) -> bool {
        self.open.last().is_some_and(|it| it.has_members && !it.has_entries) && self.brackets == 0
    }

    /// Checks whether the place is directly within the cases of a `when`.
    pub(super) fn is_among_cases(&self) -> bool {
        self.open.last().is_some_and(|it| it.has_cases) && self.brackets == 0
    }
}

/// Returns the end of the delegate behind `by`, and whether the type's own members follow.
pub(super) fn delegate(bytes: &[u8], from: usize) -> (usize, bool) {
    let behind_blanks = |at: usize| at + bytes[at..].iter().take_while(|it| it.is_ascii_whitespace()).count();
    // The delegate may stand on the next line.
    let mut at = behind_blanks(from);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => return (at, true),
            b',' | b';' | b'}' | b')' => return (at, false),
            b'"' | b'\'' => at = behind_text(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().take_while(|it| **it != b'\n').count();
            }
            b'(' | b'[' => match behind_near_brackets(bytes, at) {
                Some(end) => at = end,
                None => return (at, false),
            },
            b'\n' => {
                let next = behind_blanks(at);
                let goes_on = [&b"."[..], b"?.", b",", b"{", b"where"];
                if !goes_on.iter().any(|it| bytes[next..].starts_with(it)) {
                    return (at, false);
                }
                at = next;
            }
            byte if is_of_word(byte) => {
                let word = at;
                at += bytes[at..].iter().take_while(|it| is_of_word(**it)).count();
                if bytes[word..at] == *b"where" {
                    return (word, false);
                }
            }
            _ => at += 1,
        }
    }
    (at, false)
}

/// Returns `None` unless the `if` at a place is the condition of a case of a `when`; else the place of the `else` of `else if`, if it
/// has one.
pub(super) fn guarded(bytes: &[u8], at: usize) -> Option<Option<usize>> {
    let from = at.saturating_sub(HEAD_MAX);
    let line = bytes[from..at].iter().rposition(|it| *it == b'\n').map_or(from, |it| from + it + 1);
    let before = bytes[line..at].trim_ascii();
    let near = &bytes[at..bytes.len().min(at + HEAD_MAX)];
    let behind = near.split(|it| *it == b'\n').next().unwrap_or_default();
    let has_arrow = |it: &[u8]| it.windows(2).any(|it| it == b"->");
    let last = before.last().copied().unwrap_or(b'{');
    if matches!(last, b'{' | b';' | b'}' | b'=' | b',') || has_arrow(before) || !has_arrow(behind) {
        return None;
    }
    Some((before == b"else").then(|| line + bytes[line..at].iter().take_while(|it| **it != b'e').count()))
}

/// Returns the end of `(a: A)` behind the word `context`, if a declaration follows.
pub(super) fn context(bytes: &[u8], from: usize) -> Option<usize> {
    if bytes.get(from) != Some(&b'(') {
        return None;
    }
    let end = behind_near_brackets(bytes, from)?;
    let inside = bytes[from + 1..end - 1].trim_ascii_start();
    // A call of a function with this name has values between its brackets.
    if !inside.contains(&b':') && !inside.first().is_some_and(u8::is_ascii_uppercase) {
        return None;
    }
    let next = bytes[end..].trim_ascii_start();
    (next.starts_with(b"@") || next.starts_with(b"context(") || is_declaration(next)).then_some(end)
}

/// Checks whether a declaration follows on the same line, behind a blank.
pub(super) fn begins_declaration(behind: &[u8]) -> bool {
    let Some(rest) = behind.strip_prefix(b" ") else { return false };
    let rest = &rest[rest.iter().take_while(|it| **it == b' ').count()..];
    rest.starts_with(b"@") || is_declaration(rest)
}

/// Checks whether the text begins with a word that begins declarations.
fn is_declaration(text: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"abstract",
        b"actual",
        b"class",
        b"companion",
        b"const",
        b"constructor",
        b"data",
        b"enum",
        b"expect",
        b"external",
        b"final",
        b"fun",
        b"infix",
        b"init",
        b"inline",
        b"inner",
        b"interface",
        b"internal",
        b"lateinit",
        b"object",
        b"open",
        b"operator",
        b"override",
        b"private",
        b"protected",
        b"public",
        b"sealed",
        b"suspend",
        b"tailrec",
        b"typealias",
        b"val",
        b"value",
        b"var",
    ];
    let word = &text[..text.iter().take_while(|it| is_of_word(**it)).count()];
    WORDS.contains(&word)
}

//! The text of a file as the grammars of C and C++ see it. They know no macros, and preprocessor conditions only around whole
//! statements and members. Text that would confuse them is blanked out, byte by byte, so that each position stays the same:
//!
//! - macros that stand where no expression does: `API int f(void)`, `class EXPORT A`, `int f(void) UNUSED;`, `Q_OBJECT`;
//! - the lines of a condition within brackets, so that both branches count;
//! - of a condition whose branches make sense only with what is around them, all branches but one.
//!
//! `TEST(a, b) { … }` appears as a function. Blanked text lies within the symbol around it, so that an edit of it is an edit of
//! that symbol.

use std::ops::Range;

use super::c_macros::is_macro_name;
use super::c_tokens::{Kind, Token, tokens};

/// The deepest nesting of conditions that is followed.
const CONDITIONS_MAX: usize = 128;

/// The deepest nesting of brackets in which conditions are followed.
const BRACKETS_MAX: usize = 1_024;

/// The most bytes of the name of a header in a condition.
const HEADER_MAX: usize = 256;

/// The kind of text between brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// Declarations: a file, a namespace, a class.
    Declarations,
    /// Statements.
    Code,
    /// Values, parameters, cases of an enumeration, with commas between them.
    List,
}

/// The blanked text, and the macros in it; `None` where there is nothing to blank.
pub(in super::super) fn mask(source: &[u8]) -> Option<(Vec<u8>, Vec<Range<u32>>)> {
    let mut masking = Masking {
        source,
        written: std::str::from_utf8(source).ok(),
        tokens: tokens(source),
        text: None,
        macros: Vec::new(),
        begins: usize::MAX,
    };
    masking.nested_templates();
    masking.directives();
    masking.conditions();
    masking.tokens.retain(|it| it.kind != Kind::Directive);
    masking.macros();
    let mut macros = masking.macros;
    macros.sort_by_key(|it| it.start);
    masking.text.map(|text| (text, macros))
}

pub(super) struct Masking<'a> {
    pub(super) source: &'a [u8],
    /// The same, if it is UTF-8 to its end.
    written: Option<&'a str>,
    pub(super) tokens: Vec<Token>,
    text: Option<Vec<u8>>,
    macros: Vec<Range<u32>>,
    /// The position at which a statement begins behind one that got a semicolon.
    pub(super) begins: usize,
}

/// An open condition.
struct Condition {
    /// The positions of its directives among the tokens.
    directives: Vec<usize>,
    /// The brackets that were open before it, and at the end of the branch that is kept.
    before: Vec<Around>,
    kept: Option<(usize, Vec<Around>)>,
    /// Whether each branch so far closes the brackets that it opens.
    balanced: bool,
    /// Whether it begins at the boundary of a statement or a member.
    at_boundary: bool,
    /// Whether each branch so far ends at the boundary of a statement or a member.
    ends_well: bool,
}

impl Masking<'_> {
    pub(super) fn word(&self, at: usize) -> &str {
        let Some(token) = self.tokens.get(at).filter(|it| it.kind == Kind::Word) else { return "" };
        match self.written {
            Some(written) => written.get(token.range()).unwrap_or_default(),
            None => std::str::from_utf8(&self.source[token.range()]).unwrap_or_default(),
        }
    }

    pub(super) fn mark(&self, at: usize) -> u8 {
        self.tokens.get(at).map_or(0, |it| if let Kind::Mark(mark) = it.kind { mark } else { 0 })
    }

    pub(super) fn blank(&mut self, range: Range<usize>) {
        let text = self.text.get_or_insert_with(|| self.source.to_vec());
        for byte in text.get_mut(range).into_iter().flatten() {
            if !matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }

    pub(super) fn blank_macro(&mut self, from: usize, to: usize) {
        let (Some(first), Some(last)) = (self.tokens.get(from), self.tokens.get(to)) else { return };
        let range = first.start..last.end;
        self.blank(range.start as usize..range.end as usize);
        // A macro that begins or ends a part of a file, or describes a class, is no part of the definition below it.
        let text = self.word(from);
        if !["BEGIN", "END", "DECLS", "NAMESPACE", "Q_"].iter().any(|it| text.contains(it)) {
            self.macros.push(range);
        }
    }

    /// Blanks the words of a row that are macros.
    pub(super) fn blank_all(&mut self, all: &[usize]) {
        all.iter().for_each(|at| self.blank_macro(*at, *at));
    }

    /// Writes something over what is blank by now.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let text = self.text.get_or_insert_with(|| self.source.to_vec());
        if let Some(place) = text.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Shows a value instead of some tokens.
    pub(super) fn show_value(&mut self, from: usize, to: usize) {
        let (Some(first), Some(last)) = (self.tokens.get(from), self.tokens.get(to)) else { return };
        let (start, end) = (first.start as usize, last.end as usize);
        self.blank(start..end);
        self.write(start, b"0");
    }

    pub(super) fn is_line_between(&self, a: usize, b: usize) -> bool {
        let (Some(a), Some(b)) = (self.tokens.get(a), self.tokens.get(b)) else { return true };
        self.source.get(a.end as usize..b.start as usize).is_some_and(|between| between.contains(&b'\n'))
    }

    /// Comments within a directive end it for the grammar, and names of headers are no values to it.
    fn directives(&mut self) {
        for at in 0..self.tokens.len() {
            if self.tokens[at].kind != Kind::Directive {
                continue;
            }
            let range = self.tokens[at].range();
            let text = &self.source[range.clone()];
            let mut from = 0;
            while let Some(start) = text[from..].windows(2).position(|it| it == b"/*").map(|it| from + it) {
                let end = text[start..]
                    .windows(2)
                    .position(|it| it == b"*/")
                    .map_or(text.len(), |it| start + it + 2);
                // One at the end is no trouble.
                if text[end..].iter().any(|it| !it.is_ascii_whitespace() && *it != b'\\') {
                    self.blank(range.start + start..range.start + end);
                }
                from = end;
            }
            if matches!(directive(self.source, self.tokens[at]), Directive::If | Directive::Else) {
                self.headers_in(range);
            }
        }
    }

    /// `(<name>)` and `("name")` become `(0)`.
    fn headers_in(&mut self, range: Range<usize>) {
        let text = &self.source[range.clone()];
        let mut from = 0;
        while let Some(open) = text[from..].iter().position(|it| *it == b'(').map(|it| from + it) {
            from = open + 1;
            let near = &text[from..text.len().min(from + HEADER_MAX)];
            let Some(end) = near.iter().position(|it| *it == b')').map(|it| from + it) else { continue };
            let inside = text[from..end].trim_ascii();
            let is_header = [(b'<', b'>'), (b'"', b'"')].iter().any(|(first, last)| {
                inside.len() > 2 && inside.first() == Some(first) && inside.last() == Some(last)
            });
            if is_header {
                self.blank(range.start + from..range.start + end);
                self.write(range.start + from, b"0");
            }
        }
    }

    /// Looks at conditions from the inside out.
    fn conditions(&mut self) {
        let mut open: Vec<Condition> = Vec::new();
        let mut around: Vec<Around> = Vec::new();
        let mut beyond = 0_usize;
        let mut dead = vec![false; self.tokens.len()];
        // The last token that counts.
        let mut last: Option<usize> = None;
        for at in 0..self.tokens.len() {
            let token = self.tokens[at];
            match token.kind {
                Kind::Directive => match directive(self.source, token) {
                    // What is deeper counts as a part of the condition around it.
                    Directive::If if open.len() >= CONDITIONS_MAX || around.len() >= BRACKETS_MAX => {
                        beyond += 1
                    }
                    Directive::Else | Directive::End if beyond > 0 => {
                        beyond -= usize::from(matches!(directive(self.source, token), Directive::End));
                    }
                    Directive::If => open.push(Condition {
                        directives: vec![at],
                        before: around.clone(),
                        kept: None,
                        balanced: true,
                        at_boundary: self.is_boundary(last),
                        ends_well: true,
                    }),
                    Directive::Else => {
                        let Some(condition) = open.last_mut() else { continue };
                        branch_ends(condition, at, &around, &dead, &self.tokens, self.source);
                        condition.directives.push(at);
                        around.clone_from(&condition.before);
                    }
                    Directive::End => {
                        let Some(mut condition) = open.pop() else { continue };
                        branch_ends(&mut condition, at, &around, &dead, &self.tokens, self.source);
                        condition.directives.push(at);
                        around = self.settle(&condition, &mut dead);
                    }
                    Directive::Other if around.last() == Some(&Around::List) => {
                        let range = token.range();
                        self.blank(range);
                        dead[at] = true;
                    }
                    Directive::Other => {}
                },
                Kind::Mark(b'(' | b'[') => around.push(Around::List),
                Kind::Mark(b'{') => around.push(self.opened(at, around.last().copied())),
                Kind::Mark(b')' | b']' | b'}') => drop(around.pop()),
                _ => {}
            }
            if token.kind != Kind::Directive && !dead[at] {
                last = Some(at);
            }
        }
        // Open conditions at the end of a file are the grammar's business.
        let mut at = 0;
        self.tokens.retain(|_| {
            at += 1;
            !dead[at - 1]
        });
    }

    /// Whether a statement or a member may begin behind a token.
    fn is_boundary(&self, last: Option<usize>) -> bool {
        last.is_none_or(|at| matches!(self.mark(at), b';' | b'{' | b'}' | b':'))
    }

    /// What stands between the bracket at a place and its end.
    pub(super) fn opened(&self, at: usize, around: Option<Around>) -> Around {
        if around == Some(Around::List) || at == 0 {
            // A lambda among arguments has code.
            let is_lambda = at > 0 && matches!(self.mark(at - 1), b')' | b']');
            return if is_lambda { Around::Code } else { Around::List };
        }
        if matches!(self.mark(at - 1), b'=' | b',') || self.word(at - 1) == "return" {
            return Around::List;
        }
        let mut from = at;
        let mut is_of_type = false;
        while from > 0 && at - from < 64 {
            from -= 1;
            match self.mark(from) {
                b';' | b'{' | b'}' => break,
                b')' => {
                    // Brackets of attributes and macros may stand behind `class`.
                    let opening = self.opening(from);
                    let before = opening.checked_sub(1).map_or("", |it| self.word(it));
                    if !(is_macro_name(before) || before.starts_with("__") || before == "alignas")
                        && opening != from
                    {
                        return Around::Code;
                    }
                    from = opening;
                    continue;
                }
                _ => {}
            }
            match self.word(from) {
                "enum" => return Around::List,
                "namespace" | "extern" | "class" | "struct" | "union" => is_of_type = true,
                _ => {}
            }
        }
        if is_of_type { Around::Declarations } else { Around::Code }
    }

    /// The bracket that one closes, not too far before it.
    pub(super) fn opening(&self, closing: usize) -> usize {
        let mut depth = 0_u32;
        for at in (closing.saturating_sub(256)..=closing).rev() {
            match self.mark(at) {
                b')' => depth += 1,
                b'(' => {
                    depth -= 1;
                    if depth == 0 {
                        return at;
                    }
                }
                _ => {}
            }
        }
        closing
    }

    pub(super) fn closing(&self, opening: usize) -> Option<usize> {
        let mut depth = 0_u32;
        for at in opening..self.tokens.len().min(opening + 512) {
            match self.mark(at) {
                b'(' => depth += 1,
                b')' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Checks whether a branch in a list ends with a value and the next branch begins with a value, with no comma between them.
    fn branches_clash(&self, condition: &Condition, dead: &[bool]) -> bool {
        let alive = |from: usize, to: usize| {
            (from + 1..to).filter(|it| !dead[*it] && self.tokens[*it].kind != Kind::Directive)
        };
        let is_operand = |at: usize, bracket: &[u8]| match self.tokens[at].kind {
            Kind::Word => true,
            Kind::Mark(mark) => bracket.contains(&mark),
            // Texts beside each other are one.
            Kind::Value => self.source.get(self.tokens[at].start as usize) != Some(&b'"'),
            Kind::Directive => false,
        };
        condition.directives.windows(3).any(|it| {
            let [from, between, to] = it else { return false };
            let ends = alive(*from, *between).next_back().is_some_and(|it| is_operand(it, b")]}"));
            ends && alive(*between, *to).next().is_some_and(|it| is_operand(it, b"("))
        })
    }

    /// Leaves a condition to the grammar, or blanks its lines, or all of its branches but one; what is open behind it.
    fn settle(&mut self, condition: &Condition, dead: &mut [bool]) -> Vec<Around> {
        let in_list = condition.before.last() == Some(&Around::List);
        if condition.balanced && !in_list && condition.at_boundary && condition.ends_well {
            return condition.before.clone();
        }
        for directive in &condition.directives {
            let range = self.tokens[*directive].range();
            self.blank(range);
            dead[*directive] = true;
        }
        if condition.balanced && in_list && !self.branches_clash(condition, dead) {
            return condition.before.clone();
        }
        let (kept, around) =
            condition.kept.clone().unwrap_or_else(|| (condition.directives[0], condition.before.clone()));
        for pair in condition.directives.windows(2) {
            let [from, to] = pair else { continue };
            if *from == kept {
                continue;
            }
            let range = self.tokens[*from].end as usize..self.tokens[*to].start as usize;
            self.blank(range);
            dead[*from..*to].fill(true);
        }
        around
    }
}

/// What a branch was.
fn branch_ends(
    condition: &mut Condition,
    at: usize,
    around: &[Around],
    dead: &[bool],
    tokens: &[Token],
    source: &[u8],
) {
    let from = condition.directives.last().copied().unwrap_or(at);
    let alive = || (from + 1..at).filter(|it| !dead[*it] && tokens[*it].kind != Kind::Directive);
    let mut depth = 0_i32;
    let mut lowest = 0_i32;
    for it in alive() {
        match tokens[it].kind {
            Kind::Mark(b'(' | b'[' | b'{') => depth += 1,
            Kind::Mark(b')' | b']' | b'}') => {
                depth -= 1;
                lowest = lowest.min(depth);
            }
            _ => {}
        }
    }
    condition.balanced &= depth == 0 && lowest == 0;
    let first = alive().next();
    let begins_well = first.is_none_or(|it| {
        let text = source.get(tokens[it].range()).unwrap_or_default();
        let goes_on = |mark: u8| !b"{}(*;~[:+-".contains(&mark);
        text != b"else" && !matches!(tokens[it].kind, Kind::Mark(mark) if goes_on(mark))
    });
    let last = alive().next_back();
    let ends_well = last.is_none_or(|it| matches!(tokens[it].kind, Kind::Mark(b';' | b'}' | b':')))
        || is_a_lone_macro(
            last.map_or(&[][..], |it| source.get(tokens[it].range()).unwrap_or_default()),
            alive().count(),
        );
    condition.ends_well &= ends_well && begins_well;
    let directive = source.get(tokens[from].range()).unwrap_or_default();
    let is_never =
        directive.trim_ascii().strip_suffix(b"0").is_some_and(|it| it.trim_ascii_end().ends_with(b"if"));
    if condition.kept.is_none() && first.is_some() && !is_never {
        condition.kept = Some((from, around.to_vec()));
    }
}

fn is_a_lone_macro(word: &[u8], count: usize) -> bool {
    count == 1 && std::str::from_utf8(word).is_ok_and(is_macro_name)
}

enum Directive {
    If,
    Else,
    End,
    Other,
}

fn directive(source: &[u8], token: Token) -> Directive {
    let text = source.get(token.range()).unwrap_or_default();
    let text = text.strip_prefix(b"#").unwrap_or(text).trim_ascii_start();
    match () {
        () if text.starts_with(b"if") => Directive::If,
        () if text.starts_with(b"el") => Directive::Else,
        () if text.starts_with(b"endif") => Directive::End,
        () => Directive::Other,
    }
}

/// Whether a header says anything that C does not have, outside of comments and texts.
pub(in super::super) fn is_cpp(source: &[u8]) -> bool {
    let tokens = tokens(source);
    let text = |at: usize| tokens.get(at).map_or(&b""[..], |it| source.get(it.range()).unwrap_or_default());
    let is_word = |at: usize| tokens.get(at).is_some_and(|it| it.kind == Kind::Word);
    (0..tokens.len()).any(|at| match tokens[at].kind {
        Kind::Word => match text(at) {
            b"class" | b"namespace" | b"using" | b"typename" => is_word(at + 1) || text(at + 1) == b"{",
            b"template" => text(at + 1) == b"<",
            b"public" | b"private" | b"protected" => text(at + 1) == b":",
            b"virtual" | b"friend" | b"constexpr" | b"explicit" => is_word(at + 1),
            b"static_cast" | b"dynamic_cast" | b"reinterpret_cast" | b"const_cast" => text(at + 1) == b"<",
            b"operator" => {
                tokens.get(at + 1).is_some_and(|it| matches!(it.kind, Kind::Mark(_))) && text(at + 1) != b";"
            }
            _ => false,
        },
        Kind::Mark(b':') => text(at + 1) == b":" && tokens[at].end == tokens[at + 1].start && is_word(at + 2),
        // The library of C++ has names without an end.
        Kind::Directive => is_include_of_cpp(text(at)),
        _ => false,
    })
}

fn is_include_of_cpp(line: &[u8]) -> bool {
    let line = std::str::from_utf8(line).unwrap_or_default().trim_start_matches(['#', ' ', '\t']);
    let named = line
        .strip_prefix("include")
        .map(str::trim)
        .and_then(|it| it.strip_prefix('<'))
        .and_then(|it| it.split_once('>'));
    named.is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
    })
}

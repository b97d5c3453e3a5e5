//! Macros in places where the grammars of C and C++ expect none: before declarations, behind parameters, on lines of their own.

use super::c_macros::is_macro_name;
use super::c_mask::{Around, Masking};
use super::c_tokens::Kind;
use super::c_words::{BEGINNINGS, STATEMENTS, TYPES, is_like_a_macro};

/// The most words of one type or name, so that hostile files cost no more than others.
pub(super) const WORDS_MAX: usize = 128;

impl Masking<'_> {
    /// Looks through all tokens, once.
    pub(super) fn macros(&mut self) {
        let mut around: Vec<(Around, usize)> = Vec::new();
        let mut at = 0;
        let mut is_start = true;
        while at < self.tokens.len() {
            let here = around.last().map_or(Around::Declarations, |it| it.0);
            if (is_start || at == self.begins) && self.tokens[at].kind == Kind::Word {
                at = match here {
                    Around::Declarations => self.declaration(at, around.last().map_or(usize::MAX, |it| it.1)),
                    Around::Code => self.statement(at),
                    Around::List => at,
                };
                if at >= self.tokens.len() {
                    break;
                }
            }
            self.one(at, here);
            match self.mark(at) {
                b'(' | b'[' => around.push((Around::List, at)),
                b'{' => {
                    let last = around.last().map(|it| it.0);
                    around.push((self.opened(at, last), at));
                }
                b')' | b']' | b'}' => {
                    around.pop();
                    if self.mark(at) == b']' {
                        self.attributes_behind(at + 1);
                    }
                }
                b'=' if self.mark(at + 1) == b'{' => {
                    if let Some((Around::List, opening)) = around.last().copied() {
                        self.default_value(at + 1, opening);
                    }
                }
                _ => {}
            }
            let here = around.last().map_or(Around::Declarations, |it| it.0);
            is_start = match self.mark(at) {
                b';' | b'}' => here != Around::List,
                b'{' => here != Around::List,
                b':' => {
                    let before = at.checked_sub(1).map_or("", |it| self.word(it));
                    matches!(
                        before,
                        "public" | "private" | "protected" | "slots" | "signals" | "Q_SLOTS" | "Q_SIGNALS"
                    )
                }
                _ => false,
            };
            if self.mark(at) == b')' && here == Around::Declarations {
                at = self.behind_parameters(at + 1);
            } else {
                at += 1;
            }
        }
    }

    /// What one token alone decides.
    fn one(&mut self, at: usize, here: Around) {
        match self.tokens[at].kind {
            Kind::Word => {
                match self.word(at) {
                    "new" => self.made(at),
                    // `return typename T::type();`
                    "typename" if at > 0 && self.word(at - 1) == "return" => self.blank_range(at, at),
                    "operator" => self.called_operator(at),
                    _ => self.newer_at_word(at),
                }
                if self.mark(at + 1) == b'(' || is_like_a_macro(self.word(at)) {
                    let before = at.checked_sub(1).map_or(0, |it| self.mark(it));
                    // `__attribute__((fallthrough));`
                    if matches!(before, b':' | b';' | b'{' | b'}') && here == Around::Code {
                        self.attributes_behind(at);
                    }
                    self.beside_values(at, here);
                }
            }
            Kind::Mark(b'(') => {
                // `(CALL *name)` of a pointer to a function.
                let is_pointer = self.mark(at + 2) == b'*' && is_macro_name(self.word(at + 1));
                if is_pointer && self.mark(at + 4) == b')' && self.mark(at + 5) == b'(' {
                    self.blank_range(at + 1, at + 1);
                }
                self.type_of_pointer_to_member(at + 1);
                // `(this auto&& self)` of a member that names the object that it is called on.
                if self.word(at + 1) == "this" && !self.word(at + 2).is_empty() {
                    self.blank_range(at + 1, at + 1);
                }
                if at > 0 {
                    match here {
                        Around::Declarations => self.parameters(at),
                        Around::Code | Around::List => self.arguments(at),
                    }
                }
            }
            Kind::Mark(b'*') => self.pointer_to_member(at),
            Kind::Mark(b'[' | b'~' | b':' | b',') => self.newer_at_mark(at, here),
            _ => {}
        }
    }

    /// Shows the operator of `store.operator=(other)` as a name of as many bytes.
    fn called_operator(&mut self, at: usize) {
        let before = at.checked_sub(1).map_or(0, |it| self.mark(it));
        let open = (at + 1..at + 5).find(|it| self.mark(*it) == b'(');
        let (Some(open), b'.' | b'>') = (open, before) else { return };
        let (start, end) = (self.tokens[at].end as usize, self.tokens[open].start as usize);
        let is_sign = |it: &u8| b"=!<>+-*/%&|^~[],".contains(it);
        if start < end && self.source.get(start..end).is_some_and(|it| it.iter().all(is_sign)) {
            self.write(start, &vec![b'_'; end - start]);
        }
    }

    /// Shows `(Store::*name)` as `(*name)`.
    fn type_of_pointer_to_member(&mut self, from: usize) {
        let mut at = from;
        while !self.word(at).is_empty() && self.mark(at + 1) == b':' && self.mark(at + 2) == b':' {
            at += 3;
        }
        if at > from && self.mark(at) == b'*' && !self.word(at + 1).is_empty() && self.mark(at + 2) == b')' {
            self.blank_range(from, at - 1);
        }
    }

    /// Shows `(store.*name)(…)` and `(store->*name)(…)` with another operator, because the grammar lacks these.
    fn pointer_to_member(&mut self, at: usize) {
        let is_beside = |a: usize, b: usize| self.tokens[a].end == self.tokens[b].start;
        let Some(before) = at.checked_sub(1).filter(|it| is_beside(*it, at)) else { return };
        let from = match self.mark(before) {
            b'.' => Some(before),
            b'>' => before.checked_sub(1).filter(|it| self.mark(*it) == b'-' && is_beside(*it, before)),
            _ => None,
        };
        if let Some(from) = from {
            self.blank_range(from, at);
            self.write(self.tokens[from].start as usize, b"+");
        }
    }

    /// `new char *[n]`
    fn made(&mut self, at: usize) {
        let mut next = at + 1;
        while next < at + WORDS_MAX && (!self.word(next).is_empty() || self.mark(next) == b':') {
            next += 1;
        }
        if matches!(self.word(at + 1), "const" | "volatile") {
            self.blank_range(at + 1, at + 1);
        }
        let from = next;
        while self.mark(next) == b'*' {
            next += 1;
        }
        if next > from && self.mark(next) == b'[' {
            (from..next).for_each(|it| self.blank_range(it, it));
        }
    }

    /// `) NOTHROW;`, `) const OVERRIDE {`, `) PRINTF_LIKE(1, 2);`
    fn behind_parameters(&mut self, from: usize) -> usize {
        let goes_on = |it: &str| matches!(it, "const" | "noexcept" | "override" | "final" | "volatile");
        let mut at = from;
        while goes_on(self.word(at)) {
            at += 1;
        }
        let first = at;
        let mut found: Vec<(usize, usize)> = Vec::new();
        while is_like_a_macro(self.word(at))
            && !self.word(at).starts_with("__attribute")
            && self.word(at) != "__asm__"
        {
            let end = if self.mark(at + 1) == b'(' { self.closing(at + 1).unwrap_or(at) } else { at };
            found.push((at, end));
            at = end + 1;
            while goes_on(self.word(at)) {
                at += 1;
            }
        }
        if !found.is_empty() && matches!(self.mark(at), b';' | b'{' | b':' | b'=') {
            found.into_iter().for_each(|(from, to)| self.blank_range(from, to));
            return at;
        }
        first
    }

    /// The words with which a declaration begins, in the class that a bracket opens; the place behind what was looked at.
    fn declaration(&mut self, from: usize, class: usize) -> usize {
        let mut at = from;
        loop {
            match self.word(at) {
                "Q_OBJECT" | "Q_GADGET" | "Q_NAMESPACE" => {
                    self.blank_range(at, at);
                    at += 1;
                }
                "public" | "private" | "protected" if matches!(self.word(at + 1), "slots" | "Q_SLOTS") => {
                    self.blank_range(at + 1, at + 1);
                    return at + 2;
                }
                "signals" | "Q_SIGNALS" if self.mark(at + 1) == b':' => {
                    self.blank_range(at, at + 1);
                    at += 2;
                }
                "export" | "import" | "module" => match self.of_module(at) {
                    Some(behind) => at = behind,
                    None => break,
                },
                // `template class A<int>;` defines nothing.
                "extern" if self.word(at + 1) == "template" => {
                    self.blank_range(at, at);
                    at += 1;
                }
                "template" if self.mark(at + 1) != b'<' => {
                    match (at..self.tokens.len().min(at + 256)).find(|it| self.mark(*it) == b';') {
                        Some(end) => {
                            self.blank_range(at, end);
                            at = end + 1;
                        }
                        None => return at + 1,
                    }
                }
                word if self.mark(at + 1) == b'('
                    && !word.is_empty()
                    && !STATEMENTS.contains(word)
                    && !self.is_name_of_class(at, class) =>
                {
                    match self.called(at) {
                        Some(behind) => at = behind,
                        None => return at,
                    }
                }
                // On a line of its own before what is no declaration.
                word if is_macro_name(word) && self.is_line_between(at, at + 1) && self.ends_at(at + 1) => {
                    self.blank_range(at, at);
                    at += 1;
                }
                "template" => match self.behind_angles(at + 1) {
                    Some(behind) => at = behind,
                    None => return at + 1,
                },
                _ => break,
            }
        }
        self.words(at, class)
    }

    /// Whether what is around ends, a definition begins, or a macro with brackets follows.
    fn ends_at(&self, at: usize) -> bool {
        at >= self.tokens.len()
            || BEGINNINGS.contains(self.word(at))
            || self.mark(at) == b'}'
            || (is_macro_name(self.word(at)) && self.mark(at + 1) == b'(')
    }

    /// The place behind `<…>`; macros among the parameters of a template become types.
    pub(super) fn behind_angles(&mut self, opening: usize) -> Option<usize> {
        let mut depth = 0_u32;
        let mut at = opening;
        while at < self.tokens.len().min(opening + 512) {
            match self.mark(at) {
                b'<' => depth += 1,
                b'>' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                b'(' => {
                    let closing = self.closing(at)?;
                    let is_parameter = depth == 1 && matches!(self.mark(at.saturating_sub(2)), b',' | b'<');
                    if is_parameter && is_macro_name(self.word(at - 1)) {
                        self.show_type(at - 1, at, closing);
                    }
                    at = closing;
                }
                b';' | b'{' => return None,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// `NAME(…)` where a declaration begins: it defines a function, stands for a type, or stands alone. The place behind it, if a
    /// declaration begins there.
    fn called(&mut self, at: usize) -> Option<usize> {
        let closing = self.closing(at + 1)?;
        let next = closing + 1;
        if !is_macro_name(self.word(at)) {
            let is_end = next >= self.tokens.len() || self.mark(next) == b'}' || !self.word(next).is_empty();
            let goes_on =
                matches!(self.word(next), "const" | "noexcept" | "override" | "final" | "volatile" | "throw");
            if !is_end || goes_on || !self.is_line_between(closing, next) {
                return None;
            }
            self.blank_range(at, closing);
            return Some(next);
        }
        if self.mark(next) == b'{' {
            self.show_as_function(at, closing);
            return None;
        }
        if self.mark(next) == b';' {
            self.values(at + 1);
            return None;
        }
        let is_end = next >= self.tokens.len() || matches!(self.mark(next), b'}' | b'~' | b'[');
        if self.word(next).is_empty() && !is_end {
            return None;
        }
        let name = self.word(at);
        // `EXTERN(void) f(…)`: what is between the brackets is the type.
        let is_type = closing > at + 2
            && (at + 2..closing).all(|it| !self.word(it).is_empty() || self.mark(it) == b'*')
            && self.mark(next + 1) == b'('
            && !is_macro_name(self.word(next))
            && !STATEMENTS.contains(self.word(next))
            && !name.contains("TEST");
        if is_type {
            self.blank_macro(at, at + 1);
            self.blank_macro(closing, closing);
            return Some(at + 2);
        }
        let goes_on = BEGINNINGS.contains(self.word(next)) || TYPES.contains(self.word(next));
        if is_end || goes_on || self.is_line_between(closing, next) {
            // On a line of its own it is nothing that the next definition begins with.
            if self.is_line_between(closing, next) {
                self.blank_range(at, closing)
            } else {
                self.blank_macro(at, closing)
            }
            return Some(next);
        }
        None
    }

    /// `TEST(a, b) {` becomes `void a()    {`, in as many bytes, and `TEST("a b") {` becomes `void  ___() {`.
    fn show_as_function(&mut self, at: usize, closing: usize) {
        let first = self.tokens[at + 2];
        let (start, end) = (self.tokens[at].start as usize, self.tokens[closing].end as usize);
        let (mut name, mut rest) = (first.start as usize, first.end as usize);
        let is_text = first.kind == Kind::Value && self.source[name] == b'"';
        if is_text {
            (name, rest) = (name + 1, rest - 1);
        }
        // A text without an end, or with escapes, is no name.
        let text = self.source.get(name..rest).unwrap_or_default();
        let is_name = !text.is_empty() && !text.contains(&b'\\') && self.source.get(rest) != Some(&b'\n');
        let has_two = is_text || (first.kind == Kind::Word && closing >= at + 3);
        if !is_name || !has_two {
            return;
        }
        let word: &[u8] = if name - start > 4 { b"void" } else { b"int" };
        // `TEST(a) {`: one byte less than `()` needs; a blank before the body is as good.
        let end = if end - rest < 2 { end + 1 } else { end };
        let is_free = self.source.get(rest..end).is_some_and(|it| it.len() >= 2 && !it.contains(&b'{'));
        if name - start <= word.len() || !is_free {
            return;
        }
        self.blank(start..name);
        self.blank(rest..end);
        self.write(start, word);
        if is_text {
            self.write(name, &vec![b'_'; rest - name]);
        }
        self.write(rest, b"()");
    }
}

//! Macros of C and C++ around values: types and operators as arguments, concatenated texts, statements without a
//! semicolon.

use super::c_macros::is_macro_name;
use super::c_mask::{Around, Masking};
use super::c_tokens::Kind;
use super::c_words::{BEGINNINGS, QUALIFIERS, STATEMENTS, TYPES, is_like_a_macro};

impl Masking<'_> {
    /// Macros beside texts and other macros stand for texts; those behind a name in a list say something of it.
    pub(super) fn beside_values(&mut self, at: usize, here: Around) {
        let Some(before) = at.checked_sub(1) else { return };
        if self.tokens[at].kind != Kind::Word || STATEMENTS.contains(self.word(at)) {
            return;
        }
        let end = if self.mark(at + 1) == b'(' { self.closing(at + 1).unwrap_or(at) } else { at };
        let is_call = end > at;
        let is_text = |it: usize| {
            self.tokens
                .get(it)
                .is_some_and(|it| it.kind == Kind::Value && self.source.get(it.start as usize) == Some(&b'"'))
        };
        let is_value = |it: usize| self.tokens.get(it).is_some_and(|it| it.kind == Kind::Value);
        let ends = matches!(self.mark(end + 1), b',' | b')' | b'}' | b';' | b'=' | b']');
        let is_macro = is_like_a_macro(self.word(at));
        let is_operator = before > 0 && self.word(before - 1) == "operator";
        let is_between = is_call && !is_operator && (is_text(before) || is_text(end + 1));
        let is_behind_value = here != Around::Declarations && is_value(before) && !is_text(before) && ends;
        let is_behind_name =
            is_macro && here == Around::List && ends && (self.is_name(before) || self.mark(before) == b']');
        let is_behind_macro = is_macro
            && here == Around::Code
            && is_macro_name(self.word(before))
            && (ends || is_like_a_macro(self.word(at + 1)))
            && before > 0
            && (self.mark(before - 1) != b';'
                && self.mark(before - 1) != b'{'
                && self.mark(before - 1) != b'}');
        if is_between || is_behind_value || is_behind_name || is_behind_macro {
            self.blank_range(at, end);
        }
    }

    /// Whether a word is none of the language's own.
    pub(super) fn is_name(&self, at: usize) -> bool {
        let word = self.word(at);
        let known = [STATEMENTS, TYPES, QUALIFIERS, BEGINNINGS].iter().any(|all| all.contains(word));
        !word.is_empty() && !known
    }

    pub(super) fn blank_range(&mut self, from: usize, to: usize) {
        let (Some(first), Some(last)) = (self.tokens.get(from), self.tokens.get(to)) else { return };
        let range = first.start as usize..last.end as usize;
        self.blank(range);
    }

    /// The parts between commas, of what is between a bracket and its end.
    pub(super) fn parts(&self, opening: usize) -> Option<(Vec<(usize, usize)>, usize)> {
        let closing = self.closing(opening)?;
        let (mut parts, mut from, mut depth) = (Vec::new(), opening + 1, 0_i32);
        for at in opening + 1..closing {
            match self.mark(at) {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth -= 1,
                b',' if depth == 0 => {
                    parts.push((from, at));
                    from = at + 1;
                }
                _ => {}
            }
        }
        if from < closing || !parts.is_empty() {
            parts.push((from, closing));
        }
        Some((parts, closing))
    }

    /// `(T *a UNUSED, ENV_ int b)` of a function that is declared.
    pub(super) fn parameters(&mut self, opening: usize) {
        let Some((parts, _)) = self.parts(opening) else { return };
        for (from, to) in parts {
            if is_macro_name(self.word(from))
                && self.mark(from + 1) == b'('
                && self.closing(from + 1).is_some_and(|it| it < to)
            {
                self.show_type(from, from + 1, self.closing(from + 1).unwrap_or(to));
            } else if !self.word(from).is_empty() {
                self.words(from, usize::MAX);
            }
        }
    }

    /// `NAME(…)` as a parameter becomes `int`.
    pub(super) fn show_type(&mut self, from: usize, _: usize, to: usize) {
        let Some(start) = self.tokens.get(from).map(|it| it.start as usize) else { return };
        self.blank_range(from, to);
        self.write(start, b"int");
    }

    /// `(ap, char *)`, `(+, a, b)`, `(ENV_ a)` of a call: types and operators are no values.
    pub(super) fn arguments(&mut self, opening: usize) {
        let called = self.word(opening - 1);
        let before = opening.checked_sub(2).map_or("", |it| self.word(it));
        let is_call = !called.is_empty()
            && !STATEMENTS.contains(called)
            && !matches!(
                called,
                "alignof"
                    | "noexcept"
                    | "offsetof"
                    | "_Generic"
                    | "typeof"
                    | "__typeof__"
                    | "_Alignof"
                    | "__alignof__"
                    | "typeid"
            );
        let is_declared = !before.is_empty() && !STATEMENTS.contains(before) || TYPES.contains(called)
            // `(*f(int))(int)` of a function that gives back a pointer to one.
            || (opening > 2 && self.mark(opening - 2) == b'*' && self.mark(opening - 3) == b'(');
        if called.starts_with("__builtin_available") {
            if let Some(closing) = self.closing(opening).filter(|it| *it > opening + 1) {
                self.show_value(opening + 1, closing - 1);
            }
        } else if is_call && !is_declared {
            self.values(opening);
        }
    }

    pub(super) fn values(&mut self, opening: usize) {
        let Some((parts, closing)) = self.parts(opening) else { return };
        for (from, to) in parts {
            let is_operator = to > from && (from..to).all(|it| b"+-*/%<>=!&|^".contains(&self.mark(it)));
            if is_operator || self.is_type(from, to) {
                self.show_value(from, to - 1);
            } else if self.is_before_value(from, to) {
                self.blank_range(from, from);
            }
        }
        // Statements as arguments.
        let mut depth = 0_i32;
        for at in opening + 1..closing {
            match self.mark(at) {
                b'(' | b'{' | b'[' => depth += 1,
                b')' | b'}' | b']' => depth -= 1,
                b';' if depth == 0 && at + 1 == closing => self.blank_range(at, at),
                b';' if depth == 0 => self.write(self.tokens[at].start as usize, b","),
                _ => {}
            }
        }
    }

    /// Whether an argument begins with a macro, or as a statement does.
    fn is_before_value(&self, from: usize, to: usize) -> bool {
        let (first, next) = (self.word(from), self.word(from + 1));
        let is_macro = to > from + 1 && is_macro_name(first) && !next.is_empty() && !is_like_a_macro(next);
        is_macro || matches!(first, "throw" | "return")
    }

    /// Whether some tokens are a type and nothing else could be.
    fn is_type(&self, from: usize, to: usize) -> bool {
        let is_word = |it: usize| !self.word(it).is_empty() && !STATEMENTS.contains(self.word(it));
        let all = to > from && (from..to).all(|it| is_word(it) || self.mark(it) == b'*') && is_word(from);
        let says = (from..to).any(|it| {
            TYPES.contains(self.word(it)) || matches!(self.word(it), "const" | "struct" | "union" | "enum")
        });
        all && (says || self.mark(to - 1) == b'*')
    }

    /// A statement: macros around a local declaration, and those without a semicolon.
    pub(super) fn statement(&mut self, at: usize) -> usize {
        let word = self.word(at);
        if STATEMENTS.contains(word) || word.is_empty() {
            return at;
        }
        // `emit changed(1);` of Qt calls a function.
        if matches!(word, "emit" | "Q_EMIT") && !self.word(at + 1).is_empty() {
            self.blank_range(at, at);
            return at + 1;
        }
        // A label before the end, or before a condition.
        if self.mark(at + 1) == b':' && self.mark(at + 2) != b':' {
            let (end, next) = (
                self.tokens[at + 1].end as usize,
                self.tokens.get(at + 2).map_or(self.source.len(), |it| it.start as usize),
            );
            let between = self.source.get(end..next).unwrap_or_default();
            let is_condition = between
                .split(|it| *it == b'\n')
                .skip(1)
                .any(|line| line.trim_ascii_start().starts_with(b"#"));
            let next = between.first().copied().unwrap_or_default();
            if (self.mark(at + 2) == b'}' || is_condition) && next.is_ascii_whitespace() {
                // At the end of a line the name of the label is a statement of its own, so that the line keeps its end.
                let is_line_end = matches!(next, b'\n' | b'\r');
                self.write(if is_line_end { end - 1 } else { end }, b";");
                self.begins = at + 2;
            }
            return at;
        }
        if self.mark(at + 1) == b'(' {
            if !matches!(word, "while" | "if" | "for" | "switch")
                && let Some(closing) = self.closing(at + 1)
            {
                self.without_semicolon(at + 1, closing);
            }
            return at;
        }
        let is_alone = is_macro_name(word) && self.is_line_between(at, at + 1);
        let goes_on = matches!(self.word(at + 1), "case" | "default" | "if" | "return" | "for" | "while")
            || self.mark(at + 1) == b'}';
        if is_alone && goes_on {
            self.blank_range(at, at);
            return at + 1;
        }
        let end = self.words(at, usize::MAX);
        self.made_of_values(at, end);
        at
    }

    /// Shows `const Store& store(this->store());` with braces, because the grammar takes it for the declaration of a function.
    fn made_of_values(&mut self, from: usize, opening: usize) {
        if self.mark(opening) != b'(' {
            return;
        }
        let Some(closing) = self.closing(opening).filter(|it| self.mark(*it + 1) == b';') else { return };
        let is_arrow = |it: usize| self.mark(it) == b'-' && self.mark(it + 1) == b'>';
        if opening > from + 1 && !self.word(opening - 1).is_empty() && (opening..closing).any(is_arrow) {
            self.write(self.tokens[opening].start as usize, b"{");
            self.write(self.tokens[closing].start as usize, b"}");
        }
    }

    /// `EACH(a, b) { … }` and `CHECK(a)` on a line of its own get a semicolon.
    fn without_semicolon(&mut self, opening: usize, closing: usize) {
        let next = closing + 1;
        let is_block = self.mark(next) == b'{';
        let is_next_line = (!self.word(next).is_empty() || self.mark(next) == b'}')
            && self.is_line_between(closing, next)
            && !matches!(self.word(next), "const" | "noexcept" | "and" | "or");
        let end = self.tokens[closing].end as usize;
        if (is_block || is_next_line) && self.source.get(end).is_some_and(u8::is_ascii_whitespace) {
            let behind = &self.source[end..];
            let is_blank = |it: u8| matches!(it, b' ' | b'\t');
            let blank = behind.iter().position(|it| !matches!(it, b'\n' | b'\r')).unwrap_or_default();
            match behind.trim_ascii_start().first() {
                _ if is_blank(behind[0]) => self.write(end, b";"),
                // The line of a directive stays alone: a semicolon in place of the line's end would join the two.
                Some(b'#') if self.instead_of_directive(end) => {}
                Some(b'#') if !self.as_values(opening, closing) => return,
                Some(b'#') => {}
                _ if is_blank(behind[blank]) => self.write(end + blank, b";"),
                _ => self.write(end, b";"),
            }
            self.begins = next;
        }
    }

    /// Shows a semicolon instead of the next directive, if that says nothing that is read: `EACH(X)` is often followed by `#undef X`.
    fn instead_of_directive(&mut self, from: usize) -> bool {
        let behind = &self.source[from..];
        let blanks = behind.len() - behind.trim_ascii_start().len();
        let line = behind[blanks..].split(|it| *it == b'\n').next().unwrap_or_default();
        let word = line.strip_prefix(b"#").unwrap_or_default().trim_ascii_start();
        let says_nothing =
            [&b"undef"[..], b"pragma", b"error", b"warning"].iter().any(|it| word.starts_with(it));
        if !says_nothing || line.trim_ascii_end().ends_with(b"\\") {
            return false;
        }
        let begin = from + blanks;
        self.blank(begin..begin + line.len());
        self.write(begin, b";");
        true
    }

    /// Shows `CHECK(a, b)` as `CHECK,a,b;`, which needs no place behind it; whether that is possible.
    fn as_values(&mut self, opening: usize, closing: usize) -> bool {
        if (opening..closing).any(|it| self.mark(it) == b'{') {
            return false;
        }
        let (open, close) = (self.tokens[opening].start as usize, self.tokens[closing].start as usize);
        self.write(open, if closing == opening + 1 { b" " } else { b"," });
        self.write(close, b";");
        true
    }

    /// Shows the braces of `A a = {}` among parameters as a name, because the grammar allows no braces there.
    pub(super) fn default_value(&mut self, from: usize, opening: usize) {
        let called = opening.checked_sub(1).map_or("", |it| self.word(it));
        if self.mark(opening) != b'(' || matches!(called, "for" | "if" | "while" | "switch") {
            return;
        }
        let mut depth = 0_u32;
        for at in from..self.tokens.len().min(from + 256) {
            match self.mark(at) {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b';' => return,
                _ => {}
            }
            if depth == 0 {
                let range = self.tokens[from].start as usize..self.tokens[at].end as usize;
                let text = &self.source[range.clone()];
                let name = vec![b'_'; text.iter().position(|it| *it == b'\n').unwrap_or(text.len())];
                self.blank(range.clone());
                self.write(range.start, &name);
                return;
            }
        }
    }

    /// Blanks the attributes of `int a[2] __attribute__((aligned(8)));`, because the grammar allows them only behind a function. Returns
    /// the place behind them.
    pub(super) fn attributes_behind(&mut self, from: usize) -> Option<usize> {
        let mut at = from;
        while self.word(at).starts_with("__attribute") {
            at = self.closing(at + 1)? + 1;
        }
        if at > from && matches!(self.mark(at), b';' | b'=' | b',') {
            self.blank_range(from, at - 1);
            return Some(at);
        }
        None
    }
}

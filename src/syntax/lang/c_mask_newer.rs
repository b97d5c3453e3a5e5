//! Constructs of newer C++, and of common compilers, that the grammar lacks. Each has its row in the tests of `code::syntax::beyond`.

use super::c_mask::{Around, Masking};
use super::c_tokens::Kind;

/// The most tokens of a construct that are searched for its end.
const SEARCHED_MAX: usize = 64;

impl Masking<'_> {
    /// Masks what a word begins.
    pub(super) fn newer_at_word(&mut self, at: usize) {
        // Most words begin with other letters.
        if !matches!(self.source[self.tokens[at].start as usize], b'c' | b'd' | b'g') {
            return;
        }
        let before = |back: usize| at.checked_sub(back).map_or("", |it| self.word(it));
        match self.word(at) {
            // `if consteval { … }`, `if !consteval { … }`
            "consteval" if before(1) == "if" || (before(2) == "if" && self.mark(at - 1) == b'!') => {
                if self.mark(at - 1) == b'!' {
                    self.blank_range(at - 1, at - 1);
                }
                self.blank_range(at, at);
                self.write(self.tokens[at].start as usize, b"(0)");
            }
            // `goto *labels[n];` jumps to a value.
            "goto" if self.mark(at + 1) == b'*' => self.blank_range(at, at),
            // `void f() = delete("why")`; in C, `delete` is a name like others.
            "delete" if self.mark(at + 1) == b'(' && self.ends_declarator(at) => {
                let is_text = |it: usize| self.source.get(self.tokens[it].start as usize) == Some(&b'"');
                if let Some(closing) = self.closing(at + 1)
                    && closing > at + 2
                    && (at + 2..closing).all(is_text)
                {
                    self.blank_range(at + 1, closing);
                }
            }
            // `case 1 ... 3:`
            "case" => {
                let value = (at + 2..at + 8).take_while(|it| self.mark(*it) != b':');
                let dots = value.into_iter().find(|it| self.is_ellipsis(*it));
                if let Some(dots) = dots {
                    self.blank_range(dots, dots + 2);
                    self.write(self.tokens[dots].start as usize, b"+");
                }
            }
            _ => {}
        }
    }

    /// Checks whether `=` and, before it, the end of a function's head stand in front of a word.
    fn ends_declarator(&self, word: usize) -> bool {
        let Some(end) = word.checked_sub(2) else { return false };
        if self.mark(word - 1) != b'=' {
            return false;
        }
        self.mark(end) == b')' || matches!(self.word(end), "const" | "noexcept" | "override" | "final")
    }

    /// Masks the attributes of `enum class [[nodiscard]] E` and `struct [[nodiscard]] alignas(8) A`, which stand at a place behind these
    /// words. Returns the place behind the attributes.
    pub(super) fn attributes_of_type(&mut self, word: usize, from: usize) -> usize {
        let Some(end) = self.attribute(from) else { return from };
        if self.word(word) == "enum" || self.word(end) == "alignas" {
            self.blank_range(from, end - 1);
        }
        end
    }

    /// Masks what a mark begins.
    pub(super) fn newer_at_mark(&mut self, at: usize, here: Around) {
        let before = at.checked_sub(1).unwrap_or(at);
        match self.mark(at) {
            // `A [[deprecated]] = 1` of an enumeration.
            b'[' if here == Around::List && !self.word(before).is_empty() => {
                if let Some(end) = self.attribute(at)
                    && matches!(self.mark(end), b',' | b'}' | b'=')
                {
                    self.blank_range(at, end - 1);
                }
            }
            // `p->A::~A()`, `p->~A<int>()`
            b'~' if self.mark(before) == b':' || matches!(self.mark(before), b'>' | b'.') => {
                let mut from = at;
                while from > 3 && self.mark(from - 1) == b':' && !self.word(from - 3).is_empty() {
                    from -= 3;
                }
                let is_called = self.mark(from - 1) == b'.'
                    || (self.mark(from - 1) == b'>' && from > 1 && self.mark(from - 2) == b'-');
                if !is_called {
                    return;
                }
                if from < at {
                    self.blank_range(from, at - 1);
                }
                if self.mark(at + 2) == b'<'
                    && let Some(end) = self.behind_angles(at + 2)
                {
                    self.blank_range(at + 2, end - 1);
                }
            }
            // `int a : 3, : 2;`
            b',' if here == Around::Declarations && self.mark(at + 1) == b':' && self.mark(at + 2) == 0 => {
                if matches!(self.mark(at + 3), b',' | b';') {
                    self.blank_range(at, at + 2);
                }
            }
            // `unsigned a : 3 = 1;`
            b':' if here == Around::Declarations && self.mark(at + 2) == b'=' && self.mark(at + 1) == 0 => {
                let is_field = at > 1 && !self.word(at - 1).is_empty() && !self.word(at - 2).is_empty();
                let is_width =
                    self.tokens.get(at + 1).is_some_and(|it| matches!(it.kind, Kind::Value | Kind::Word));
                if is_field && is_width {
                    self.write(self.tokens[at + 2].start as usize, b"+");
                }
            }
            _ => {}
        }
    }

    /// Returns the place of the next mark of a kind.
    fn find(&self, from: usize, mark: u8) -> Option<usize> {
        (from..self.tokens.len().min(from + SEARCHED_MAX)).find(|it| self.mark(*it) == mark)
    }

    fn is_ellipsis(&self, at: usize) -> bool {
        (at..at + 3).all(|it| self.mark(it) == b'.')
    }

    /// Returns the place behind `[[…]]`.
    fn attribute(&self, at: usize) -> Option<usize> {
        if self.mark(at) != b'[' || self.mark(at + 1) != b'[' {
            return None;
        }
        let end = self.find(at, b']').filter(|it| self.mark(it + 1) == b']')?;
        Some(end + 2)
    }
}

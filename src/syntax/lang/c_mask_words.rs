//! Rows of words at the beginning of a declaration of C or C++: all but a type and a name are macros.

use super::c_macros::is_macro_name;
use super::c_mask::Masking;
use super::c_mask_macros::WORDS_MAX;
use super::c_tokens::Kind;
use super::c_words::{BEGINNINGS, QUALIFIERS, STATEMENTS, TYPES, is_like_a_macro, sounds_like_an_attribute};

/// The state of reading a row of words.
#[derive(Default)]
struct Row {
    at: usize,
    /// Words that may be a type, a name or a macro.
    names: Vec<usize>,
    /// Whether a type was found.
    has_type: bool,
    /// Whether the last word is one of the names.
    ends_with_name: bool,
}

impl Row {
    fn name(&mut self) {
        self.names.push(self.at);
        self.ends_with_name = true;
    }
}

impl Masking<'_> {
    /// Words in a row, types with `::`, `<…>`, `*` and `&` between them: all but a type and a name are macros.
    pub(super) fn words(&mut self, from: usize, class: usize) -> usize {
        let mut row = Row { at: from, ..Row::default() };
        loop {
            let word = self.word(row.at);
            if word.is_empty() {
                match self.type_goes_on(&mut row) {
                    Some(true) => continue,
                    Some(false) => break,
                    None => return row.at,
                }
            }
            if BEGINNINGS.contains(word) {
                // Before these stands no type.
                let before = std::mem::take(&mut row.names);
                let before: Vec<usize> =
                    before.into_iter().filter(|it| is_like_a_macro(self.word(*it))).collect();
                self.blank_all(&before);
            }
            match self.word(row.at) {
                "class" | "struct" | "union" | "enum" => {
                    let (behind, is_definition) = self.tagged(row.at);
                    if is_definition {
                        return behind;
                    }
                    (row.has_type, row.ends_with_name, row.at) = (true, false, behind);
                    continue;
                }
                "operator" => {
                    if !row.has_type {
                        row.names.pop();
                    }
                    self.blank_all(&row.names);
                    return row.at;
                }
                "namespace" | "using" | "template" => return row.at,
                word if TYPES.contains(word) => (row.has_type, row.ends_with_name) = (true, false),
                word if QUALIFIERS.contains(word) => row.ends_with_name = false,
                word if word.starts_with("__attribute") => {
                    let is_behind_name = row.names.len() + usize::from(row.has_type) > 1;
                    match self.attributes_behind(row.at).filter(|_| is_behind_name) {
                        Some(behind) => row.at = behind,
                        None => return row.at,
                    }
                    continue;
                }
                word if STATEMENTS.contains(word) => return row.at,
                word if is_like_a_macro(word) && self.mark(row.at + 1) == b'(' => {
                    if self.is_past_macro(&mut row) {
                        continue;
                    }
                    row.name();
                }
                _ => row.name(),
            }
            row.at += 1;
        }
        let is_nameless = if row.has_type { !row.ends_with_name } else { row.names.len() == 1 };
        if is_nameless && class != usize::MAX && self.mark(row.at) == b':' && self.mark(row.at + 2) == b';' {
            // The grammar lacks bits without a name: `unsigned :3;`.
            self.blank_range(row.at, row.at + 1);
            return row.at + 2;
        }
        let name = row.names.last().copied().filter(|_| row.ends_with_name);
        self.choose(&row.names, name, row.has_type, row.at, class);
        row.at.max(from)
    }

    /// What a type goes on behind belongs to its last word. Whether it goes on; none where that cannot be told.
    fn type_goes_on(&mut self, row: &mut Row) -> Option<bool> {
        let mark = self.mark(row.at);
        let is_scope = mark == b':' && self.mark(row.at + 1) == b':';
        let is_something = row.has_type || !row.names.is_empty();
        let is_pointer = matches!(mark, b'*' | b'&') && is_something;
        let is_template = mark == b'<' && is_something;
        if !is_scope && !is_pointer && !is_template {
            return Some(false);
        }
        if !row.has_type || is_scope || (is_template && row.ends_with_name) {
            row.names.pop();
        }
        self.blank_all(&std::mem::take(&mut row.names));
        (row.has_type, row.ends_with_name) = (true, false);
        row.at = match mark {
            b':' => {
                let behind = self.word(row.at + 2);
                row.at + 2 + usize::from(!behind.is_empty() && !STATEMENTS.contains(behind))
            }
            b'<' => self.behind_angles(row.at)?,
            _ => row.at + 1,
        };
        Some(true)
    }

    /// `ATTRIBUTE(…)` among the words of a declaration, or behind its name. Whether the row is past it now.
    fn is_past_macro(&mut self, row: &mut Row) -> bool {
        let word = self.word(row.at);
        let is_known = word.starts_with("__attribute") || word == "__declspec";
        let Some(closing) = self.closing(row.at + 1) else { return false };
        let next = closing + 1;
        let is_before = !self.word(next).is_empty() || self.mark(next) == b'*';
        let is_behind =
            matches!(self.mark(next), b';' | b'=' | b',') && row.names.len() + usize::from(row.has_type) > 1;
        if !is_known && !is_before && !is_behind {
            return false;
        }
        if !is_known {
            self.blank_macro(row.at, closing);
        }
        row.at = next;
        true
    }

    /// Blanks `export module a.b;`, `import a.b;`, and `export` before a declaration, because the grammar lacks modules. Returns the
    /// place behind them.
    pub(super) fn of_module(&mut self, at: usize) -> Option<usize> {
        let is_export = self.word(at) == "export";
        let from = at + usize::from(is_export);
        let is_first = at == 0 || is_export || self.word(0) == "module";
        let goes_on = |it: u8| matches!(it, b';' | b'.' | b':');
        let is_said = match self.word(from) {
            "module" => is_first && (goes_on(self.mark(from + 1)) || goes_on(self.mark(from + 2))),
            "import" => {
                matches!(self.mark(from + 1), b'<' | b':')
                    || self.tokens.get(from + 1).is_some_and(|it| it.kind == Kind::Value)
                    || (!self.word(from + 1).is_empty() && goes_on(self.mark(from + 2)))
            }
            _ => false,
        };
        if is_said {
            let end = (from..self.tokens.len().min(from + 64)).find(|it| self.mark(*it) == b';')?;
            self.blank_range(at, end);
            return Some(end + 1);
        }
        if is_export {
            self.blank_range(at, at);
        }
        is_export.then_some(from)
    }

    /// `class EXPORT A : …`: the place behind the name, and whether its members follow.
    fn tagged(&mut self, at: usize) -> (usize, bool) {
        let mut next = at + 1;
        if matches!(self.word(next), "class" | "struct") {
            next += 1;
        }
        next = self.attributes_of_type(at, next);
        // `enum : char { A }`
        if self.word(at) == "enum" && self.mark(next) == b':' {
            let end = (next..next + 16).find(|it| self.mark(*it) == b'{');
            end.into_iter().for_each(|end| self.blank_range(next, end - 1));
        }
        let mut names: Vec<(usize, usize)> = Vec::new();
        while names.len() < WORDS_MAX && !self.word(next).is_empty() && self.word(next) != "final" {
            let is_called = self.mark(next + 1) == b'('
                && (is_like_a_macro(self.word(next)) || self.word(next) == "alignas");
            let end = if is_called { self.closing(next + 1).unwrap_or(next) } else { next };
            names.push((next, end));
            next = end + 1;
        }
        if self.word(next) == "final" {
            next += 1;
        }
        let defines = self.mark(next) == b'{' || (self.mark(next) == b':' && self.mark(next + 1) != b':');
        // `A<int>` of a specialisation.
        let may_define = defines || (self.mark(next) == b'<' && names.len() > 1);
        // `class A FINAL : B {`
        let is_plain = |(from, _): &&(usize, usize)| !is_like_a_macro(self.word(*from));
        let behind = names.iter().rev().position(|it| is_plain(&it)).filter(|_| defines).unwrap_or(0);
        for (from, to) in names.split_off(names.len() - behind) {
            self.blank_range(from, to);
        }
        if may_define && let Some((_, before)) = names.split_last() {
            for (from, to) in before {
                if is_macro_name(self.word(*from)) {
                    self.blank_macro(*from, *to);
                }
            }
        }
        match names.first() {
            Some((first, _)) if !may_define => (first + 1, false),
            _ => (next, defines),
        }
    }

    /// Of words in a row before a mark, blanks those that are neither the type nor the name.
    fn choose(&mut self, names: &[usize], last: Option<usize>, has_type: bool, next: usize, class: usize) {
        let mark = self.mark(next);
        let is_end = matches!(mark, b'(' | b';' | b'=' | b',' | b'[' | b'{' | b')')
            || (mark == b':' && self.mark(next + 1) != b':');
        if mark == b'~' {
            return self.blank_all(names);
        }
        if !is_end {
            return;
        }
        let mut others = names.to_vec();
        // The name is the last word, unless that is a macro or a type of the language.
        let has_enough = others.len() + usize::from(has_type) > 2 || (has_type && others.len() > 1);
        let name = match last {
            Some(last) if !(is_like_a_macro(self.word(last)) && has_enough && mark != b'(') => Some(last),
            Some(_) => others.iter().rev().copied().find(|it| !is_like_a_macro(self.word(*it))),
            None => None,
        };
        others.retain(|it| Some(*it) != name);
        if !has_type && let Some(kept) = self.kept_as_type(&others, name, next, class) {
            others.retain(|it| *it != kept);
        }
        self.blank_all(&others);
    }

    /// Which of some words is the type.
    fn kept_as_type(
        &self,
        others: &[usize],
        name: Option<usize>,
        next: usize,
        class: usize,
    ) -> Option<usize> {
        // A constructor has none.
        let is_constructor =
            name.is_some_and(|name| self.mark(next) == b'(' && self.is_name_of_class(name, class));
        if is_constructor {
            return None;
        }
        let plain = others.iter().rev().copied().find(|it| !is_like_a_macro(self.word(*it)));
        let by_sound = others.iter().copied().find(|it| !sounds_like_an_attribute(self.word(*it)));
        plain.or(by_sound).or(others.last().copied())
    }

    /// Whether a name is that of the class that a bracket opens.
    pub(super) fn is_name_of_class(&self, name: usize, bracket: usize) -> bool {
        if bracket == usize::MAX {
            return false;
        }
        let text = self.word(name);
        for at in (bracket.saturating_sub(64)..bracket).rev() {
            match (self.word(at), self.mark(at)) {
                ("class" | "struct" | "union", _) => {
                    return (at + 1..bracket)
                        .take_while(|it| self.mark(*it) != b':')
                        .any(|it| self.word(it) == text);
                }
                (_, b';' | b'{' | b'}') => return false,
                _ => {}
            }
        }
        false
    }
}

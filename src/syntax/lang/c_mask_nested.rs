//! Nested templates, as the grammar of C++ sees them: it accepts only a certain number of adjacent brackets.

use super::c_mask::Masking;

/// The deepest nesting of templates that the grammar accepts without spaces between their brackets.
const NESTED_MAX: usize = 6;

/// The deepest nesting of brackets that is followed.
const OPEN_MAX: usize = 1_024;

impl Masking<'_> {
    /// Blanks what is deeper within other templates than the grammar can read: it lies within the type around it, and names nothing.
    pub(super) fn nested_templates(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        for at in 0..self.tokens.len() {
            match self.mark(at) {
                b'<' if self.opens(at) && open.len() < OPEN_MAX => open.push(at),
                b'>' if self.is_behind(at, b'-') => {}
                b'>' => {
                    if let Some(begin) = open.pop()
                        && open.len() == NESTED_MAX
                        && self.touches(at, b'>')
                    {
                        let range = self.tokens[begin].start as usize..self.tokens[at].end as usize;
                        self.blank(range);
                    }
                }
                b';' | b'{' | b'}' | b'|' => open.clear(),
                // Of two values, not a reference to what will not be needed.
                b'&' if self.is_behind(at, b'&') && !matches!(self.mark(at + 1), b'>' | b',') => open.clear(),
                _ => {}
            }
        }
    }

    /// Whether a bracket opens what a template is made for: it stands directly behind a name, and is no shift and no comparison.
    fn opens(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |before| self.word(before));
        let is_beside = before.is_empty() || self.tokens[at - 1].end != self.tokens[at].start;
        !is_beside && ![b'<', b'='].iter().any(|it| self.touches(at, *it))
    }

    /// Whether a mark stands directly behind a token.
    fn touches(&self, at: usize, mark: u8) -> bool {
        self.source.get(self.tokens[at].end as usize) == Some(&mark)
    }

    /// Whether a token stands directly behind a mark.
    fn is_behind(&self, at: usize, mark: u8) -> bool {
        (self.tokens[at].start as usize).checked_sub(1).is_some_and(|before| self.source[before] == mark)
    }
}

//! A line of text that a person is typing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Most characters of a line: a reason is a sentence or two.
const CHARS_MAX: usize = 2_000;

/// A line, and the place of its next character.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Typed {
    chars: Vec<char>,
    at: usize,
}

impl Typed {
    pub(crate) fn of(text: &str) -> Self {
        let mut typed = Self::default();
        typed.paste(text);
        typed
    }

    pub(crate) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Returns the text before the cursor.
    pub(crate) fn before(&self) -> String {
        self.chars[..self.at].iter().collect()
    }

    /// Adds a text; control characters are left out, and line ends become spaces.
    pub(crate) fn paste(&mut self, text: &str) {
        for c in text.chars() {
            let c = if c == '\n' || c == '\t' { ' ' } else { c };
            if !c.is_control() && self.chars.len() < CHARS_MAX {
                self.chars.insert(self.at, c);
                self.at += 1;
            }
        }
    }

    /// Takes a key that edits the line; returns whether it was one that has changed the text.
    pub(crate) fn take(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => {
                self.chars.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('w') if control => self.take_word(),
            KeyCode::Char('a') if control => return self.go(0),
            KeyCode::Char('e') if control => return self.go(self.chars.len()),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.paste(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace if self.at > 0 => {
                self.at -= 1;
                self.chars.remove(self.at);
            }
            KeyCode::Delete if self.at < self.chars.len() => {
                self.chars.remove(self.at);
            }
            KeyCode::Left => return self.go(self.at.saturating_sub(1)),
            KeyCode::Right => return self.go(self.at + 1),
            KeyCode::Home => return self.go(0),
            KeyCode::End => return self.go(self.chars.len()),
            _ => return false,
        }
        true
    }

    fn go(&mut self, to: usize) -> bool {
        self.at = to.min(self.chars.len());
        false
    }

    fn take_word(&mut self) {
        let before = &self.chars[..self.at];
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |it| it + 1);
        let begin = before[..end].iter().rposition(|c| *c == ' ').map_or(0, |it| it + 1);
        self.chars.drain(begin..self.at);
        self.at = begin;
    }
}

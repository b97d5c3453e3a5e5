//! One pass over JSON text that writes its canonical form.
//!
//! No tree is built: values are written as they are read, and the members of an object are sorted when it closes,
//! if necessary. So memory stays near the size of the text, for any text of a peer.

use std::borrow::Cow;

use super::number::{Reading, is_integer, push_fraction};
use super::{BadJson, JSON_DEPTH_MAX};

/// The result of [`canonical`].
pub(super) struct Canonical {
    /// The canonical text of the whole value.
    pub(super) text: String,
    /// Whether some number was not an integer of 64 bits, so that its text depends on the reading.
    pub(super) fractions: bool,
}

/// Returns the canonical form of one JSON value.
pub(super) fn canonical(text: &str, reading: Reading, depth_max: usize) -> Result<Canonical, BadJson> {
    let out = String::with_capacity(text.len());
    let mut pass =
        Pass { text, at: 0, out, members: Vec::new(), reading, depth_left: depth_max, fractions: false };
    pass.skip_space();
    pass.value()?;
    pass.skip_space();
    match pass.peek() {
        None => Ok(Canonical { text: pass.out, fractions: pass.fractions }),
        Some(_) => Err(pass.bad("something follows the value")),
    }
}

/// Appends a string with its quotes, escaped as `serde_json` does: only what JSON demands, hexadecimal in
/// lower case.
pub fn push_text(out: &mut String, text: &str) {
    out.push('"');
    let mut plain_from = 0;
    for (i, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            b'\t' => "\\t",
            b'\n' => "\\n",
            0x0c => "\\f",
            b'\r' => "\\r",
            0..=0x1f => "\\u00",
            _ => continue,
        };
        out.push_str(&text[plain_from..i]);
        out.push_str(escape);
        if escape == "\\u00" {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
        plain_from = i + 1;
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

/// A member of an object that is still open: its key, and the range of its text in the output.
struct Member<'a> {
    key: Cow<'a, str>,
    from: usize,
    to: usize,
}

struct Pass<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// Members of all open objects, the innermost last.
    members: Vec<Member<'a>>,
    reading: Reading,
    depth_left: usize,
    fractions: bool,
}

impl<'a> Pass<'a> {
    fn value(&mut self) -> Result<(), BadJson> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => {
                let text = self.string()?;
                push_text(&mut self.out, &text);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(_) => Err(self.bad("a value cannot begin like this")),
            None => Err(self.bad("the text ends where a value was expected")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<(), BadJson>) -> Result<(), BadJson> {
        let too_deep = || BadJson(format!("is nested deeper than {JSON_DEPTH_MAX} levels").into());
        self.depth_left = self.depth_left.checked_sub(1).ok_or_else(too_deep)?;
        self.at += 1;
        self.skip_space();
        read(self)?;
        self.depth_left += 1;
        Ok(())
    }

    fn list(&mut self) -> Result<(), BadJson> {
        self.out.push('[');
        if !self.take(b']') {
            loop {
                self.value()?;
                if self.ends(b']')? {
                    break;
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self) -> Result<(), BadJson> {
        let (start, first) = (self.out.len(), self.members.len());
        self.out.push('{');
        if !self.take(b'}') {
            loop {
                self.member()?;
                if self.ends(b'}')? {
                    break;
                }
            }
        }
        if !self.members[first..].is_sorted_by(|a, b| a.key < b.key) {
            self.put_in_order(start, first);
        }
        self.members.truncate(first);
        self.out.push('}');
        Ok(())
    }

    fn member(&mut self) -> Result<(), BadJson> {
        if self.peek() != Some(b'"') {
            return Err(self.bad("a key in quotes was expected"));
        }
        let key = self.string()?;
        let from = self.out.len();
        push_text(&mut self.out, &key);
        self.skip_space();
        if !self.take(b':') {
            return Err(self.bad("a colon was expected after the key"));
        }
        self.out.push(':');
        self.skip_space();
        self.value()?;
        self.members.push(Member { key, from, to: self.out.len() });
        Ok(())
    }

    /// Writes the object that began at `start` again, with keys ascending, and only the last of equal keys.
    fn put_in_order(&mut self, start: usize, first: usize) {
        let as_came = self.out.split_off(start);
        self.out.push('{');
        // The sort is stable, so the last of equal keys is the one that came last.
        self.members[first..].sort_by(|a, b| a.key.cmp(&b.key));
        let members = &self.members[first..];
        let mut separator = "";
        for (i, member) in members.iter().enumerate() {
            if members.get(i + 1).is_none_or(|next| next.key != member.key) {
                self.out.push_str(separator);
                self.out.push_str(&as_came[member.from - start..member.to - start]);
                separator = ",";
            }
        }
    }

    /// Reads the sign after an element; returns whether the list or object closes here. Otherwise a comma was read and written.
    fn ends(&mut self, close: u8) -> Result<bool, BadJson> {
        self.skip_space();
        if self.take(close) {
            return Ok(true);
        }
        if !self.take(b',') {
            return Err(self.bad("a comma or the closing bracket was expected"));
        }
        self.out.push(',');
        self.skip_space();
        Ok(false)
    }

    fn literal(&mut self, word: &str) -> Result<(), BadJson> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.bad("a value cannot begin like this"));
        }
        self.at += word.len();
        self.out.push_str(word);
        Ok(())
    }

    fn number(&mut self) -> Result<(), BadJson> {
        let from = self.at;
        self.take(b'-');
        // No digit may follow a leading zero.
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let spelled = &self.text[from..self.at];
        if is_integer(spelled) {
            self.out.push_str(spelled);
            return Ok(());
        }
        self.fractions = true;
        push_fraction(&mut self.out, spelled, self.reading)
    }

    fn digits(&mut self) -> Result<(), BadJson> {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == from { Err(self.bad("a digit was expected")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, BadJson> {
        self.at += 1;
        let mut unescaped = String::new();
        let mut plain_from = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let plain = &self.text[plain_from..self.at];
                    self.at += 1;
                    return Ok(if unescaped.is_empty() {
                        Cow::Borrowed(plain)
                    } else {
                        unescaped.push_str(plain);
                        Cow::Owned(unescaped)
                    });
                }
                Some(b'\\') => {
                    unescaped.push_str(&self.text[plain_from..self.at]);
                    self.at += 1;
                    unescaped.push(self.escape()?);
                    plain_from = self.at;
                }
                Some(0..=0x1f) => return Err(self.bad("a control character must be escaped")),
                Some(_) => self.at += 1,
                None => return Err(self.bad("a string has no end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, BadJson> {
        let escape = self.peek();
        self.at += 1;
        Ok(match escape {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex4()?;
                match char::from_u32(first) {
                    Some(char) => char,
                    None => self.second_half(first)?,
                }
            }
            _ => return Err(self.bad("there is no such escape")),
        })
    }

    fn second_half(&mut self, first: u32) -> Result<char, BadJson> {
        let lone = "half of a surrogate pair";
        if first >= 0xdc00 || !self.text[self.at..].starts_with("\\u") {
            return Err(self.bad(lone));
        }
        self.at += 2;
        let second = self.hex4()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.bad(lone));
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(|| self.bad(lone))
    }

    fn hex4(&mut self) -> Result<u32, BadJson> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let value =
            digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?));
        match value {
            Some(value) if digits.len() == 4 => {
                self.at += 4;
                Ok(value)
            }
            _ => Err(self.bad("four hexadecimal digits were expected")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn bad(&self, what: &str) -> BadJson {
        BadJson(format!("{what} (byte {})", self.at).into())
    }
}

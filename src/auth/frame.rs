//! DevIt's signed frames: reads them from a line, checks them against a key, and signs replies.
//!
//! DevIt, 1.2 and 1.3. A frame has eight fields under long or one-letter keys; its MAC is over
//! `msg_type|msg_id|from|to|ts|nonce|payload`, the payload being canonical JSON. Two kinds of senders exist:
//! those that sign the very bytes they send, and those that sign the canonical form of what they send.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use sha2::Sha256;

use super::Rejected;
use provost_base::json::{canon_variants, push_text};
use provost_base::{Json, Secret};

/// The keys that a frame is written with. An answer takes the form of its question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `msg_type`, `msg_id` and so on.
    Standard,
    /// `t`, `i`, `f`, `o`, `s`, `n`, `h`, `p`.
    Compact,
}

impl Form {
    /// Returns the keys in the order of `Field`, in which Provost writes them.
    fn keys(self) -> &'static [&'static str; 8] {
        match self {
            Self::Standard => &["msg_type", "msg_id", "from", "to", "ts", "nonce", "hmac", "payload"],
            Self::Compact => &["t", "i", "f", "o", "s", "n", "h", "p"],
        }
    }
}

/// The reason why a line is not a frame. Safe to show to the peer: it names a field and quotes nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Some byte sequence is not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// Not a JSON object.
    #[error("the line is not a JSON object: {0}")]
    NotJson(Box<str>),
    /// A field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has a value of the wrong type.
    #[error("`{field}` must be {wanted}")]
    WrongType {
        /// The key as the sender spells it.
        field: &'static str,
        /// The type that is accepted.
        wanted: &'static str,
    },
    /// A key occurs more than once, so that two readers could see two messages.
    #[error("`{0}` occurs twice")]
    Twice(&'static str),
    /// A signed field contains `|`, so that one MAC covers several splits of the text.
    #[error("`{0}` contains the separator `|`")]
    Separator(&'static str),
}

/// One frame as it arrived; borrows from its line.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// The form of its keys.
    pub form: Form,
    /// The verb, upper case.
    pub msg_type: Cow<'a, str>,
    /// The sender chooses it; for a DELEGATE it is the task's id.
    pub msg_id: Cow<'a, str>,
    /// The name that the sender claims. It is proved only after [`Frame::verify`] with a key of that name.
    pub from: Cow<'a, str>,
    /// The recipient's ident.
    pub to: Cow<'a, str>,
    /// Unix time in seconds.
    pub ts: u64,
    /// Never used twice by one sender.
    pub nonce: Cow<'a, str>,
    /// Base64 of the MAC.
    pub hmac: Cow<'a, str>,
    /// The payload's bytes exactly as they came: some JSON value, not yet canonical.
    pub payload: &'a str,
}

impl<'a> Frame<'a> {
    /// Reads one line. The compact form is tried first, and wins if a line has both; other keys are ignored.
    ///
    /// # Errors
    /// [`FrameError`] names the first field that is missing or wrong, in the form that the line seems to have.
    pub fn parse(line: &'a [u8]) -> Result<Self, FrameError> {
        let text = std::str::from_utf8(line).map_err(|_| FrameError::NotUtf8)?;
        let mut reader = serde_json::Deserializer::from_str(text);
        // The error's own text may quote what the peer sent; its place and kind are enough.
        let fault = |e: serde_json::Error| FrameError::NotJson(describe(&e).into());
        let slots = reader.deserialize_map(Slots::default()).map_err(fault)?;
        reader.end().map_err(fault)?;
        slots.into_frame()
    }

    /// Refuses `|` in the fields that are joined by it: the MAC does not tell `a|b` and `c` from `a` and
    /// `b|c`.
    ///
    /// # Errors
    /// [`FrameError::Separator`] with the first such field.
    pub fn check_separators(&self) -> Result<(), FrameError> {
        let fields = [&self.msg_type, &self.msg_id, &self.from, &self.to, &self.nonce];
        let keys = self.form.keys();
        match fields.iter().zip([0, 1, 2, 3, 5]).find(|(field, _)| field.contains('|')) {
            Some((_, key)) => Err(FrameError::Separator(keys[key])),
            None => Ok(()),
        }
    }

    /// Checks that the holder of `key` made this frame.
    ///
    /// # Errors
    /// [`Rejected::WrongMac`] or [`Rejected::MalformedMac`].
    pub fn verify(&self, key: &Secret) -> Result<(), Rejected> {
        self.verify_any(std::slice::from_ref(key))
    }

    /// Checks that the holder of one of `keys` made this frame; several are valid during a key's rotation.
    ///
    /// # Errors
    /// [`Rejected::NoKey`] without keys, [`Rejected::WrongMac`], [`Rejected::MalformedMac`].
    pub fn verify_any(&self, keys: &[Secret]) -> Result<(), Rejected> {
        if keys.is_empty() {
            return Err(Rejected::NoKey);
        }
        // Room for 36 bytes tells a MAC that is too long from one that fits.
        let mut claimed = [0; 36];
        match STANDARD.decode_slice(self.hmac.as_bytes(), &mut claimed) {
            Ok(32) => {}
            _ => return Err(Rejected::MalformedMac),
        }
        let signed = |payload: &str| {
            keys.iter().any(|key| self.head(key).chain_update(payload).verify_slice(&claimed[..32]).is_ok())
        };
        if signed(self.payload) {
            return Ok(());
        }
        let mut variants = canon_variants(self.payload).map_err(|_| Rejected::WrongMac)?;
        if variants.any(|text| text != self.payload && signed(&text)) {
            Ok(())
        } else {
            Err(Rejected::WrongMac)
        }
    }

    fn head(&self, key: &Secret) -> Hmac<Sha256> {
        body_head(key, [&self.msg_type, &self.msg_id, &self.from, &self.to], self.ts, &self.nonce)
    }
}

/// A frame that the daemon sends, before it is signed.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The verb, upper case.
    pub msg_type: &'a str,
    /// Fresh, or the task's id for a DELEGATE that is passed on.
    pub msg_id: &'a str,
    /// The daemon's own ident, except if a message is passed on.
    pub from: &'a str,
    /// The recipient's ident.
    pub to: &'a str,
    /// Unix time in seconds.
    pub ts: u64,
    /// Random, and used for this frame alone.
    pub nonce: &'a str,
    /// The content, in canonical form.
    pub payload: &'a Json,
}

impl Outgoing<'_> {
    /// Returns the signed line, without its line break.
    pub fn sign(&self, key: &Secret, form: Form) -> String {
        let mac = body_head(key, [self.msg_type, self.msg_id, self.from, self.to], self.ts, self.nonce)
            .chain_update(self.payload.as_str())
            .finalize()
            .into_bytes();
        let [msg_type, msg_id, from, to, ts, nonce, hmac, payload] = form.keys();
        let mut line = String::with_capacity(self.payload.as_str().len() + 320);
        for (key, text) in
            [(msg_type, self.msg_type), (msg_id, self.msg_id), (from, self.from), (to, self.to)]
        {
            push_key(&mut line, key);
            push_text(&mut line, text);
        }
        push_key(&mut line, ts);
        line.push_str(&self.ts.to_string());
        push_key(&mut line, nonce);
        push_text(&mut line, self.nonce);
        push_key(&mut line, hmac);
        push_text(&mut line, &STANDARD.encode(mac));
        push_key(&mut line, payload);
        line.push_str(self.payload.as_str());
        line.push('}');
        line
    }
}

fn push_key(line: &mut String, key: &str) {
    line.push(if line.is_empty() { '{' } else { ',' });
    push_text(line, key);
    line.push(':');
}

/// Begins the MAC with all fields but the payload, which comes last.
fn body_head(key: &Secret, names: [&str; 4], ts: u64, nonce: &str) -> Hmac<Sha256> {
    let mut mac = key.mac();
    for name in names {
        mac.update(name.as_bytes());
        mac.update(b"|");
    }
    mac.update(ts.to_string().as_bytes());
    mac.update(b"|");
    mac.update(nonce.as_bytes());
    mac.update(b"|");
    mac
}

fn describe(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Data => "it is another kind of value",
        _ => "it breaks JSON's grammar",
    };
    format!("{what} (column {})", error.column())
}

/// A field's value before its type is checked: an unknown key may have any.
enum Slot<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    Raw(&'a RawValue),
    Other,
}

/// The values of a line under the keys of both forms; a line is read once, before its form is known.
#[derive(Default)]
struct Slots<'a> {
    standard: [Option<Slot<'a>>; 8],
    compact: [Option<Slot<'a>>; 8],
    standard_twice: Option<&'static str>,
    compact_twice: Option<&'static str>,
}

impl<'a> Slots<'a> {
    fn into_frame(self) -> Result<Frame<'a>, FrameError> {
        let some_compact = self.compact.iter().any(Option::is_some);
        let some_standard = self.standard.iter().any(Option::is_some);
        if some_compact {
            let compact = frame(Form::Compact, self.compact, self.compact_twice);
            if compact.is_ok() || !some_standard {
                return compact;
            }
        }
        frame(Form::Standard, self.standard, self.standard_twice)
    }
}

fn frame<'a>(
    form: Form,
    slots: [Option<Slot<'a>>; 8],
    twice: Option<&'static str>,
) -> Result<Frame<'a>, FrameError> {
    if let Some(key) = twice {
        return Err(FrameError::Twice(key));
    }
    let [msg_type, msg_id, from, to, ts, nonce, hmac, payload] = slots;
    let keys = form.keys();
    let text = |slot: Option<Slot<'a>>, key: usize| match slot {
        Some(Slot::Text(text)) => Ok(text),
        Some(_) => Err(FrameError::WrongType { field: keys[key], wanted: "a string" }),
        None => Err(FrameError::Missing(keys[key])),
    };
    Ok(Frame {
        form,
        msg_type: text(msg_type, 0)?,
        msg_id: text(msg_id, 1)?,
        from: text(from, 2)?,
        to: text(to, 3)?,
        ts: match ts {
            Some(Slot::Number(seconds)) => seconds,
            Some(_) => {
                return Err(FrameError::WrongType { field: keys[4], wanted: "a whole number of seconds" });
            }
            None => return Err(FrameError::Missing(keys[4])),
        },
        nonce: text(nonce, 5)?,
        hmac: text(hmac, 6)?,
        payload: match payload {
            Some(Slot::Raw(raw)) => raw.get(),
            _ => return Err(FrameError::Missing(keys[7])),
        },
    })
}

impl<'de> Visitor<'de> for Slots<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(key) = map.next_key_seed(Key)? {
            let Some((form, at)) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let (slots, twice) = match form {
                Form::Standard => (&mut self.standard, &mut self.standard_twice),
                Form::Compact => (&mut self.compact, &mut self.compact_twice),
            };
            let slot = if at == 7 { Slot::Raw(map.next_value()?) } else { map.next_value_seed(Value)? };
            if slots[at].replace(slot).is_some() {
                *twice = Some(form.keys()[at]);
            }
        }
        Ok(self)
    }
}

/// Reads a key: its form, and its place in [`Form::keys`].
struct Key;

impl<'de> serde::de::DeserializeSeed<'de> for Key {
    type Value = Option<(Form, usize)>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<(Form, usize)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let form = if key.len() == 1 { Form::Compact } else { Form::Standard };
        Ok(form.keys().iter().position(|known| *known == key).map(|at| (form, at)))
    }
}

struct Value;

impl<'de> serde::de::DeserializeSeed<'de> for Value {
    type Value = Slot<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = Slot<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Slot::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Slot::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Slot::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Slot::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Slot::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Slot::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Slot::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Slot::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Slot::Other)
    }
}

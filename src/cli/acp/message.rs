//! Lines of JSON-RPC, parsed only as far as a proxy needs: the members of the message, as they are spelled.
//!
//! Peers parse the same line in different ways. So a line that two readers could take for different messages is malformed: with a
//! member twice, with a member that differs from a known one only in the case of letters, or with bytes that are not UTF-8.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use provost_base::limits::ACP_ID_BYTES_MAX;

/// A message, which borrows from its line.
#[derive(Default, Debug)]
pub(super) struct Message<'a> {
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<Cow<'a, str>>,
    pub(super) params: Option<&'a RawValue>,
    pub(super) result: Option<&'a RawValue>,
    is_error: bool,
}

/// The members of a message.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// An id in a form for comparison: peers may spell the same one differently, or store it as text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Id {
    Number(i64),
    Text(Box<str>),
    /// Any other id, as it is spelled: `null`, or a number that not all peers can tell from its neighbours.
    Other(Box<str>),
}

impl<'a> Message<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// The reason why the line is not a message.
    pub(super) fn read(line: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| "it is no UTF-8".to_owned())?;
        let message: Self = serde_json::from_str(text).map_err(|err| format!("it is no message: {err}"))?;
        if message.id.is_some_and(|it| it.get().len() > ACP_ID_BYTES_MAX) {
            return Err("its id is too long".into());
        }
        match (&message.method, message.id) {
            (None, None) => Err("it has neither a method nor an id".into()),
            (Some(_), _) if message.result.is_some() || message.is_error => {
                Err("it is a request and an answer".into())
            }
            (None, Some(_)) if message.result.is_some() == message.is_error => {
                Err("an answer has a result or an error".into())
            }
            _ => Ok(message),
        }
    }

    /// Returns the id in the form for comparison.
    pub(super) fn key(&self) -> Option<Id> {
        self.id.map(Id::of)
    }

    /// Returns the parameters, or an empty object.
    pub(super) fn params(&self) -> &'a str {
        self.params.map_or("{}", RawValue::get)
    }

    /// Returns the session that the parameters name.
    pub(super) fn session(&self) -> Option<String> {
        session_in(self.params())
    }
}

/// Returns the session that an object's members name.
pub(super) fn session_in(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct OfSession {
        #[serde(rename = "sessionId")]
        id: String,
    }
    let id = serde_json::from_str::<OfSession>(text).ok()?.id;
    (id.len() <= ACP_ID_BYTES_MAX).then_some(id)
}

impl Id {
    pub(super) fn of(raw: &RawValue) -> Self {
        match serde_json::from_str(raw.get()) {
            Ok(Value::String(text)) => match text.parse::<i64>() {
                Ok(number) if is_exact(number) && number.to_string() == text => Self::Number(number),
                _ => Self::Text(text.into()),
            },
            Ok(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) if is_exact(number) => Self::Number(number),
                // This is the spelling of a peer that has only floating-point numbers.
                (None, Some(number)) if number.fract() == 0.0 && is_exact(number as i64) => {
                    Self::Number(number as i64)
                }
                _ => Self::Other(raw.get().into()),
            },
            _ => Self::Other(raw.get().into()),
        }
    }
}

impl<'de> Deserialize<'de> for Message<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Message<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message<'de>, A::Error> {
                let mut message = Message::default();
                let mut seen = [false; MEMBERS.len()];
                while let Some(Name(name)) = map.next_key()? {
                    let Some(at) = MEMBERS.iter().position(|it| name.eq_ignore_ascii_case(it)) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    if MEMBERS[at] != name || std::mem::replace(&mut seen[at], true) {
                        return Err(A::Error::custom("a member is there twice, or differs by case alone"));
                    }
                    match MEMBERS[at] {
                        "id" => message.id = Some(map.next_value()?),
                        "method" => message.method = Some(map.next_value::<Name<'de>>()?.0),
                        "params" => message.params = Some(map.next_value()?),
                        "result" => message.result = Some(map.next_value()?),
                        "error" => message.is_error = map.next_value::<&RawValue>()?.get() != "null",
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(message)
            }
        }
        from.deserialize_map(Members)
    }
}

/// Checks whether every peer tells a number from its neighbours, also one that has only JavaScript's numbers.
fn is_exact(number: i64) -> bool {
    number.unsigned_abs() < 1 << 53
}

/// A text that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Parses an object in which no member occurs twice, at any depth: so the peer reads the same object that was judged.
///
/// # Errors
/// The reason why it is no such object.
pub(super) fn plain_object(text: &str) -> Result<Value, String> {
    struct Plain(Value);
    impl<'de> Deserialize<'de> for Plain {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_any(Once).map(Self)
        }
    }
    struct Once;
    impl<'de> Visitor<'de> for Once {
        type Value = Value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }

        fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
            Ok(it.into())
        }

        fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
            Ok(it.into())
        }

        fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
            Ok(it.into())
        }

        fn visit_f64<E>(self, it: f64) -> Result<Value, E> {
            Ok(it.into())
        }

        fn visit_str<E>(self, it: &str) -> Result<Value, E> {
            Ok(it.into())
        }

        fn visit_unit<E>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
            let mut all = Vec::new();
            while let Some(Plain(item)) = items.next_element()? {
                all.push(item);
            }
            Ok(all.into())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
            let mut all = serde_json::Map::new();
            while let Some((name, Plain(value))) = members.next_entry::<String, Plain>()? {
                if all.insert(name, value).is_some() {
                    return Err(A::Error::custom("a member is there twice"));
                }
            }
            Ok(Value::Object(all))
        }
    }
    match serde_json::from_str(text) {
        Ok(Plain(value @ Value::Object(_))) => Ok(value),
        Ok(_) => Err("its parameters are no object".into()),
        Err(err) => Err(format!("its parameters cannot be read: {err}")),
    }
}

/// Parses like `plain_object`, and also checks that no member that is read by name occurs in another case of letters.
///
/// # Errors
/// The reason why it is no such object.
pub(super) fn known_object(text: &str) -> Result<Value, String> {
    let object = plain_object(text)?;
    checked_case(&object)?;
    Ok(object)
}

/// The members that are read by name, at any depth except within a tool's own arguments.
const KNOWN: [&str; 24] = [
    "sessionId",
    "update",
    "sessionUpdate",
    "toolCall",
    "toolCallId",
    "kind",
    "status",
    "content",
    "locations",
    "path",
    "type",
    "oldText",
    "newText",
    "rawInput",
    "title",
    "name",
    "options",
    "optionId",
    "outcome",
    "command",
    "args",
    "cwd",
    "modeId",
    "configId",
];

fn checked_case(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            if KNOWN.iter().any(|it| *it != name && it.eq_ignore_ascii_case(name)) {
                return Err("a member differs from a known one by case alone".to_owned());
            }
            // Tools name their arguments as they like.
            if matches!(name.as_str(), "rawInput" | "rawOutput" | "_meta") {
                Ok(())
            } else {
                checked_case(value)
            }
        }),
        Value::Array(items) => items.iter().try_for_each(checked_case),
        _ => Ok(()),
    }
}

/// Checks that the known members of an object, and of one of its members, occur once and in no other case of letters; does not read deeper.
///
/// # Errors
/// The reason why a member does not.
pub(super) fn clear_members(text: &str, known: &[&str]) -> Result<(), String> {
    struct Names<'k>(&'k [&'k str]);
    impl<'de> Visitor<'de> for Names<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            let mut seen = vec![false; self.0.len()];
            while let Some(Name(name)) = map.next_key()? {
                map.next_value::<IgnoredAny>()?;
                let Some(at) = self.0.iter().position(|it| name.eq_ignore_ascii_case(it)) else { continue };
                if self.0[at] != name || std::mem::replace(&mut seen[at], true) {
                    return Err(A::Error::custom("a member is there twice, or differs by case alone"));
                }
            }
            Ok(())
        }
    }
    let mut from = serde_json::Deserializer::from_str(text);
    from.deserialize_map(Names(known)).map_err(|err| format!("its parameters cannot be read: {err}"))
}

/// Returns a message of Provost as a line.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Returns the option that an answer to a permission request chooses.
pub(super) fn chosen_option(line: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(line).ok()?;
    answer.pointer("/result/outcome/optionId")?.as_str().map(str::to_owned)
}

/// Returns an answer to a request, with the id as the request spelled it.
pub(super) fn answer(id: &str, result: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into_bytes()
}

/// Returns an error as the answer to a request.
pub(super) fn failure(id: &str, code: i64, message: &str, data: &Value) -> Vec<u8> {
    let mut error = json!({ "code": code, "message": message });
    if !data.is_null() {
        error["data"] = data.clone();
    }
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes()
}

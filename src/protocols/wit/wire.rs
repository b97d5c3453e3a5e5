//! The types of the messages: JSON-RPC 2.0 with a version, and results. wit, 3 to 6.
//!
//! Members are in the order in which wit sends them; Provost's follow after its own.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use provost_base::limits::WIT_ID_LEN_MAX;

/// The version of the protocol.
pub(super) const VERSION: &str = "1";

/// The envelope of a request, read before its method.
pub(super) struct Envelope<'a> {
    /// The text of `id`: a string or, as Provost's extension, a number. It is sent back unchanged.
    pub(super) id: Box<RawValue>,
    /// The name of the method.
    pub(super) method: String,
    /// The text of `params`; `None` if the request has none.
    pub(super) params: Option<&'a RawValue>,
}

/// The reason why an envelope is refused; the answer then has no id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum BadEnvelope {
    /// Not one JSON value.
    NotJson,
    /// JSON, but not a request.
    NotARequest,
    /// A request for another version, or for none, with the text of the version.
    OtherVersion(Option<Box<str>>),
}

impl<'a> Envelope<'a> {
    /// Parses a request. If a name occurs twice, the last one counts; unknown members are ignored.
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, BadEnvelope> {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        let text = std::str::from_utf8(body).map_err(|_| BadEnvelope::NotJson)?;
        let whole: &RawValue = serde_json::from_str(text).map_err(|_| BadEnvelope::NotJson)?;
        if has_half_a_pair(text) {
            return Err(BadEnvelope::NotJson);
        }
        let names = ["jsonrpc", "witVersion", "id", "method", "params"];
        let [jsonrpc, version, id, method, params] = members(whole, names).ok_or(BadEnvelope::NotARequest)?;
        let is_current = version.is_some_and(|it| string(it).as_deref() == Some(VERSION));
        let shape = (id.filter(|it| is_id(it)).map(ToOwned::to_owned), method.and_then(string));
        match (jsonrpc.and_then(string).as_deref(), shape) {
            (Some("2.0"), (Some(id), Some(method))) if is_current => Ok(Self { id, method, params }),
            (Some("2.0"), (Some(_), Some(_))) => Err(BadEnvelope::OtherVersion(version.map(text_of))),
            // A request of another version may have another shape: then the version is the fault.
            _ if !is_current && version.is_some_and(|it| string(it).is_some()) => {
                Err(BadEnvelope::OtherVersion(version.map(text_of)))
            }
            _ => Err(BadEnvelope::NotARequest),
        }
    }
}

fn text_of(value: &RawValue) -> Box<str> {
    value.get().into()
}

fn is_id(value: &RawValue) -> bool {
    value.get().len() <= WIT_ID_LEN_MAX
        && value.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

/// Returns the string in a value, if it is one.
pub(super) fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Returns the named members of an object; `None` for a value that is no object.
pub(super) fn members<'a, const N: usize>(
    value: &'a RawValue,
    names: [&str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    let mut reader = serde_json::Deserializer::from_str(value.get());
    Members(names).deserialize(&mut reader).ok()
}

struct Members<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Members<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(name) = map.next_key::<Name<'de>>()? {
            match self.0.iter().position(|it| *it == name.0) {
                Some(at) => found[at] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// Reads the elements of an array, and keeps at most one more than this many.
pub(super) struct Elements(pub(super) usize);

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while found.len() <= self.0
            && let Some(element) = seq.next_element()?
        {
            found.push(element);
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// A member's name, copied only if it contains escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

/// Returns whether valid JSON has half of a surrogate pair in a string: that stands for no text.
fn has_half_a_pair(json: &str) -> bool {
    let bytes = json.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(br"\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        at += next;
        at += match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => return true,
            Some(_) => 6,
            None => 2,
        };
    }
    false
}

/// Encodes a value.
pub(super) fn json(value: &impl Serialize) -> Box<RawValue> {
    // Provost's own types have text keys and finite numbers.
    serde_json::value::to_raw_value(value).expect("our own types always encode")
}

/// The envelope of an answer, with either a result or an error.
#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    #[serde(rename = "witVersion")]
    wit_version: &'static str,
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

/// The error with which a request is refused.
#[derive(Serialize, Debug)]
pub(super) struct Error {
    /// The code; wit, 6.
    pub(super) code: i32,
    /// A word for programs.
    pub(super) message: &'static str,
    /// More data for programs and people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Box<RawValue>>,
}

/// Encodes the answer to a request; the id is `None` if the request has none, or one that cannot be trusted.
pub(super) fn response(id: Option<&RawValue>, outcome: &Result<Box<RawValue>, Error>) -> String {
    let response = Response {
        jsonrpc: "2.0",
        wit_version: VERSION,
        id,
        result: outcome.as_deref().ok(),
        error: outcome.as_ref().err(),
    };
    json(&response).get().to_owned()
}

/// The faults of parameters, in the form of wit's validation library.
#[derive(Serialize, Default, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct Faults {
    /// The faults of the parameters as a whole.
    pub(super) form_errors: Vec<String>,
    /// The faults of single members.
    #[serde(serialize_with = "as_object")]
    pub(super) field_errors: Vec<(&'static str, Vec<String>)>,
}

fn as_object<S: Serializer>(
    fields: &[(&'static str, Vec<String>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(fields.len()))?;
    fields.iter().try_for_each(|(name, texts)| map.serialize_entry(name, texts))?;
    map.end()
}

//! Lists of artifacts, also as Emacs mangles them. A6s 3.1.
//!
//! Emacs reads an object as a property list, and writes a list of property lists as a single object: the member's
//! name is an artifact's first key, its value an array of that key's value and all further keys and values. With
//! several artifacts, that member occurs several times. Read in this way, no data is lost.

use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use provost_base::limits::{A6S_ARTIFACTS_MAX, ID_LEN_MAX};

/// The most members of an artifact that are read; Provost's have six.
const MEMBERS_MAX: usize = 64;

/// A new file as a whole, or an instruction for a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Artifact {
    /// The id under which the daemon has kept the file's old content; empty if there is none.
    #[serde(deserialize_with = "text")]
    pub id: String,
    /// `file`, `test`, `delete`, `binary`, `log`, `snippet`, or another daemon's word.
    #[serde(rename = "type", deserialize_with = "text")]
    pub kind: String,
    /// The path of the file, relative to the workspace.
    #[serde(deserialize_with = "text")]
    pub path: String,
    /// The whole new text of the file.
    #[serde(deserialize_with = "text")]
    pub content: String,
    /// The language of the file; may be empty.
    #[serde(deserialize_with = "text")]
    pub language: String,
    /// Digest of the file's old content; `None` for a new file, and if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_hash: Option<String>,
}

/// Reads an optional text: Emacs returns an empty one, others omit it or send `null`.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Artifact {
    /// Checks the members whose errors concern the whole call: an invalid path or content is refused by itself,
    /// beside the other artifacts.
    fn check(self) -> Result<Self, String> {
        if [&self.id, &self.kind, &self.language].iter().any(|it| it.len() > ID_LEN_MAX) {
            return Err(format!("an artifact's id, type or language is longer than {ID_LEN_MAX} bytes"));
        }
        Ok(self)
    }
}

/// `artifacts.preview`.
#[derive(Clone, Debug, Serialize)]
pub struct Previews {
    /// The previews, one for each artifact, in their order.
    pub files: Vec<Previewed>,
}

/// The effect that an apply would have on an artifact.
#[derive(Clone, Debug, Serialize)]
pub struct Previewed {
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// `create`, `modify`, `skip`.
    pub action: &'static str,
    /// The difference in git's form, or a line that says why the file is not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The reason why it would not be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer of `artifacts.apply`. The numbers add up to the number of artifacts.
#[derive(Clone, Debug, Serialize)]
pub struct Applied {
    /// The number of files that were written.
    pub applied: u32,
    /// The number of files that needed no change.
    pub skipped: u32,
    /// A sentence about each of the others.
    pub errors: Vec<String>,
    /// The number by which it can be undone, if any file was to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply: Option<u64>,
}

/// Artifacts in any of the accepted forms.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Artifacts(pub Vec<Artifact>);

impl<'de> Deserialize<'de> for Artifacts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms).map(Self)
    }
}

/// Reads a list, a single artifact, Emacs' form of a list, or an empty value.
struct Forms;

impl<'de> Visitor<'de> for Forms {
    type Value = Vec<Artifact>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of artifacts")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(artifact) = seq.next_element::<Artifact>()? {
            push(&mut all, artifact).map_err(A::Error::custom)?;
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some(name) = map.next_key()? {
            if members.len() >= A6S_ARTIFACTS_MAX.max(MEMBERS_MAX) {
                return Err(A::Error::custom(too_many()));
            }
            members.push((name, map.next_value()?));
        }
        let is_one = members.iter().any(|(name, value)| name == "path" && value.get().starts_with('"'));
        let mut all = Vec::new();
        if is_one {
            let pairs = members.iter().map(|(name, value)| (name.as_str(), &**value));
            let one = from_pairs(pairs).map_err(A::Error::custom)?;
            push(&mut all, one).map_err(A::Error::custom)?;
            return Ok(all);
        }
        for (name, value) in &members {
            let one = unmangled(name, value).map_err(A::Error::custom)?;
            push(&mut all, one).map_err(A::Error::custom)?;
        }
        Ok(all)
    }
}

fn too_many() -> String {
    format!("more than {A6S_ARTIFACTS_MAX} artifacts")
}

fn push(all: &mut Vec<Artifact>, artifact: Artifact) -> Result<(), String> {
    if all.len() >= A6S_ARTIFACTS_MAX {
        return Err(too_many());
    }
    all.push(artifact.check()?);
    Ok(())
}

/// Restores an artifact from its first key and the array with the rest.
fn unmangled(first: &str, rest: &RawValue) -> Result<Artifact, String> {
    let no_list = || "artifacts must be a list".to_owned();
    let Values(values) = serde_json::from_str(rest.get()).map_err(|_| no_list())?;
    let [value, others @ ..] = &values[..] else { return Err(no_list()) };
    let (pairs, []) = others.as_chunks::<2>() else { return Err(no_list()) };
    let mut names: Vec<(String, &RawValue)> = vec![(first.to_owned(), *value)];
    for [name, value] in pairs {
        names.push((serde_json::from_str(name.get()).map_err(|_| no_list())?, *value));
    }
    from_pairs(names.iter().map(|(name, value)| (name.as_str(), *value)))
}

/// Makes an artifact from its members; unknown ones are ignored, and the last of equal ones counts.
fn from_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a RawValue)>) -> Result<Artifact, String> {
    let mut one = Artifact::default();
    for (name, value) in pairs {
        let slot = match name {
            "id" => &mut one.id,
            "type" => &mut one.kind,
            "path" => &mut one.path,
            "content" => &mut one.content,
            "language" => &mut one.language,
            "baseHash" => one.base_hash.get_or_insert_default(),
            _ => continue,
        };
        let text: Option<String> = serde_json::from_str(value.get())
            .map_err(|_| format!("an artifact's {name} must be a string"))?;
        *slot = text.unwrap_or_default();
    }
    one.base_hash = one.base_hash.filter(|it| !it.is_empty());
    Ok(one)
}

/// The values of an array, unparsed; at most as many as an artifact can have.
struct Values<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Values<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            if values.len() >= 2 * MEMBERS_MAX {
                return Err(A::Error::custom("too many members"));
            }
            values.push(value);
        }
        Ok(Values(values))
    }
}

//! Finds a member that is in an object of a message twice.
//!
//! The library keeps the last of them. A host, its person or its hook may have judged the first one, so no call with
//! two of them is carried out.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use provost_base::visible_name;

/// The most characters of a name that an error repeats.
const NAME_CHARS_MAX: usize = 60;

/// Returns the error if a member is in its object twice, at any depth. The text was read as JSON before.
pub fn repeated_member(line: &[u8]) -> Option<String> {
    serde_json::from_slice::<Checked>(line).err().map(|error| error.to_string())
}

/// A value in which no member occurs twice; nothing of it is kept.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Check)
    }
}

struct Check;

impl<'de> Visitor<'de> for Check {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Checked, A::Error> {
        while items.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Checked, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, Checked)) = members.next_entry::<String, Checked>()? {
            if names.contains(&name) {
                let name = visible_name(&name, NAME_CHARS_MAX);
                return Err(A::Error::custom(format!("the member `{name}` is there twice")));
            }
            names.insert(name);
        }
        Ok(Checked)
    }
}

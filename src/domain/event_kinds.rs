//! The names of all kinds of events, as they are stored: serde takes them from the variants of [`EventKind`].

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

use super::{ApplyEvent, CrewEvent, EventKind, JobEvent, MergeEvent, PermissionEvent, QueueEvent, TalkEvent};

/// The names of those variants of [`EventKind`] that hold another enum of events.
const GROUPS: [&str; 7] = ["crew", "job", "apply", "merge", "permission", "talk", "queue"];

/// Returns all names by which events can be filtered.
pub fn event_kinds() -> impl Iterator<Item = &'static str> {
    let single = names_of::<EventKind>().iter().filter(|it| !GROUPS.contains(it));
    let grouped = [
        names_of::<CrewEvent>(),
        names_of::<JobEvent>(),
        names_of::<ApplyEvent>(),
        names_of::<MergeEvent>(),
        names_of::<PermissionEvent>(),
        names_of::<TalkEvent>(),
        names_of::<QueueEvent>(),
    ];
    single.chain(grouped.into_iter().flatten()).copied()
}

fn names_of<T: Deserialize<'static>>() -> &'static [&'static str] {
    T::deserialize(Names).err().map_or(&[], |Found(names)| names)
}

/// A deserializer without input, which collects the names of the variants that could be read.
struct Names;

#[derive(Debug)]
struct Found(&'static [&'static str]);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is nothing to read")
    }
}

impl std::error::Error for Found {}

impl Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for Names {
    type Error = Found;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Found> {
        Err(Found(&[]))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Found> {
        Err(Found(variants))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

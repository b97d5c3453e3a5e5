//! Packages of Java: a file names its package, and sees the definitions of the package's other files.

use super::{PLAIN, Rules, full_names};
use crate::resolve::{Resolver, Value};

pub(super) const RULES: Rules = Rules {
    ends: &[".java"],
    keys: Some(|_, outline| full_names::keys(FAMILY, outline)),
    around: Some(around),
    by_path: Some(|resolver, _, path, depth| full_names::by_path(resolver, FAMILY, path, depth)),
    implied: Some("constructor"),
    ..PLAIN
};

/// Java and Kotlin see each other's types.
pub(super) const FAMILY: &str = "jvm";

/// Members of the types around first, then the own package, then what is imported with a star.
fn around(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    depth: u32,
) -> Option<Value> {
    full_names::in_types_around(resolver, (file, around), name, depth)
        .or_else(|| full_names::through_stars(resolver, FAMILY, file, name, depth))
}

//! Packages of Kotlin: a file names its package, and sees the definitions of the package's other files, also those in Java.

use super::java::FAMILY;
use super::{PLAIN, Rules, full_names};
use crate::outline::Take;
use crate::resolve::{Resolver, Value};

pub(super) const RULES: Rules = Rules {
    ends: &[".kt", ".kts"],
    keys: Some(|_, outline| full_names::keys(FAMILY, outline)),
    around: Some(around),
    added: Some(added),
    by_path: Some(|resolver, _, path, depth| full_names::by_path(resolver, FAMILY, path, depth)),
    extension: Some(extension),
    implied: Some("constructor"),
    ..PLAIN
};

/// Members of the types around first, and of the type that a function around extends; then the own package, then what is imported
/// with a star.
fn around(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    depth: u32,
) -> Option<Value> {
    full_names::in_types_around(resolver, (file, around), name, depth)
        .or_else(|| in_extended(resolver, (file, around), name, depth))
        .or_else(|| full_names::through_stars(resolver, FAMILY, file, name, depth))
}

/// A member of the type that the function around extends, which stands apart from it.
fn in_extended(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    depth: u32,
) -> Option<Value> {
    let outline = resolver.files.outline(file)?;
    let mut outermost = around?;
    while let Some(parent) = outline.nodes[outermost as usize].parent {
        outermost = parent;
    }
    let (of, _) = outline.path(outermost).rsplit_once('.')?;
    // The name of the type is looked up as one, at the top of the file.
    if of == name {
        return None;
    }
    let class = resolver.at_top(file, outline, of, depth);
    let class = class.or_else(|| full_names::through_stars(resolver, FAMILY, file, of, depth));
    class.and_then(|class| resolver.member(class, name, depth)).or_else(|| extension(resolver, of, name))
}

fn added(resolver: &mut Resolver<'_>, (file, node): (u32, u32), name: &str, _: u32) -> Option<Value> {
    let outline = resolver.files.outline(file)?;
    let own = outline.word(outline.nodes[node as usize].name).to_owned();
    extension(resolver, &own, name)
}

/// A function that extends a type, which the asking file imports by its name, has in its package, or takes in with a star.
fn extension(resolver: &mut Resolver<'_>, of: &str, name: &str) -> Option<Value> {
    let outline = resolver.files.outline(resolver.asking())?;
    for binding in outline.bindings_named(name) {
        let Take::Name(real) = binding.take else { continue };
        let from = vec![outline.word(outline.specs[binding.spec as usize]).to_owned()];
        if let Some(found) = full_names::extension(resolver, FAMILY, &from, of, outline.word(real)) {
            return Some(found);
        }
    }
    let seen: Vec<String> = full_names::namespaces(outline).map(ToOwned::to_owned).collect();
    full_names::extension(resolver, FAMILY, &seen, of, name)
}

//! Hard links: a write in the place of a file changes what it says under each of its names. Those among them that others hold are
//! looked for where a file has more than one.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::call::Target;
use provost_api::wire;

/// Whether one of the files has another name.
pub(super) fn are_among(files: &[Target]) -> bool {
    files.iter().any(|it| inode(&it.path).is_some_and(|it| it.2 > 1))
}

/// The files that others hold and that are changed with these, under other names.
pub(super) fn beside(top: &Path, files: &[Target], held: &BTreeSet<String>) -> Vec<wire::Edit> {
    let mut found = Vec::new();
    for target in files {
        let Some((device, number, names)) = inode(&target.path).filter(|it| it.2 > 1) else { continue };
        let is_it = |path: &Path| {
            path != target.path && inode(path).is_some_and(|it| (it.0, it.1) == (device, number))
        };
        let twins = held.iter().filter(|it| is_it(&top.join(it)));
        // Not more than there can be.
        for path in twins.take(usize::try_from(names).unwrap_or(usize::MAX)) {
            let texts = target.change.as_ref().map(|(a, b)| (STANDARD.encode(a), STANDARD.encode(b)));
            let (before, after) = texts.unzip();
            let (path, fails) = (path.clone(), target.fails);
            found.push(wire::Edit { path, before, after, fails, symbol: None });
        }
    }
    found
}

/// What a file is apart from its names, and how many of these it has.
#[cfg(unix)]
fn inode(path: &Path) -> Option<(u64, u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((meta.dev(), meta.ino(), meta.nlink()))
}

/// The same where the system does not say it in this way.
#[cfg(windows)]
fn inode(_path: &Path) -> Option<(u64, u64, u64)> {
    None
}

//! Absolute paths in what tools are called with: hosts give them to their models, and they mean the same as those from the
//! root of the repository, in whichever of its work trees they lie.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use rmcp::model::JsonObject;
use serde_json::Value;

use super::tool::Fault;
use super::words::one_line;
use crate::base::limits::{MCP_FOLDERS_MAX, PATH_LEN_MAX};
use crate::client::Client;

/// Members that are paths, or `file:symbol`.
const MEMBERS: [&str; 12] = [
    "deleted",
    "file",
    "files",
    "files_created",
    "files_modified",
    "given",
    "path",
    "places",
    "renamed_from",
    "symbol",
    "symbols",
    "working_dir",
];

/// Writes absolute paths as they are from the root.
pub(super) async fn from_the_root(client: &Client, arguments: &mut JsonObject) -> Result<(), Fault> {
    let mut absolute = Vec::new();
    texts(arguments, &mut absolute);
    if absolute.is_empty() {
        return Ok(());
    }
    let root = PathBuf::from(client.about().await?.root);
    let worktree = arguments.get("worktree").and_then(Value::as_str).map(PathBuf::from);
    let mut absolute = Vec::new();
    texts(arguments, &mut absolute);
    let mut looks = Looks::default();
    for text in absolute {
        let (path, symbol) = parts(text);
        if path.len() > PATH_LEN_MAX {
            let path = one_line(path, 60);
            return Err(Fault::new(format!("{path} is longer than the {PATH_LEN_MAX} bytes of a path")));
        }
        let roots = worktree.iter().chain([&root]);
        let Some(inside) = inside(Path::new(path), roots, &root, &mut looks).await else {
            let (path, root) = (one_line(path, 300), root.display());
            return Err(Fault::new(format!("{path} is outside of the repository, which is {root}")));
        };
        let symbol = symbol.map(|it| format!(":{it}")).unwrap_or_default();
        *text = format!("{inside}{symbol}");
    }
    Ok(())
}

/// Every absolute path in them.
fn texts<'a>(arguments: &'a mut JsonObject, found: &mut Vec<&'a mut String>) {
    for (name, value) in arguments {
        if MEMBERS.contains(&name.as_str()) {
            of_value(value, found);
        }
    }
}

fn of_value<'a>(value: &'a mut Value, found: &mut Vec<&'a mut String>) {
    match value {
        Value::String(text) if Path::new(text.as_str()).is_absolute() => found.push(text),
        Value::Array(values) => values.iter_mut().for_each(|it| of_value(it, found)),
        Value::Object(members) => texts(members, found),
        _ => {}
    }
}

/// The file, and the symbol in it. On Windows a path has a colon of its own.
fn parts(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((file, symbol)) if file.len() > 1 && !symbol.contains(['/', '\\']) => (file, Some(symbol)),
        _ => (text, None),
    }
}

/// The path from the root of the work tree in which it lies.
async fn inside(
    path: &Path,
    roots: impl Iterator<Item = &PathBuf>,
    root: &Path,
    looks: &mut Looks,
) -> Option<String> {
    let below =
        |path: &Path, root: &Path| path.strip_prefix(root).ok()?.to_str().map(|it| it.replace('\\', "/"));
    // What climbs is understood by nobody but the file system, and then only while no link is on the way.
    if path.components().any(|it| it == Component::ParentDir) {
        return None;
    }
    for root in roots {
        if let Some(inside) = below(path, root) {
            return Some(inside);
        }
    }
    // Another name of the root, or another work tree of the same repository.
    let common = tokio::fs::canonicalize(root.join(".git")).await.ok()?;
    let canonical = tokio::fs::canonicalize(root).await.ok()?;
    for folder in path.ancestors().skip(1) {
        if looks.is_top(folder, &canonical, &common).await? {
            return below(path, folder);
        }
    }
    None
}

/// What one call has looked at: paths share their folders, and each of those is looked at once.
#[derive(Default)]
struct Looks(HashMap<PathBuf, bool>);

impl Looks {
    /// Whether a folder is the top of one of the repository's work trees; nothing once a call has had so many looked at.
    async fn is_top(&mut self, folder: &Path, root: &Path, common: &Path) -> Option<bool> {
        if let Some(known) = self.0.get(folder) {
            return Some(*known);
        }
        if self.0.len() >= MCP_FOLDERS_MAX {
            return None;
        }
        let is_root = tokio::fs::canonicalize(folder).await.is_ok_and(|it| it == root);
        let is_top = is_root || is_worktree(folder, common).await;
        self.0.insert(folder.to_owned(), is_top);
        Some(is_top)
    }
}

/// Whether a folder is the top of a linked work tree whose repository has its data there.
async fn is_worktree(folder: &Path, common: &Path) -> bool {
    const LINK_BYTES_MAX: u64 = 8 << 10;
    let link = folder.join(".git");
    let is_small =
        tokio::fs::metadata(&link).await.is_ok_and(|it| it.is_file() && it.len() <= LINK_BYTES_MAX);
    if !is_small {
        return false;
    }
    let Ok(text) = tokio::fs::read_to_string(&link).await else { return false };
    let Some(data) = text.trim().strip_prefix("gitdir: ") else { return false };
    let data = tokio::fs::canonicalize(folder.join(data)).await;
    data.is_ok_and(|it| it.starts_with(common.join("worktrees")))
}

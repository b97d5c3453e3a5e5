//! Rewrites absolute paths in the arguments of tools: hosts give them to their models, and they mean the same as
//! paths from the root of the repository, in any of its work trees. Files are read in the work tree of the path.

mod patterns;

use std::collections::HashMap;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use rmcp::model::JsonObject;
use serde_json::Value;

use super::tool::ToolError;
use super::words::one_line;
use provost_base::limits::{MCP_FOLDERS_MAX, PATH_LEN_MAX};
use provost_base::plain_path;
use provost_client::Client;

/// The members that are paths, or `file:symbol`.
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
    WORKING_DIR,
];

/// The folder in which a task works, which is in the main work tree.
const WORKING_DIR: &str = "working_dir";

/// The work tree of the files that a call concerns.
pub(super) enum Files {
    /// No absolute path names one, or several name different ones.
    Unsaid,
    /// The daemon's own work tree.
    Main,
    /// A linked work tree, by its absolute path.
    Linked(String),
}

/// Rewrites absolute paths as relative to the root. Returns the work tree that holds all of them.
///
/// # Errors
/// A path that leads out of the repository, or is too long.
pub(super) async fn from_the_root(client: &Client, arguments: &mut JsonObject) -> Result<Files, ToolError> {
    let mut absolute = Vec::new();
    texts(arguments, &mut absolute);
    if absolute.is_empty() && !patterns::has_absolute(arguments) {
        return Ok(Files::Unsaid);
    }
    let root = PathBuf::from(client.about().await?.root);
    let named = arguments.get("worktree").and_then(Value::as_str).map(PathBuf::from);
    let mut trees = Trees::of(root, named).await;
    let mut tops = Vec::new();
    let mut absolute = Vec::new();
    texts(arguments, &mut absolute);
    for (is_folder_of_task, text) in absolute {
        let (path, symbol) = parts(text);
        let found = trees.find(path).await?;
        if is_folder_of_task {
            trees.of_a_task(path, &found)?;
        } else if found.inside.is_empty() && found.linked.is_some() {
            let path = one_line(path, 300);
            return Err(ToolError::new(format!(
                "{path} is a linked work tree of the repository, and no file in it"
            )));
        }
        let symbol = symbol.map(|it| format!(":{it}")).unwrap_or_default();
        *text = format!("{}{symbol}", found.inside);
        tops.push(found.linked);
    }
    patterns::from_the_working_dir(&mut trees, arguments).await?;
    tops.dedup();
    Ok(match &tops[..] {
        [None] => Files::Main,
        [Some(top)] => top.to_str().map_or(Files::Unsaid, |top| Files::Linked(top.into())),
        _ => Files::Unsaid,
    })
}

/// Collects every absolute path in the arguments, with whether it is the folder in which a task works.
fn texts<'a>(arguments: &'a mut JsonObject, found: &mut Vec<(bool, &'a mut String)>) {
    for (name, value) in arguments {
        if MEMBERS.contains(&name.as_str()) {
            of_value(value, name == WORKING_DIR, found);
        }
    }
}

fn of_value<'a>(value: &'a mut Value, is_folder: bool, found: &mut Vec<(bool, &'a mut String)>) {
    match value {
        Value::String(text) if Path::new(text.as_str()).is_absolute() => found.push((is_folder, text)),
        Value::Array(values) => values.iter_mut().for_each(|it| of_value(it, is_folder, found)),
        Value::Object(members) => texts(members, found),
        _ => {}
    }
}

/// Splits a text into the file and the symbol in it. On Windows a path has a colon of its own.
fn parts(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((file, symbol)) if file.len() > 1 && !symbol.contains(['/', '\\']) => (file, Some(symbol)),
        _ => (text, None),
    }
}

/// The file or folder that an absolute path names.
struct Found {
    /// The path from the top of its work tree.
    inside: String,
    /// The top of its work tree, if that is a linked one.
    linked: Option<PathBuf>,
}

/// The work trees of the repository, for the paths of one call.
struct Trees {
    root: PathBuf,
    /// The work tree that the call names.
    named: Option<PathBuf>,
    /// The root without links, and the folder with the repository's data; `None` if either cannot be determined.
    real: Option<(PathBuf, PathBuf)>,
    /// The folders that were checked: paths share their folders, and each is checked once.
    looks: HashMap<PathBuf, Top>,
    /// The targets of folders that are no tops; `None` for a folder that does not exist.
    leads: HashMap<PathBuf, Option<PathBuf>>,
}

/// The kind of work tree that has a folder as its top.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Top {
    Main,
    Linked,
    Nothing,
}

impl Trees {
    async fn of(root: PathBuf, named: Option<PathBuf>) -> Self {
        let common = tokio::fs::canonicalize(root.join(".git")).await;
        let canonical = tokio::fs::canonicalize(&root).await;
        Self {
            real: canonical.ok().zip(common.ok()),
            root,
            named,
            looks: HashMap::new(),
            leads: HashMap::new(),
        }
    }

    /// Finds the place of a path by its spelling: among nested work trees, the innermost counts.
    async fn find(&mut self, text: &str) -> Result<Found, ToolError> {
        if text.len() > PATH_LEN_MAX {
            let path = one_line(text, 60);
            return Err(ToolError::new(format!("{path} is longer than the {PATH_LEN_MAX} bytes of a path")));
        }
        let path = plain_path(Path::new(text));
        for folder in path.ancestors() {
            let linked = match self.top(folder).await {
                Top::Main => None,
                Top::Linked => Some(folder.to_owned()),
                Top::Nothing => continue,
            };
            let inside = path.strip_prefix(folder).ok().and_then(Path::to_str);
            if let Some(inside) = inside {
                return Ok(Found { inside: inside.replace(MAIN_SEPARATOR, "/"), linked });
            }
        }
        if let Some(inside) = self.behind_links(&path).await {
            return Ok(Found { inside: inside.replace(MAIN_SEPARATOR, "/"), linked: None });
        }
        let (path, root) = (one_line(text, 300), self.root.display());
        Err(ToolError::new(format!("{path} is outside of the repository, which is {root}")))
    }

    /// Returns the path from the root if a link outside of the repository leads to a folder in it. Later links are
    /// followed where files are opened.
    async fn behind_links(&mut self, path: &Path) -> Option<String> {
        let (root, _) = self.real.clone()?;
        let folders: Vec<&Path> = path.ancestors().collect();
        for folder in folders.into_iter().rev() {
            if !self.leads.contains_key(folder) {
                if self.leads.len() >= MCP_FOLDERS_MAX {
                    return None;
                }
                self.leads.insert(folder.to_owned(), tokio::fs::canonicalize(folder).await.ok());
            }
            let real = self.leads.get(folder)?.as_ref()?;
            if let Ok(below) = real.strip_prefix(&root) {
                return below.join(path.strip_prefix(folder).ok()?).to_str().map(str::to_owned);
            }
        }
        None
    }

    /// Refuses a folder in a linked work tree: a task works in the main work tree, regardless of the caller's.
    fn of_a_task(&self, path: &str, found: &Found) -> Result<(), ToolError> {
        let Some(top) = &found.linked else { return Ok(()) };
        let (path, top, root) = (one_line(path, 300), top.display(), self.root.display());
        Err(ToolError::new(format!(
            "{path} is of {top}, a linked work tree of the repository; a task works in the main one: name a folder below {root}"
        )))
    }

    /// Returns the work tree whose top a folder is; `Nothing` once a call has checked too many folders, except for known names.
    async fn top(&mut self, folder: &Path) -> Top {
        if *folder == self.root {
            return Top::Main;
        }
        if let Some(known) = self.looks.get(folder) {
            return *known;
        }
        if self.looks.len() >= MCP_FOLDERS_MAX {
            return if self.named.as_deref() == Some(folder) { Top::Linked } else { Top::Nothing };
        }
        let top = match &self.real {
            Some((root, _)) if tokio::fs::canonicalize(folder).await.is_ok_and(|it| it == *root) => Top::Main,
            Some((_, common)) if is_worktree(folder, common).await => Top::Linked,
            // The daemon refuses a folder that is no work tree of the repository, and names it in the error.
            _ if self.named.as_deref() == Some(folder) => Top::Linked,
            _ => Top::Nothing,
        };
        self.looks.insert(folder.to_owned(), top);
        top
    }
}

/// Returns whether a folder is the top of a linked work tree of the repository with this data folder.
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

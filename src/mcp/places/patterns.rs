//! Absolute patterns of the files that a task watches. A task's patterns are relative to the folder in which it works.

use std::path::Path;

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{Trees, WORKING_DIR};
use crate::tool::ToolError;
use crate::words::one_line;
use provost_base::normalised_path;

/// The member that has the patterns.
const MEMBER: &str = "watch_patterns";

/// The characters that make a name a pattern.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '}'];

fn is_absolute(value: &Value) -> bool {
    value.as_str().is_some_and(|it| Path::new(it).is_absolute())
}

/// Returns whether one of the arguments' patterns is absolute.
pub(super) fn has_absolute(arguments: &JsonObject) -> bool {
    arguments.get(MEMBER).and_then(Value::as_array).is_some_and(|all| all.iter().any(is_absolute))
}

/// Rewrites the patterns as relative to the working directory, which is relative to the root by now.
pub(super) async fn from_the_working_dir(
    trees: &mut Trees,
    arguments: &mut JsonObject,
) -> Result<(), ToolError> {
    let folder = arguments.get(WORKING_DIR).and_then(Value::as_str).map(normalised_path).unwrap_or_default();
    let folder = if folder == "." { String::new() } else { folder };
    let Some(Value::Array(all)) = arguments.get_mut(MEMBER) else { return Ok(()) };
    for value in all.iter_mut().filter(|it| is_absolute(it)) {
        let text = value.as_str().unwrap_or_default().to_owned();
        *value = Value::String(one(trees, &folder, &text).await?);
    }
    Ok(())
}

async fn one(trees: &mut Trees, folder: &str, text: &str) -> Result<String, ToolError> {
    let pattern = if cfg!(windows) { text.replace('\\', "/") } else { text.to_owned() };
    // The part without special characters is a path of the system; the rest follows unchanged.
    let special = pattern.find(SPECIAL).unwrap_or(pattern.len());
    let (fixed, rest) = match pattern[..special].rfind('/') {
        Some(end) if special < pattern.len() => pattern.split_at(end + 1),
        _ => (pattern.as_str(), ""),
    };
    let found = trees.find(fixed).await?;
    trees.of_a_task(text, &found)?;
    let below = match folder {
        "" => Some(found.inside.as_str()),
        _ => found.inside.strip_prefix(folder).filter(|it| it.is_empty() || it.starts_with('/')),
    };
    let Some(below) = below.map(|it| it.trim_start_matches('/')) else {
        let text = one_line(text, 300);
        return Err(ToolError::new(format!(
            "{text} begins outside of `{folder}`, the working_dir, where the task's patterns begin; name files below it"
        )));
    };
    let is_folder = rest.is_empty() && (below.is_empty() || pattern.ends_with('/'));
    let parts = [below, rest, if is_folder { "**" } else { "" }];
    let whole = parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("/");
    // A pattern without a slash matches names in any folder, but this one is for the names of one folder.
    Ok(if whole.contains('/') || whole == "**" { whole } else { format!("{{{whole},./{whole}}}") })
}

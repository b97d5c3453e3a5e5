//! Absolute patterns for files that a task is to watch. A task's patterns begin in the folder where it works.

use std::path::Path;

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{Trees, WORKING_DIR};
use crate::tool::ToolError;
use crate::words::one_line;
use provost_base::normalised_path;

/// The member that has them.
const MEMBER: &str = "watch_patterns";

/// The characters that make a name a pattern.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '}'];

fn is_absolute(value: &Value) -> bool {
    value.as_str().is_some_and(|it| Path::new(it).is_absolute())
}

/// Whether there is one among what a tool is called with.
pub(super) fn has_absolute(arguments: &JsonObject) -> bool {
    arguments.get(MEMBER).and_then(Value::as_array).is_some_and(|all| all.iter().any(is_absolute))
}

/// Writes them as they are from the working directory, which is known from the root by now.
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
    // The part without special characters is a path of the system's; the rest is behind it as it is.
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
    // Without a slash a pattern is for names in any folder, and this one is for those of one folder.
    Ok(if whole.contains('/') || whole == "**" { whole } else { format!("{{{whole},./{whole}}}") })
}

//! Turns the words of the editor's person into the goal of a task. ACP v1, "Content".

use serde_json::Value;

/// Returns the words of a prompt: its texts, its attached contents, and the names of its links.
///
/// # Errors
/// The reason why the prompt cannot be put into words.
pub(super) fn words(prompt: &Value) -> Result<String, &'static str> {
    let blocks = prompt.as_array().ok_or("prompt is a list of blocks of content")?;
    let parts: Vec<String> = blocks.iter().map(block).collect::<Result<_, _>>()?;
    let words = parts.join("\n");
    match words.trim().is_empty() {
        true => Err("the prompt has no words"),
        false => Ok(words),
    }
}

fn block(block: &Value) -> Result<String, &'static str> {
    let text = |at: &str| block.pointer(at).and_then(Value::as_str);
    match text("/type") {
        Some("text") => text("/text").map(str::to_owned).ok_or("a block of text has no text"),
        Some("resource_link") => {
            let uri = text("/uri").ok_or("a link has no uri")?;
            Ok(format!("[{}]({uri})", text("/name").unwrap_or(uri)))
        }
        Some("resource") => {
            let uri = text("/resource/uri").ok_or("what is attached has no uri")?;
            let attached = text("/resource/text").ok_or("what is attached is no text")?;
            Ok(format!("{uri}:\n{}", fenced(attached)))
        }
        _ => Err("an agent in its jail takes text, links and attached text alone"),
    }
}

/// Returns a text between fences that are longer than any fence in it.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

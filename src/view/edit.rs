//! An edit that a host's tool asks for, as a difference in git's form, line by line.
//!
//! The texts are the asker's. The daemon puts a sign before each line, and the lengths of the hunks give the number
//! of lines, so that no text can pass for a head or for another file.

use serde_json::Value;

use provost_base::limits::WEB_DIFF_LINES_MAX;

/// The names that hosts give to the file of an edit.
const PATHS: [&str; 3] = ["file_path", "path", "notebook_path"];
/// The names of the old and the new text.
const TEXTS: [(&str, &str); 2] = [("old_string", "new_string"), ("oldText", "newText")];
/// The names of a whole new content.
const CONTENTS: [&str; 2] = ["content", "new_source"];
/// The name of the list of several edits of one file.
const EDITS: &str = "edits";

/// Returns the difference that these arguments ask for; `None` where they are no edit, or a text of it is missing.
pub(crate) fn difference(arguments: &Value) -> Option<String> {
    let path = PATHS.iter().find_map(|it| arguments.get(it)?.as_str())?;
    let hunks: Vec<(&str, &str)> = match arguments.get(EDITS) {
        Some(edits) => edits.as_array()?.iter().map(texts).collect::<Option<_>>()?,
        None => vec![texts(arguments).or_else(|| Some(("", content(arguments)?)))?],
    };
    if hunks.is_empty() {
        return None;
    }
    // The path stands in one line, since its control characters are escaped.
    let path = path.escape_debug().to_string();
    let mut text = format!("--- a/{path}\n+++ b/{path}\n");
    for (old, new) in hunks {
        let (gone, come): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        text.push_str(&format!("@@ -1,{} +1,{} @@\n", gone.len(), come.len()));
        for (sign, line) in gone.iter().map(|it| ('-', it)).chain(come.iter().map(|it| ('+', it))) {
            text.push(sign);
            text.push_str(line.strip_suffix('\n').unwrap_or(line));
            text.push('\n');
        }
    }
    // A longer difference would be cut on the page, but a person answers for all of it.
    (text.lines().count() < WEB_DIFF_LINES_MAX).then_some(text)
}

/// Returns the arguments without the texts that the difference shows.
pub(crate) fn without_texts(arguments: &Value) -> Value {
    let names = || TEXTS.iter().flat_map(|(old, new)| [*old, *new]);
    let mut rest = arguments.clone();
    let Some(members) = rest.as_object_mut() else { return rest };
    match members.get_mut(EDITS).and_then(Value::as_array_mut) {
        Some(edits) => {
            let of_each = edits.iter_mut().filter_map(Value::as_object_mut);
            of_each.for_each(|it| it.retain(|name, _| !names().any(|text| text == name)));
            // Members beside the texts, such as `replace_all`, stay.
            edits.retain(|it| it.as_object().is_none_or(|it| !it.is_empty()));
            if edits.is_empty() {
                members.remove(EDITS);
            }
        }
        None if texts(arguments).is_some() => members.retain(|name, _| !names().any(|text| text == name)),
        None => members.retain(|name, _| !CONTENTS.contains(&name.as_str())),
    }
    rest
}

fn texts(edit: &Value) -> Option<(&str, &str)> {
    // With two pairs, it is unclear which one the host means.
    let mut pairs =
        TEXTS.iter().filter_map(|(old, new)| Some((edit.get(old)?.as_str()?, edit.get(new)?.as_str()?)));
    let pair = pairs.next()?;
    pairs.next().is_none().then_some(pair)
}

fn content(arguments: &Value) -> Option<&str> {
    let mut all = CONTENTS.iter().filter_map(|it| arguments.get(it)?.as_str());
    let one = all.next()?;
    all.next().is_none().then_some(one)
}

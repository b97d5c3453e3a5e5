//! Values of settings files that are command lines or words of one.
#![forbid(unsafe_code)]

use crate::budget::Budget;
use crate::programs::{LOADED_FROM, OPTIONS_IN};
use provost_base::limits::VALUES_TIMES_MAX;

/// Returns the values of a settings file that are command lines or words of one, by the names of their keys; in JSON, TOML and YAML
/// alike, without a parser for each. A value is missed only if no such name stands before it.
///
/// With `paths`, a path by itself counts as a program, as in settings of editors.
pub(crate) fn values(text: &str, paths: bool, budget: &mut Budget) -> Vec<String> {
    let mut found = Vec::new();
    // The folder in which the program beside it starts, whose key may stand before or behind it; and the last other line.
    let (mut folder, mut last) = (String::new(), String::new());
    // A program and its arguments, whose keys stand beside each other in either order.
    let (mut program, mut arguments) = ("args".to_owned(), String::new());
    // Each value is a part of the text, and may belong to many keys.
    let mut left = VALUES_TIMES_MAX * (text.len() + VALUES_TIMES_MAX);
    for (at, _) in text.match_indices([':', '=']) {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let before = before.strip_suffix(['"', '\'']).unwrap_or(before);
        let key =
            before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
        let is_of_mise = |name: &str| before.strip_suffix(name).is_some_and(|it| it.ends_with("_."));
        let adds_to = LOADED_FROM.contains(&key) || OPTIONS_IN.iter().any(|it| it.0 == key);
        let is_path = paths && (key == "path" || key.ends_with("Path"));
        let mise = ["path", "source", "file"].into_iter().find(|it| is_of_mise(it));
        if !(is_key(key) || adds_to || is_path || mise.is_some() || FOLDERS.contains(&key)) {
            continue;
        }
        let (value, seen) = value_at(text, at);
        let words = if value.starts_with('"') { value.clone() } else { quoted(&value) };
        let lines = match key {
            _ if adds_to => vec![format!("{key}={words}")],
            _ if mise == Some("path") => vec![format!("PATH_add {}", words.replace("{{config_root}}", "."))],
            _ if mise.is_some() => vec![format!(". {}", words.replace("{{config_root}}", "."))],
            _ if FOLDERS.contains(&key) => {
                folder = value;
                vec![format!("{program} {arguments}"), last.clone()]
            }
            "args" | "arguments" => {
                arguments = value;
                vec![format!("{program} {arguments}")]
            }
            "command" | "path" => {
                program = value;
                // Also the whole value in quotes: it is a name with blanks in it, or a line.
                let whole = Some(quoted(&program)).filter(|_| program.contains(' '));
                [program.clone(), format!("{program} {arguments}")].into_iter().chain(whole).collect()
            }
            _ => {
                last = value;
                vec![last.clone()]
            }
        };
        let from = (!folder.is_empty() && !adds_to && mise.is_none()).then(|| quoted(&folder));
        let below: Vec<String> =
            from.iter().flat_map(|it| lines.iter().map(move |line| format!("cd {it}; {line}"))).collect();
        let lines = if FOLDERS.contains(&key) { below } else { [lines, below].concat() };
        let cost = seen + lines.iter().map(String::len).sum::<usize>();
        let Some(rest) = left.checked_sub(cost).filter(|_| budget.read(cost)) else {
            budget.is_not_enough();
            break;
        };
        left = rest;
        found.extend(lines);
    }
    found
}

/// Returns the value behind the key whose sign is at `at`, and how many bytes were looked at.
fn value_at(text: &str, at: usize) -> (String, usize) {
    let value = text[at + 1..].trim_start_matches([' ', '\t']);
    if let Some(list) = value.strip_prefix('[') {
        let (words, seen) = strings(list, ']', usize::MAX);
        return (words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "), seen);
    }
    if value.starts_with(['"', '\'']) {
        let (words, seen) = strings(value, '\n', 1);
        return (words.into_iter().next().unwrap_or_default(), seen);
    }
    if !value.starts_with(['|', '>', '\n', '\r']) {
        let line = value.lines().next().unwrap_or_default();
        return (line.trim_end_matches([',', ' ', '\r']).to_owned(), line.len());
    }
    // The indent of a line's first letter, to find the lines that belong to it.
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let line_of_key = text[..at].rfind('\n').map_or(0, |it| it + 1);
    let (is_list, far) = (value.starts_with(['\n', '\r']), indent(&text[line_of_key..at]));
    let is_in =
        |it: &&str| it.trim().is_empty() || indent(it) > far || is_list && it.trim_start().starts_with('-');
    let (mut inner, mut seen) = (Vec::new(), at - line_of_key);
    for line in value.lines().skip(1).take_while(is_in) {
        seen += line.len() + 1;
        inner.push(line.trim().trim_start_matches("- "));
    }
    (inner.join(if is_list { " " } else { "\n" }), seen)
}

/// Keys whose values are the folders in which programs start.
const FOLDERS: [&str; 5] = ["cwd", "root", "workdir", "workingDirectory", "working_directory"];

/// Returns as lines every text in a settings file that stands in quotes or behind a name.
pub(crate) fn all_values(text: &str, budget: &mut Budget) -> Vec<String> {
    if !budget.read(2 * text.len()) {
        return Vec::new();
    }
    let (mut found, _) = strings(text, '\0', usize::MAX);
    let behind = text.lines().filter_map(|line| line.split_once(": "));
    found.extend(behind.map(|(_, value)| value.trim().to_owned()).filter(|it| !it.starts_with(['"', '\''])));
    found
}

fn is_key(key: &str) -> bool {
    const KEYS: [&str; 18] = [
        "args",
        "arguments",
        "bash",
        "cmd",
        "command",
        "commands",
        "enter",
        "entry",
        "exec",
        "executable",
        "linux",
        "notify",
        "postinstall",
        "preinstall",
        "osx",
        "run",
        "script",
        "windows",
    ];
    KEYS.contains(&key)
        || ["Command", "Helper", "Script", "_command", "_script", "Refresh"]
            .iter()
            .any(|it| key.ends_with(it))
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the strings of a list, up to its end or to `most` strings, and how many bytes were looked at.
fn strings(text: &str, end: char, most: usize) -> (Vec<String>, usize) {
    let (mut found, mut rest) = (Vec::new(), text.chars());
    while found.len() < most
        && let Some(next) = rest.next()
        && next != end
    {
        if next == '"' || next == '\'' {
            let mut string = String::new();
            while let Some(it) = rest.next() {
                match it {
                    it if it == next => break,
                    '\\' if next == '"' => {
                        string.extend(rest.next().map(|it| if it == 'n' { '\n' } else { it }))
                    }
                    it => string.push(it),
                }
            }
            found.push(string);
        }
    }
    (found, text.len() - rest.as_str().len())
}

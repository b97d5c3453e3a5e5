//! `compile_commands.json`: the folders in which the compiler looks for the headers of each file.
//! <https://clang.llvm.org/docs/JSONCompilationDatabase.html>

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Files;
use crate::modules::joined;
use provost_base::limits::SETTINGS_ROWS_MAX;

/// The most folders that are searched for one file.
const FOLDERS_MAX: usize = 64;

/// The most files from which the place of the repository is inferred.
const ASKED_MAX: usize = 16;

/// The contents of each `compile_commands.json`.
#[derive(Default, Debug)]
pub(super) struct Settings {
    files: BTreeMap<Box<str>, Vec<Entry>>,
}

/// One file, and the folders that its command names, as absolute paths.
#[derive(PartialEq, Eq, Debug)]
struct Entry {
    file: Box<str>,
    folders: Vec<Box<str>>,
}

pub(super) fn is_settings(path: &str) -> bool {
    path.rsplit('/').next() == Some("compile_commands.json")
}

impl Settings {
    /// Takes a file in, or notes that it is gone; says whether that makes a difference.
    pub(super) fn set(&mut self, path: &str, text: Option<&str>) -> bool {
        let rows: Option<Vec<Value>> = text.and_then(|text| serde_json::from_str(text).ok());
        let entries: Option<Vec<Entry>> =
            rows.map(|rows| rows.iter().take(SETTINGS_ROWS_MAX * 20).filter_map(entry).collect());
        let differs = self.files.get(path) != entries.as_ref();
        match entries {
            Some(entries) => self.files.insert(path.into(), entries),
            None => self.files.remove(path),
        };
        differs
    }

    /// The folders in which the headers of a file may be: those of its own command, else those of all.
    pub(super) fn folders(&self, path: &str, files: &Files) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for entries in self.files.values() {
            let asked = entries.iter().take(ASKED_MAX);
            let Some(root) = asked.filter_map(|it| root_of(&it.file, files)).next() else { continue };
            let own = format!("{root}/{path}");
            let is_own = entries.iter().any(|it| *it.file == *own);
            for entry in entries.iter().filter(|it| !is_own || *it.file == *own) {
                for folder in &entry.folders {
                    let inside = folder.strip_prefix(root).filter(|it| it.is_empty() || it.starts_with('/'));
                    let inside = inside.map(|it| it.trim_start_matches('/').to_owned());
                    found.extend(inside.filter(|it| !found.contains(it)));
                    if found.len() >= FOLDERS_MAX {
                        return found;
                    }
                }
            }
        }
        found
    }
}

/// Where the repository lies, by a file that is in it.
fn root_of<'p>(file: &'p str, files: &Files) -> Option<&'p str> {
    let starts = file.match_indices('/').map(|(at, _)| at);
    let mut roots = starts.filter(|at| files.at(&file[at + 1..]).is_some());
    roots.next().map(|at| &file[..at])
}

fn absolute(folder: &str, path: &str) -> Option<Box<str>> {
    let path = path.replace('\\', "/");
    let whole = if path.starts_with('/') || path.get(1..2) == Some(":") {
        joined("", &path)
    } else {
        joined(folder, &path)
    };
    whole.map(|it| format!("/{it}").into())
}

fn entry(row: &Value) -> Option<Entry> {
    let text = |name: &str| row.get(name).and_then(Value::as_str);
    let folder = text("directory").unwrap_or_default();
    let words: Vec<String> = match row.get("arguments").and_then(Value::as_array) {
        Some(words) => words.iter().filter_map(|it| it.as_str().map(ToOwned::to_owned)).collect(),
        None => words_of(text("command").unwrap_or_default()),
    };
    let mut folders: Vec<Box<str>> = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let named =
            ["-I", "-isystem", "-iquote", "-idirafter", "/I"].iter().find_map(|it| word.strip_prefix(it));
        let named = match named {
            Some("") => words.next(),
            Some(rest) => Some(rest.trim_start_matches('=')),
            None => continue,
        };
        folders.extend(named.and_then(|it| absolute(folder, it)));
    }
    folders.truncate(FOLDERS_MAX);
    Some(Entry { file: absolute(folder, text("file")?)?, folders })
}

/// The words of a command, with `"…"`, `'…'` and `\` as a shell has them.
fn words_of(command: &str) -> Vec<String> {
    let (mut found, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut marks = command.chars();
    while let Some(mark) = marks.next() {
        match (mark, quote) {
            ('\\', None | Some('"')) => word.extend(marks.next()),
            (mark, Some(open)) if mark == open => quote = None,
            ('"' | '\'', None) => quote = Some(mark),
            (mark, None) if mark.is_whitespace() => {
                if !word.is_empty() {
                    found.push(std::mem::take(&mut word));
                }
            }
            (mark, _) => word.push(mark),
        }
    }
    if !word.is_empty() {
        found.push(word);
    }
    found
}

//! Edits in Ruby and PHP, held against a second finding of the definition around them that knows no grammar: by the
//! first words and the indentation of formatted lines.

use std::path::{Path, PathBuf};

use provost::base::encloses;
use provost::syntax::{Language, ParseDeadline, Version, read, touched};

use crate::support::source::project_root;

/// How a language is looked at without its grammar.
struct Naive {
    language: Language,
    folder: &'static str,
    /// A comment that is put behind a line.
    comment: &'static str,
    /// Returns the name of the definition that a line begins, if it begins one.
    begins: fn(&str) -> Option<String>,
    /// With which a line begins that ends what is as much indented.
    end: &'static str,
}

const LANGUAGES: &[Naive] = &[
    Naive {
        language: Language::Ruby,
        folder: "ruby",
        comment: "# edited",
        begins: begun_in_ruby,
        end: "end",
    },
    Naive { language: Language::Php, folder: "php", comment: "// edited", begins: begun_in_php, end: "}" },
];

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn word(text: &str, more: &str) -> String {
    text.chars().take_while(|it| it.is_alphanumeric() || *it == '_' || more.contains(*it)).collect()
}

fn without<'t>(text: &'t str, words: &[&str]) -> &'t str {
    let mut rest = text.trim_start();
    while let Some(shorter) = words.iter().find_map(|it| rest.strip_prefix(it)) {
        rest = shorter;
    }
    rest
}

fn begun_in_ruby(line: &str) -> Option<String> {
    let rest = without(line, &["private ", "protected ", "public "]);
    // What is within is of the class around.
    if rest.starts_with("class <<") {
        return Some(String::new());
    }
    for start in ["class ", "module "] {
        if let Some(named) = rest.strip_prefix(start) {
            return Some(word(named, ":").replace("::", "."));
        }
    }
    if let Some(named) = rest.strip_prefix("def ") {
        let named = named.split(['(', ' ', ';']).next().unwrap_or(named);
        return Some(named.strip_prefix("self.").unwrap_or(named).to_owned());
    }
    if let Some(named) = rest.strip_prefix("define_method(:") {
        return Some(word(named, ""));
    }
    let made = word(rest, "");
    (made.starts_with(char::is_uppercase) && rest.ends_with(" do")).then_some(made)
}

fn begun_in_php(line: &str) -> Option<String> {
    let words = ["public ", "protected ", "private ", "static ", "abstract ", "final ", "$"];
    let rest = without(line, &words);
    for start in ["class ", "interface ", "trait ", "enum ", "function ", "namespace "] {
        if let Some(named) = rest.strip_prefix(start)
            && !(start == "namespace " && named.ends_with(';'))
        {
            return Some(word(named, "\\").replace('\\', "."));
        }
    }
    rest.strip_suffix(" = new class {").map(ToOwned::to_owned)
}

/// The definition around a line.
fn around(naive: &Naive, lines: &[&str], at: usize) -> String {
    let mut names = Vec::new();
    let mut bound = indent(lines[at]) + usize::from((naive.begins)(lines[at]).is_some());
    for (from, line) in lines[..=at].iter().enumerate().rev().filter(|(_, line)| !line.trim().is_empty()) {
        let ends = |it: &&str| indent(it) == indent(line) && it.trim_start().starts_with(naive.end);
        if indent(line) < bound
            && let Some(name) = (naive.begins)(line)
            && !lines[from + 1..=at].iter().any(ends)
        {
            names.push(name);
            bound = indent(line);
        }
    }
    names.retain(|name| !name.is_empty());
    names.reverse();
    names.join(".")
}

/// Whether a line is one whose definition can be told by looking at it.
fn is_plain(line: &str) -> bool {
    const STARTS: &[&str] =
        &["#", "//", "/*", "*", "end", "}", ")", "]", "alias", "attr", "include", "def_", "use "];
    let text = line.trim();
    text.len() > 3 && !STARTS.iter().any(|it| text.starts_with(it)) && !text.ends_with([',', '\\'])
}

fn touches(language: Language, old: &str, new: &str) -> Vec<String> {
    let [before, after] = [old, new].map(|it| read(language, it.as_bytes(), &ParseDeadline::endless()));
    let old = Version { reading: &before, bytes: old.as_bytes() };
    let new = Version { reading: &after, bytes: new.as_bytes() };
    touched(old, new).into_iter().map(String::from).collect()
}

#[test]
fn five_hundred_edits_of_each_language_touch_the_definition_that_is_around_them() {
    for naive in LANGUAGES {
        let mut files = Vec::new();
        files_below(&project_root().join("tests/it/code/questions").join(naive.folder), &mut files);
        let (mut checked, mut wrong) = (0, Vec::new());
        for before in 0..40 {
            for file in files
                .iter()
                .filter(|it| provost::syntax::language_of(it.to_str().unwrap()) == Some(naive.language))
            {
                let text = std::fs::read_to_string(file).unwrap();
                let lines: Vec<&str> = text.split('\n').collect();
                // Each time other lines of the file, with so many lines before it.
                for at in (before % 5..lines.len()).step_by(5) {
                    let expected = around(naive, &lines, at);
                    if !is_plain(lines[at]) || expected.is_empty() || indent(lines[at]) == 0 {
                        continue;
                    }
                    let shifted = format!("{}{text}", "\n".repeat(before));
                    let mut changed: Vec<String> = lines.iter().map(ToString::to_string).collect();
                    changed[at] = format!("{} {}", changed[at], naive.comment);
                    let changed = format!("{}{}", "\n".repeat(before), changed.join("\n"));
                    checked += 1;
                    let found = touches(naive.language, &shifted, &changed);
                    let is_it = |found: &String| *found == expected || encloses(&expected, found);
                    if found.len() != 1 || !is_it(&found[0]) {
                        wrong.push(format!("{}:{}: {expected} and {found:?}", file.display(), at + 1));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(checked >= 500, "{checked} of {}", naive.folder);
    }
}

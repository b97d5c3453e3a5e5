//! Edits in C and C++, held against a second finding of the definition around them that knows no grammar: by the lines at the
//! left edge, and the namespaces that are open there.

use provost::base::encloses;
use provost::syntax::Language;

use super::enclosing::{edited, files_below, indent, is_plain, word};
use crate::support::source::project_root;

/// Returns the name of the definition that a line at the left edge begins.
fn begun(line: &str) -> Option<String> {
    if line.starts_with(['#', '}', '{', '/', ' ', ':'])
        || line.starts_with("template")
        || line.starts_with("using ")
    {
        return None;
    }
    // A type, or a pointer to a function.
    if line.contains("(*") {
        return None;
    }
    let text = line.strip_prefix("typedef ").unwrap_or(line);
    for start in ["struct ", "union ", "enum ", "class "] {
        if let Some(rest) = text.strip_prefix(start).filter(|_| line.ends_with('{')) {
            // A macro may stand before the name.
            let names: Vec<&str> =
                rest.split([' ', ':']).filter(|it| !it.is_empty() && *it != "class").collect();
            let is_macro = |it: &str| it.chars().all(|it| it.is_uppercase() || it == '_');
            return names.iter().find(|it| !is_macro(it)).map(|it| word(it));
        }
    }
    let head = line.split('(').next().filter(|_| line.contains('('))?;
    let name = head.trim_end().rsplit([' ', '*', '&']).next()?;
    let names: Vec<String> = name.split("::").map(word).filter(|it| !it.is_empty()).collect();
    (!names.is_empty()).then(|| names.join("."))
}

/// The namespaces around a line; one without a name has none.
fn namespaces(lines: &[&str], at: usize) -> String {
    let mut open: Vec<String> = Vec::new();
    for line in &lines[..at] {
        if let Some(rest) = line.strip_prefix("namespace ").filter(|rest| rest.ends_with('{')) {
            open.push(word(rest));
        } else if line.starts_with("} // namespace") {
            open.pop();
        }
    }
    open.retain(|it| !it.is_empty());
    open.join(".")
}

/// The definition around a line: the last one that began at the left edge above it, if it has not ended.
fn around(lines: &[&str], at: usize) -> Option<String> {
    let from = (0..=at).rev().find(|it| indent(lines[*it]) == 0 && begun(lines[*it]).is_some())?;
    let ends =
        lines[from..at].iter().any(|line| line.starts_with('}') || line.ends_with(';') && indent(line) == 0);
    let opens = lines[from..=at].iter().any(|line| line.ends_with('{'));
    if ends || (at > from && !opens) {
        return None;
    }
    let own = begun(lines[from])?;
    let before = namespaces(lines, from);
    Some(if before.is_empty() { own } else { format!("{before}.{own}") })
}

#[test]
fn five_hundred_edits_of_c_and_of_cpp_touch_the_definition_that_is_around_them() {
    for (language, header, folder, end) in
        [(Language::C, Language::CHeader, "c", ".c"), (Language::Cpp, Language::CHeader, "cpp", ".cpp")]
    {
        let (mut checked, mut wrong) = (0, Vec::new());
        // Each line, at several places of the file: with so many lines before it.
        for before in 0..8 {
            for (language, end) in [(language, end), (header, ".h")] {
                let mut files = Vec::new();
                files_below(&project_root().join("tests/it/code/questions").join(folder), end, &mut files);
                for file in &files {
                    let text =
                        format!("{}{}", "// …\n".repeat(before), std::fs::read_to_string(file).unwrap());
                    let lines: Vec<&str> = text.split('\n').collect();
                    for at in 0..lines.len() {
                        let Some(expected) = around(&lines, at).filter(|_| is_plain(lines[at])) else {
                            continue;
                        };
                        checked += 1;
                        let found = edited(language, &lines, at);
                        let is_it = |found: &String| *found == expected || encloses(&expected, found);
                        if found.len() != 1 || !is_it(&found[0]) {
                            wrong.push(format!("{}:{}: {expected} and {found:?}", file.display(), at + 1));
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(checked >= 500, "{checked}");
    }
}

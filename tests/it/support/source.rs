//! Rust sources as the checks of `layers` and `tidy` read them: code apart from comments and strings.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the project's files are. A test archive may be run elsewhere than it was built, and its runner then
/// says where at run time.
pub(crate) fn project_root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into()
}

/// One file, read.
pub(crate) struct Source {
    /// Its path from the project's root, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
    /// The text with comments, strings and characters blanked out, line for line.
    pub(crate) code: String,
    /// The text with all but its comments blanked out, line for line.
    pub(crate) comments: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = split(text);
        Self { path: path.into(), text: text.into(), code, comments }
    }

    /// The words and signs of the code, each with its line from 1.
    pub(crate) fn tokens(&self) -> Vec<(usize, &str)> {
        self.code
            .lines()
            .enumerate()
            .flat_map(|(i, line)| tokens_of(line).map(move |token| (i + 1, token)))
            .collect()
    }

    /// The modules from the crate's root down to this file's; `None` outside `src`.
    pub(crate) fn module(&self) -> Option<Vec<String>> {
        let inner = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        let mut parts: Vec<String> = inner.split('/').map(Into::into).collect();
        if parts.last().is_some_and(|last| last == "mod") {
            parts.pop();
        }
        Some(parts)
    }
}

/// Every Rust file below a folder of the project.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let root = project_root();
    let found: Vec<_> =
        files(&root, &root.join(folder)).into_iter().filter(|path| path.ends_with(".rs")).collect();
    assert!(!found.is_empty(), "no sources below {}", root.join(folder).display());
    found.iter().map(|path| Source::new(path, &fs::read_to_string(root.join(path)).unwrap())).collect()
}

/// Every file below a folder, by its path from the root, in order; build output and git's own files aside.
pub(crate) fn files(root: &Path, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (name, kind) = (entry.file_name(), entry.file_type().unwrap());
        if kind.is_dir() && name != "target" && name != ".git" {
            found.extend(files(root, &entry.path()));
        } else if kind.is_file() && name != ".git" {
            found.push(entry.path().strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
    found.sort();
    found
}

fn tokens_of(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let len = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(len);
        rest = after;
        Some(token)
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Literal,
}

/// Splits a text into its code and its comments; what belongs to neither is blank in both.
fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let mut parts = vec![Part::Code; chars.len()];
    let mut at = 0;
    while at < chars.len() {
        let (part, end) = part_at(&chars, at);
        parts[at..end].fill(part);
        at = end;
    }
    let only = |wanted: Part| {
        let keep = |(c, part): (&char, &Part)| if *c == '\n' || *part == wanted { *c } else { ' ' };
        chars.iter().zip(&parts).map(keep).collect()
    };
    (only(Part::Code), only(Part::Comment))
}

/// Returns the part that begins at a position, and its end.
fn part_at(chars: &[char], at: usize) -> (Part, usize) {
    let find = |from: usize, found: &dyn Fn(usize) -> Option<usize>| {
        (from..chars.len()).find_map(found).unwrap_or(chars.len())
    };
    let is = |at: usize, text: &str| text.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if is(at, "//") {
        return (Part::Comment, find(at, &|i| (chars[i] == '\n').then_some(i)));
    }
    if is(at, "/*") {
        return (Part::Comment, find(at + 2, &|i| is(i, "*/").then_some(i + 2)));
    }
    if is(at, "r") && !in_word {
        let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
        if chars.get(at + 1 + hashes) == Some(&'"') {
            let close = format!("\"{}", "#".repeat(hashes));
            return (Part::Literal, find(at + 2 + hashes, &|i| is(i, &close).then_some(i + 1 + hashes)));
        }
    }
    if chars[at] == '"' {
        return (Part::Literal, quoted_end(chars, at, '"'));
    }
    // A quote begins a character, unless it begins a lifetime: those have no quote two places on.
    if chars[at] == '\'' && (is(at + 1, "\\") || chars.get(at + 2) == Some(&'\'')) {
        return (Part::Literal, quoted_end(chars, at, '\''));
    }
    (Part::Code, at + 1)
}

fn quoted_end(chars: &[char], open: usize, quote: char) -> usize {
    let mut at = open + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

#[test]
fn code_is_told_apart_from_comments_strings_and_characters() {
    let source = Source::new(
        "src/a/b.rs",
        "let a = \"crate::x // no\"; // TODO é\nlet b = r#\"dbg!(\"y\")\"#; let c = '\"'; let d: &'a str;\n/* two\nlines */ e",
    );
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(joined(&source.code), "let a = ; let b = ; let c = ; let d: &'a str; e");
    assert_eq!(joined(&source.comments), "// TODO é /* two lines */");
    assert_eq!(source.tokens().last(), Some(&(4, "e")));
    assert_eq!(source.module().unwrap(), ["a", "b"]);
}

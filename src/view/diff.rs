//! A difference in git's form, as files and lines.

use provost_base::limits::WEB_DIFF_LINES_MAX;
use provost_base::{Unclear, check_look, visible};

use super::{DiffFile, DiffLine};

/// The files of a difference, in its order. Text before the first file is a file without a path.
pub fn files(text: &str) -> Vec<DiffFile> {
    let mut found: Vec<DiffFile> = Vec::new();
    let (mut before, mut after) = (None, None);
    // The number of lines that the hunk still has on each side: within it, `--- x` is a removed line.
    let mut left = (0_u64, 0_u64);
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().copied().enumerate() {
        let in_hunk = left != (0, 0);
        let begins = !in_hunk
            && (line.starts_with("diff --git ")
                || (line.starts_with("--- ")
                    && lines.get(at + 1).is_some_and(|it| it.starts_with("+++ "))
                    && !follows_head(&lines, at)));
        if begins || found.is_empty() {
            found.push(DiffFile {
                path: path_at(&lines, at),
                added: 0,
                removed: 0,
                lines: Vec::new(),
                more: 0,
                marks: Vec::new(),
            });
            (before, after) = (None, None);
        }
        let Some(file) = found.last_mut() else { continue };
        let is = kind(line, in_hunk);
        if is == "hunk" {
            let (from, to, lengths) = hunk(line);
            (before, after, left) = (Some(from), Some(to), lengths);
        }
        let numbers = match is {
            "add" => (None, after),
            "remove" => (before, None),
            "same" => (before, after),
            _ => (None, None),
        };
        file.added += usize::from(is == "add");
        file.removed += usize::from(is == "remove");
        if matches!(is, "remove" | "same") {
            before = before.map(|it| it + 1);
            left.0 = left.0.saturating_sub(1);
        }
        if matches!(is, "add" | "same") {
            after = after.map(|it| it + 1);
            left.1 = left.1.saturating_sub(1);
        }
        let text =
            if matches!(is, "add" | "remove" | "same") { line.get(1..).unwrap_or_default() } else { line };
        match file.lines.len() < WEB_DIFF_LINES_MAX {
            true => {
                file.lines.push(DiffLine { is, text: visible(text), before: numbers.0, after: numbers.1 })
            }
            false => file.more += 1,
        }
    }
    found
}

fn kind(line: &str, in_hunk: bool) -> &'static str {
    match line.as_bytes().first() {
        Some(b'+') if in_hunk => "add",
        Some(b'-') if in_hunk => "remove",
        Some(b' ') | None if in_hunk => "same",
        Some(b'@') if line.starts_with("@@ ") => "hunk",
        _ => "head",
    }
}

/// Checks whether a line `diff --git` stands above this one, with only head lines between.
fn follows_head(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev().take_while(|it| kind(it, false) == "head");
    above.into_iter().any(|it| it.starts_with("diff --git "))
}

/// The path of the file that begins at this line.
fn path_at(lines: &[&str], at: usize) -> String {
    let head = lines[at..].iter().take_while(|it| !it.starts_with("@@ "));
    let named = |mark: &str| {
        let mut lines =
            head.clone().enumerate().take_while(|(n, it)| *n == 0 || !it.starts_with("diff --git "));
        lines.find_map(|(_, it)| it.strip_prefix(mark)).filter(|it| *it != "/dev/null").map(without_side)
    };
    let in_head =
        || lines[at].strip_prefix("diff --git ").and_then(|it| it.rsplit_once(" b/")).map(|it| it.1);
    told(named("+++ ").or_else(|| named("--- ")).or_else(in_head).unwrap_or_default())
}

/// Returns a path with hidden characters shown, and a warning where it could be mistaken for another one.
fn told(path: &str) -> String {
    let alike = path.split('/').find_map(|part| match check_look(part) {
        Err(why @ (Unclear::Lookalike(..) | Unclear::Scripts(_))) => Some(why),
        _ => None,
    });
    let shown = visible(path);
    match alike {
        Some(Unclear::Lookalike(code, like)) => format!("{shown} (its U+{code:04X} looks like '{like}')"),
        Some(_) => format!("{shown} (its letters are of several scripts)"),
        None => shown,
    }
}

fn without_side(path: &str) -> &str {
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path)
}

/// Reads where a hunk begins on both sides, and how many lines each side has.
fn hunk(line: &str) -> (u64, u64, (u64, u64)) {
    let side = |sign: char| {
        let word = line.split(' ').find_map(|it| it.strip_prefix(sign)).unwrap_or_default();
        let (from, length) = word.split_once(',').unwrap_or((word, "1"));
        (from.parse().unwrap_or(0), length.parse().unwrap_or(0))
    };
    let ((from, gone), (to, come)) = (side('-'), side('+'));
    (from, to, (gone, come))
}

//! Patterns over names and paths.
//!
//! `*` stands for any text within a component, `**` for any number of whole components, none included; every
//! other character stands for itself. So `a/**` covers `a` and everything below, and `a*` never crosses a
//! slash. Small on purpose: what a person must trust should be readable without a manual.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder, escape};

use provost_base::limits::PATH_LEN_MAX;

/// Checks whether [`normalised_path`](provost_base::normalised_path) would leave a path unchanged; without allocating.
pub(super) fn is_normal(path: &str) -> bool {
    if path == "/" || path == "." {
        return true;
    }
    let (absolute, rest) = path.strip_prefix('/').map_or((false, path), |rest| (true, rest));
    let mut climbing = !absolute;
    !path.contains('\\')
        && rest.split('/').all(|part| {
            let up = part == "..";
            let fine = !part.is_empty() && part != "." && (!up || climbing);
            climbing &= up;
            fine
        })
}

/// Checks a pattern over paths and brings it to one spelling.
pub(super) fn path_pattern(text: &str, climbing: bool) -> Result<Box<str>, String> {
    if text.is_empty() {
        return Err("is empty; the root itself is written \".\"".to_owned());
    }
    if text.len() > PATH_LEN_MAX || text.chars().any(char::is_control) {
        return Err(format!("is longer than {PATH_LEN_MAX} bytes or contains a control character"));
    }
    if text.contains('\\') {
        return Err(format!("`{text}`: separate with `/`, not with a backslash"));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if climbing && parts.iter().all(|it| *it == "..") && !text.starts_with('/') => {
                parts.push(part)
            }
            ".." => return Err(format!("`{text}`: `..` cannot be matched here, paths are resolved before")),
            "**" if parts.last() == Some(&"**") => {}
            "**" => parts.push(part),
            _ if part.contains("**") => {
                return Err(format!("`{text}`: `**` stands alone between slashes, as in \"src/**/*.rs\""));
            }
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    Ok(match (text.starts_with('/'), joined.is_empty()) {
        (true, _) => format!("/{joined}").into(),
        (false, true) => ".".into(),
        (false, false) => joined.into(),
    })
}

/// Checks a pattern over names.
pub(super) fn name_pattern(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err("is empty or contains a control character".to_owned());
    }
    if text.contains("**") {
        return Err(format!("`{text}`: names have no slashes to cross, write a single `*`"));
    }
    Ok(text.into())
}

/// Escapes everything but the stars.
fn literally(pattern: &str) -> String {
    pattern.split('*').map(escape).collect::<Vec<_>>().join("*")
}

fn glob(pattern: &str, separator: bool) -> Result<Glob, String> {
    let built = GlobBuilder::new(pattern).literal_separator(separator).backslash_escape(false).build();
    built.map_err(|error| error.to_string())
}

fn compiled(builder: &GlobSetBuilder) -> Result<GlobSet, String> {
    builder.build().map_err(|error| error.to_string())
}

/// Patterns over names, compiled. Most are plain names, which need no glob.
#[derive(Clone, Debug)]
pub(super) struct NameGlobs {
    plain: Vec<Box<str>>,
    starred: Option<GlobSet>,
}

impl NameGlobs {
    pub(super) fn new(patterns: &[Box<str>]) -> Result<Self, String> {
        let (starred, plain): (Vec<_>, Vec<_>) = patterns.iter().cloned().partition(|it| it.contains('*'));
        let mut set = GlobSetBuilder::new();
        for pattern in &starred {
            set.add(glob(&literally(pattern), false)?);
        }
        let starred = if starred.is_empty() { None } else { Some(compiled(&set)?) };
        Ok(Self { plain, starred })
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let starred = || self.starred.as_ref().is_some_and(|set| set.is_match(Path::new(name)));
        self.plain.iter().any(|it| **it == *name) || starred()
    }
}

/// Patterns over normalised paths, compiled. Absolute patterns match absolute paths, the others relative ones.
#[derive(Clone, Debug)]
pub(super) struct PathGlobs {
    relative: Side,
    absolute: Side,
    /// The last component with a name of each pattern; `*` where a pattern has none.
    names: Vec<Box<str>>,
}

/// The absolute or the relative patterns. The root has no component that a glob could match, hence the flags; plain
/// folders and whole trees, most of what rules list, are compared as text.
#[derive(Clone, Debug, Default)]
struct Side {
    everything: bool,
    root: bool,
    plain: Vec<Box<str>>,
    trees: Vec<Box<str>>,
    anywhere: Vec<Box<str>>,
    starred: Option<GlobSet>,
}

impl Side {
    fn new<'a>(patterns: impl Iterator<Item = &'a str>, start: &str) -> Result<Self, String> {
        let mut side = Side::default();
        let mut set = GlobSetBuilder::new();
        let mut starred = false;
        for pattern in patterns {
            let tree = pattern.strip_suffix("/**").filter(|top| !top.contains('*'));
            match (pattern, tree) {
                (inner, _) if let Some(name) = anywhere(inner) => side.anywhere.push(name.into()),
                ("**", _) => side.everything = true,
                ("" | ".", _) => side.root = true,
                (_, Some(top)) => side.trees.push(format!("{start}{top}").into()),
                (plain, None) if !plain.contains('*') => side.plain.push(format!("{start}{plain}").into()),
                _ => {
                    let text = format!("{start}{}", literally(pattern));
                    set.add(glob(&text, true)?);
                    // The library's `a/**` does not cover `a` itself.
                    if let Some(top) = text.strip_suffix("/**") {
                        set.add(glob(top, true)?);
                    }
                    starred = true;
                }
            }
        }
        if starred {
            side.starred = Some(compiled(&set)?);
        }
        Ok(side)
    }

    fn matches(&self, path: &str, is_root: bool) -> bool {
        if self.everything || is_root {
            return self.everything || self.root;
        }
        self.plain.iter().any(|it| **it == *path)
            || self.trees.iter().any(|top| begins(path, top))
            || self.leads_through(path)
            || self.starred.as_ref().is_some_and(|set| set.is_match(Path::new(path)))
    }

    /// Checks whether the path leads through one of the folders that match at any depth.
    fn leads_through(&self, path: &str) -> bool {
        let mut rest = Some(path.strip_prefix('/').unwrap_or(path)).filter(|_| !self.anywhere.is_empty());
        while let Some(here) = rest {
            if self.anywhere.iter().any(|name| begins(here, name)) {
                return true;
            }
            rest = here.split_once('/').map(|(_, below)| below);
        }
        false
    }
}

/// Checks whether some text matches both, each with `*` for any text.
fn may_meet(one: &[u8], other: &[u8]) -> bool {
    // For each prefix of the other pattern, whether the part of the first that has been read can match it.
    let star_from = |reached: &mut Vec<bool>| {
        for at in 0..other.len() {
            reached[at + 1] |= reached[at] && other[at] == b'*';
        }
    };
    let mut reached = vec![false; other.len() + 1];
    reached[0] = true;
    star_from(&mut reached);
    for sign in one {
        let mut next = vec![false; other.len() + 1];
        for at in (0..=other.len()).filter(|at| reached[*at]) {
            let there = other.get(at).copied();
            match (sign, there) {
                (b'*', _) => next[at..].fill(true),
                (_, Some(b'*')) => next[at] = true,
                (sign, Some(it)) => next[at + 1] |= *sign == it,
                (_, None) => {}
            }
        }
        star_from(&mut next);
        reached = next;
    }
    reached[other.len()]
}

/// Checks whether a path begins with these whole components.
fn begins(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns `NAME` of a pattern `**/NAME/**`.
fn anywhere(pattern: &str) -> Option<&str> {
    pattern.strip_prefix("**/")?.strip_suffix("/**").filter(|name| !name.contains('*'))
}

impl PathGlobs {
    pub(super) fn new(patterns: &[Box<str>]) -> Result<Self, String> {
        let relative = patterns.iter().map(|it| &**it).filter(|it| !it.starts_with('/'));
        let absolute = patterns.iter().filter_map(|it| it.strip_prefix('/'));
        let name = |it: &str| it.rsplit('/').find(|part| *part != "**").unwrap_or("*").into();
        let names = patterns.iter().map(|it| name(it)).collect();
        Ok(Self { relative: Side::new(relative, "")?, absolute: Side::new(absolute, "/")?, names })
    }

    /// Checks whether a word, with stars for its unknown parts, may be a path that a pattern covers: one of its
    /// components may be the last one that the pattern names.
    pub(super) fn may_match(&self, word: &str) -> bool {
        word.split('/').any(|part| self.names.iter().any(|name| may_meet(part.as_bytes(), name.as_bytes())))
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        if path.starts_with('/') {
            self.absolute.matches(path, path == "/")
        } else {
            self.relative.matches(path, path.is_empty() || path == ".")
        }
    }
}

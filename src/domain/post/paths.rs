//! Files as broker messages name them: a path, a folder with a slash at its end, or a pattern.
//!
//! Two spellings of one path are the same place. A path that leads out of the repository stays unchanged, and only
//! meets itself.

use provost_base::RepoPath;
use provost_base::limits::{POST_PATTERN_LEN_MAX, POST_WILDCARDS_MAX};

/// The files that a path in a message means.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PathScope {
    /// The file with this path.
    File(Box<str>),
    /// Everything below a folder.
    Folder(Box<str>),
    /// Everything that fits a pattern.
    Pattern(Box<str>),
}

impl PathScope {
    /// Reads a place. Surrounding blanks are not part of it.
    pub fn of(text: &str) -> Self {
        let text = text.trim();
        let pattern = is_pattern(text);
        let Ok(path) = RepoPath::parse(text) else { return PathScope::File(text.into()) };
        match path.as_str() {
            "" if text.starts_with('.') => PathScope::Folder("".into()),
            "" => PathScope::File(text.into()),
            path if pattern => PathScope::Pattern(path.into()),
            path if text.ends_with(['/', '\\']) => PathScope::Folder(path.into()),
            path => PathScope::File(path.into()),
        }
    }

    /// Returns the file, if the place is a single file.
    pub fn file(&self) -> Option<&str> {
        match self {
            PathScope::File(path) => Some(path),
            _ => None,
        }
    }

    /// Checks whether the place includes a file.
    pub(super) fn has(&self, file: &str) -> bool {
        match self {
            PathScope::File(path) => **path == *file,
            PathScope::Folder(folder) => is_below(folder, file),
            PathScope::Pattern(pattern) => fits(pattern, file),
        }
    }

    /// Checks whether both places may have a file in common.
    pub fn meets(&self, other: &PathScope) -> bool {
        match (self, other) {
            (place, PathScope::File(file)) | (PathScope::File(file), place) => place.has(file),
            (PathScope::Folder(a), PathScope::Folder(b)) => a == b || is_below(a, b) || is_below(b, a),
            (PathScope::Folder(folder), PathScope::Pattern(pattern))
            | (PathScope::Pattern(pattern), PathScope::Folder(folder)) => {
                let fixed = fixed_part(pattern);
                fixed == &**folder || is_below(folder, fixed) || is_below(fixed, folder)
            }
            // The patterns alone do not show whether they share a file; equal patterns do.
            (PathScope::Pattern(a), PathScope::Pattern(b)) => a == b,
        }
    }
}

fn is_pattern(text: &str) -> bool {
    text.len() <= POST_PATTERN_LEN_MAX && (1..=POST_WILDCARDS_MAX).contains(&wildcards(text))
}

/// Returns the number of wildcards in a text; `**` is a single one.
fn wildcards(text: &str) -> usize {
    text.replace("**", "*").matches(['*', '?']).count()
}

fn is_below(folder: &str, path: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the folders before the first part with a wildcard.
pub(crate) fn fixed_part(pattern: &str) -> &str {
    let wild = pattern.find(['*', '?']).unwrap_or(pattern.len());
    pattern.get(..wild).and_then(|fixed| fixed.rfind('/')).map_or("", |end| &pattern[..end])
}

/// Checks whether a path fits a pattern. `*` and `?` do not cross a slash, `**` does; `**/` may stand for nothing.
pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
    let is_wild = |byte: &u8| matches!(byte, b'*' | b'?');
    let (Some(first), Some(last)) = (pattern.iter().position(is_wild), pattern.iter().rposition(is_wild))
    else {
        return pattern == path;
    };
    // Most paths already differ at the beginning or the end. The slash of `**/` may stand for nothing.
    let end = pattern[last + 1..].strip_prefix(b"/").unwrap_or(&pattern[last + 1..]);
    if !path.starts_with(&pattern[..first]) || !path.ends_with(end) {
        return false;
    }
    // For each part of the pattern: the ends of the path that its beginning can reach.
    let mut reach = vec![false; path.len() + 1];
    reach[0] = true;
    let mut next = vec![false; path.len() + 1];
    let mut rest = pattern;
    while !rest.is_empty() {
        next.fill(false);
        let ends = || (0..=path.len()).filter(|end| reach[*end]);
        let step = match rest {
            [b'*', b'*', b'/', ..] => {
                for end in ends() {
                    next[end] = true;
                }
                if let Some(first) = ends().next() {
                    let slashes = (first..path.len()).filter(|at| path[*at] == b'/');
                    slashes.for_each(|slash| next[slash + 1] = true);
                }
                3
            }
            [b'*', b'*', ..] => {
                if let Some(first) = ends().next() {
                    next[first..].fill(true);
                }
                2
            }
            [b'*', ..] => {
                let mut open = false;
                for end in 0..=path.len() {
                    open = reach[end] || (open && path[end - 1] != b'/');
                    next[end] = open;
                }
                1
            }
            [b'?', ..] => {
                for end in ends().filter(|end| path.get(*end).is_some_and(|byte| *byte != b'/')) {
                    next[end + 1] = true;
                }
                1
            }
            _ => {
                let len = rest.iter().position(is_wild).unwrap_or(rest.len());
                for end in ends().filter(|end| path[*end..].starts_with(&rest[..len])) {
                    next[end + len] = true;
                }
                len
            }
        };
        std::mem::swap(&mut reach, &mut next);
        rest = &rest[step..];
    }
    reach[path.len()]
}

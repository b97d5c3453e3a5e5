//! Patterns of watched files.
//!
//! As in a list of ignored files: a pattern without a slash applies to names, in any folder; a pattern with one
//! applies to paths from the directory that it is relative to. `*` and `?` do not cross a slash, `**` does; `[ab]`
//! and `{a,b}` are choices. A pattern that ends in a slash applies to everything below.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use super::limits::{WATCH_PATTERN_LEN_MAX, WATCH_PATTERNS_EASY_BYTES, WATCH_PATTERNS_MAX};

/// The reason why patterns were refused. Safe to show to the client that sent them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPattern {
    /// There are more than [`WATCH_PATTERNS_MAX`].
    #[error("watch_patterns has {0} entries; at most {WATCH_PATTERNS_MAX} are watched")]
    TooMany(usize),
    /// A pattern has more than [`WATCH_PATTERN_LEN_MAX`] bytes.
    #[error("watch_patterns[{0}] is longer than {WATCH_PATTERN_LEN_MAX} bytes")]
    TooLong(usize),
    /// A text is empty, absolute, climbs out, or is not a pattern.
    #[error("watch_patterns[{at}] '{pattern}' {why}")]
    Wrong {
        /// Its place in the list, from 0.
        at: usize,
        /// The pattern as it was sent, with control characters escaped.
        pattern: String,
        /// The mistake in the pattern.
        why: String,
    },
}

/// Patterns that are ready for matching.
#[derive(Clone, Debug)]
pub struct WatchPatterns(GlobSet);

impl WatchPatterns {
    /// Checks patterns, without making them ready: that takes a hundred times as long, and a caller that only
    /// passes them on does not need it.
    ///
    /// # Errors
    /// [`BadPattern`] names the first wrong one.
    pub fn check<T: AsRef<str>>(patterns: &[T]) -> Result<(), BadPattern> {
        let globs = globs(patterns)?;
        let bytes: usize = globs.iter().map(|glob| glob.regex().len()).sum();
        if bytes > WATCH_PATTERNS_EASY_BYTES { made_of(patterns, globs).map(drop) } else { Ok(()) }
    }

    /// Makes patterns ready for matching.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn parse<T: AsRef<str>>(patterns: &[T]) -> Result<Self, BadPattern> {
        made_of(patterns, globs(patterns)?)
    }

    /// Checks whether a path, relative and with slashes, matches.
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// Returns each pattern by itself.
fn globs<T: AsRef<str>>(patterns: &[T]) -> Result<Vec<Glob>, BadPattern> {
    if patterns.len() > WATCH_PATTERNS_MAX {
        return Err(BadPattern::TooMany(patterns.len()));
    }
    let mut globs = Vec::with_capacity(patterns.len());
    for (at, pattern) in patterns.iter().map(AsRef::as_ref).enumerate() {
        if pattern.len() > WATCH_PATTERN_LEN_MAX {
            return Err(BadPattern::TooLong(at));
        }
        let wrong = |why: String| BadPattern::Wrong { at, pattern: pattern.escape_debug().to_string(), why };
        let whole = spelled_out(pattern).map_err(|why| wrong(why.into()))?;
        let glob = GlobBuilder::new(&whole).literal_separator(true).backslash_escape(false).build();
        globs.push(glob.map_err(|err| wrong(format!("is not a pattern: {}", err.kind())))?);
    }
    Ok(globs)
}

fn made_of<T: AsRef<str>>(patterns: &[T], globs: Vec<Glob>) -> Result<WatchPatterns, BadPattern> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(glob);
    }
    set.build().map(WatchPatterns).map_err(|err| BadPattern::Wrong {
        at: 0,
        pattern: patterns.first().map_or_else(String::new, |it| it.as_ref().escape_debug().to_string()),
        why: format!("and the others cannot be watched together: {}", err.kind()),
    })
}

/// Returns the pattern over whole paths that a pattern stands for.
fn spelled_out(pattern: &str) -> Result<String, &'static str> {
    if pattern.chars().any(char::is_control) {
        return Err("contains a control character");
    }
    // Clients on Windows write backslashes.
    let text = pattern.replace('\\', "/");
    let text = text.strip_prefix("./").unwrap_or(&text);
    if text.trim().is_empty() {
        return Err("is empty");
    }
    if text.starts_with('/') || text.as_bytes().get(1) == Some(&b':') {
        return Err("must be relative to the working directory");
    }
    if text.split('/').any(|part| part == "..") {
        return Err("must not climb out of the working directory");
    }
    let (text, below) = text.strip_suffix('/').map_or((text, ""), |text| (text, "/**"));
    let anywhere = if text.contains('/') { "" } else { "**/" };
    Ok(format!("{anywhere}{text}{below}"))
}

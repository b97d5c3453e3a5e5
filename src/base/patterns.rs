//! Patterns of files that somebody wants watched.
//!
//! As in a list of ignored files: a pattern without a slash is about names, in any folder; one with a slash is
//! about paths from the directory it is relative to. `*` and `?` do not cross a slash, `**` does; `[ab]` and
//! `{a,b}` are choices. A pattern that ends in a slash is about everything below.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::limits::{WATCH_PATTERN_LEN_MAX, WATCH_PATTERNS_MAX};

/// Why patterns were turned down. Safe to show to whoever sent them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPattern {
    /// More than [`WATCH_PATTERNS_MAX`].
    #[error("watch_patterns has {0} entries; at most {WATCH_PATTERNS_MAX} are watched")]
    TooMany(usize),
    /// More than [`WATCH_PATTERN_LEN_MAX`] bytes.
    #[error("watch_patterns[{0}] is longer than {WATCH_PATTERN_LEN_MAX} bytes")]
    TooLong(usize),
    /// Empty, absolute, climbing, or not a pattern.
    #[error("watch_patterns[{at}] '{pattern}' {why}")]
    Wrong {
        /// Which.
        at: usize,
        /// Its text.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Checked patterns.
#[derive(Clone, Debug)]
pub struct WatchPatterns(GlobSet);

impl WatchPatterns {
    /// Checks patterns.
    ///
    /// # Errors
    /// [`BadPattern`] names the first that is wrong.
    pub fn parse<T: AsRef<str>>(patterns: &[T]) -> Result<Self, BadPattern> {
        if patterns.len() > WATCH_PATTERNS_MAX {
            return Err(BadPattern::TooMany(patterns.len()));
        }
        let mut set = GlobSetBuilder::new();
        for (at, pattern) in patterns.iter().map(AsRef::as_ref).enumerate() {
            if pattern.len() > WATCH_PATTERN_LEN_MAX {
                return Err(BadPattern::TooLong(at));
            }
            let wrong =
                |why: String| BadPattern::Wrong { at, pattern: pattern.escape_debug().to_string(), why };
            let whole = spelled_out(pattern).map_err(|why| wrong(why.into()))?;
            let glob = GlobBuilder::new(&whole).literal_separator(true).backslash_escape(false).build();
            set.add(glob.map_err(|err| wrong(format!("is not a pattern: {}", err.kind())))?);
        }
        set.build().map(Self).map_err(|err| BadPattern::Wrong {
            at: 0,
            pattern: patterns.first().map_or_else(String::new, |it| it.as_ref().escape_debug().to_string()),
            why: format!("and the others cannot be watched together: {}", err.kind()),
        })
    }

    /// Whether a path, relative and with slashes, is meant.
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// The pattern over whole paths that a pattern stands for.
fn spelled_out(pattern: &str) -> Result<String, &'static str> {
    if pattern.chars().any(char::is_control) {
        return Err("contains a control character");
    }
    // Clients on Windows write it so.
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

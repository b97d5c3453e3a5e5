//! The check of clients' paths by their spelling. A6s 6.8.
//!
//! The rules are the same on every system, since a repository is checked out on all of them. Later, opening a file
//! shows its kind, and whether a link leads elsewhere.

use provost_base::later::{self, ROWS, Row};
use provost_base::limits::PATH_LEN_MAX;
use provost_base::{RepoPath, WatchPatterns};

/// Folders of version control and of agents' tools, ours among them.
const GUARDED: [&str; 8] =
    [".git", ".hg", ".svn", ".provost", ".wit", ".devit", ".git-paw", ".agent-protocol"];

/// Names that mean devices on Windows, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Characters that some systems ignore in names.
const UNSEEN: [std::ops::RangeInclusive<char>; 4] =
    ['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}', '\u{feff}'..='\u{feff}'];

/// Returns the file that a path means.
///
/// # Errors
/// The reason why no file is ever written there, for the caller that named the path.
pub fn read(root: &str, text: &str) -> Result<RepoPath, String> {
    if text.is_empty() {
        return Err("the path is empty".into());
    }
    if text.len() > PATH_LEN_MAX {
        return Err(format!("the path is longer than {PATH_LEN_MAX} bytes"));
    }
    if text.contains('\0') {
        return Err("the path contains a zero byte".into());
    }
    if text.chars().any(char::is_control) {
        return Err("the path contains a control character".into());
    }
    let plain = text.replace('\\', "/");
    let path = RepoPath::parse(below(root, &plain)?).map_err(|_| outside())?;
    if path.is_root() || plain.ends_with('/') || plain.ends_with("/.") {
        return Err("the path names a folder".into());
    }
    path.as_str().split('/').try_for_each(part)?;
    Ok(path)
}

/// Refuses a path that the configuration keeps from being written.
pub fn denied(deny: &WatchPatterns, path: &RepoPath) -> Result<(), String> {
    // On some systems upper and lower case make no difference.
    let denied = deny.matches(path.as_str()) || deny.matches(&folded(path.as_str()));
    if denied {
        Err("the configuration keeps this file from being written (a6s.deny)".into())
    } else {
        Ok(())
    }
}

fn outside() -> String {
    "the path leads out of the workspace".into()
}

/// Returns the path from the workspace on.
fn below<'a>(root: &str, plain: &'a str) -> Result<&'a str, String> {
    let drive = plain.as_bytes().get(1) == Some(&b':');
    if !plain.starts_with('/') && !drive {
        return Ok(plain);
    }
    let root = root.replace('\\', "/");
    let rest = plain.strip_prefix(root.trim_end_matches('/')).ok_or_else(outside)?;
    let rest = rest.strip_prefix('/').ok_or_else(|| match rest {
        "" => "the path names a folder".to_owned(),
        _ => outside(),
    })?;
    // A path that is still absolute after that is invalid, except for extra slashes.
    if rest.starts_with('/') { Ok(rest.trim_start_matches('/')) } else { Ok(rest) }
}

/// Returns the row of settings that run later that a path means on some system, if there is one.
pub fn setting(path: &RepoPath) -> Option<&'static Row> {
    let names: Vec<String> = path.as_str().split('/').map(plain).collect();
    let is_short = |row: &&Row| {
        let plainly = row.is_read_only() && !row.pattern.contains(['*', '/']);
        plainly && names.iter().any(|name| is_short_for(name, &folded(row.pattern)))
    };
    let row = later::row_over(names.join("/").as_bytes());
    row.filter(|row| row.is_read_only()).or_else(|| ROWS.iter().find(is_short)).or(row)
}

/// Refuses a path that is read-only because it is a setting that runs later.
pub fn set_apart(path: &RepoPath) -> Result<(), String> {
    match setting(path).filter(|row| row.is_read_only()) {
        Some(row) => Err(format!(
            "{} is a setting that runs later, which an apply writes only where a6s.apply_settings is true",
            row.pattern
        )),
        None => Ok(()),
    }
}

/// Returns a name as less exact systems read it.
pub fn plain(name: &str) -> String {
    let seen: String = name.chars().filter(|it| !UNSEEN.iter().any(|unseen| unseen.contains(it))).collect();
    // Windows ignores dots and spaces at the end, and a colon begins the name of a stream of the file.
    folded(&seen).split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned()
}

/// Checks whether a plain name is a short name that Windows may make for a longer one.
fn is_short_for(plain: &str, name: &str) -> bool {
    let Some((head, digits)) = plain.split_once('~') else { return false };
    let fits = head.len() >= 2 && name.trim_start_matches('.').replace(['.', '-'], "").starts_with(head);
    fits && !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}

/// Returns the folder of version control or of an agents' tool into which a path leads on some system, if there is one.
pub fn guarded(path: &RepoPath) -> Option<&'static str> {
    path.as_str().split('/').find_map(|name| guarded_name(&plain(name)))
}

fn guarded_name(plain: &str) -> Option<&'static str> {
    GUARDED.into_iter().find(|it| plain == *it || is_short_for(plain, it))
}

/// Checks one name of a path.
fn part(name: &str) -> Result<(), String> {
    let plain = plain(name);
    let plain = plain.as_str();
    if let Some(guarded) = guarded_name(plain) {
        return Err(format!("nothing is written into {guarded}"));
    }
    let stem = plain.split('.').next().unwrap_or_default().trim_end();
    let numbered = |word: &str| {
        let number = stem.strip_prefix(word).map(|it| it.chars().collect::<Vec<_>>());
        matches!(number.as_deref(), Some(['1'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}']))
    };
    if DEVICES.contains(&stem) || numbered("com") || numbered("lpt") {
        return Err(format!("{name} is the name of a device"));
    }
    if name.contains(':') {
        return Err("the path contains a colon".into());
    }
    Ok(())
}

/// Removes differences of case, also for letters that only look different in one case.
fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

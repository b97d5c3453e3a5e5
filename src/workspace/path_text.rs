//! Paths that a worker may have chosen, as text for people.

use std::path::Path;

use provost_base::limits::FINDING_PATH_BYTES_MAX;

/// A path as text, by the same rule as [`shown`].
pub fn of_path(path: &Path) -> String {
    shown(path.as_os_str().as_encoded_bytes())
}

/// A path that a worker may have chosen, as text of bounded length in which nothing acts.
pub fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let end = text.floor_char_boundary(FINDING_PATH_BYTES_MAX.min(text.len()));
    provost_jail::plain_text(&text[..end])
}

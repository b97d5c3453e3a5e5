//! Paths that a worker may have chosen, as text for people.

use std::path::Path;

use provost_base::limits::FINDING_PATH_BYTES_MAX;

/// Returns a path as text, by the same rule as [`shown`].
pub fn of_path(path: &Path) -> String {
    shown(path.as_os_str().as_encoded_bytes())
}

/// Returns a path that a worker may have chosen as text of bounded length, without control characters.
pub fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let end = text.floor_char_boundary(FINDING_PATH_BYTES_MAX.min(text.len()));
    provost_jail::plain_text(&text[..end])
}

/// Returns the path with invisible characters as their code points, so that two names that look the same can be told apart.
pub fn named(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let shown = provost_base::visible_name(&text, FINDING_PATH_BYTES_MAX);
    let end = shown.floor_char_boundary(FINDING_PATH_BYTES_MAX.min(shown.len()));
    shown[..end].to_owned()
}

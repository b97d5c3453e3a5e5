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

/// The same with what hides shown as its code point, so that two names that look the same are told apart.
pub fn named(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let shown = provost_base::visible_name(&text, FINDING_PATH_BYTES_MAX);
    let end = shown.floor_char_boundary(FINDING_PATH_BYTES_MAX.min(shown.len()));
    shown[..end].to_owned()
}

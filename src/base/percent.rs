//! Percent-encoding of texts in addresses, as RFC 3986 has it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What is encoded in one part of a path or in the value of a query: all but letters, digits and `-._~`.
const IN_PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is encoded in a whole path.
const IN_PATH: &AsciiSet = &IN_PART.remove(b'/');

/// Returns a text for one part of a path or for the value of a query.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, IN_PART).to_string()
}

/// Returns a text for a path, whose slashes stay.
pub fn percent_encoded_path(text: &str) -> String {
    utf8_percent_encode(text, IN_PATH).to_string()
}

/// Returns the text that was encoded; `None` if it is not UTF-8. A percent sign without two digits stands for itself.
pub fn percent_decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

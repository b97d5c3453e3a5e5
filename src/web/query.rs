//! The query of an address: members by name, each at most once.

use percent_encoding::percent_decode_str;

use hyper::StatusCode;

use super::WebError;

/// The members of a query.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// A member that is not valid text, or that occurs twice.
    pub(super) fn of(text: &str) -> Result<Self, WebError> {
        let wrong = |why: &str| WebError::new(StatusCode::BAD_REQUEST, "bad_query", why);
        let mut members: Vec<(String, String)> = Vec::new();
        for member in text.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = member.split_once('=').unwrap_or((member, ""));
            let read = |it: &str| {
                let plain = it.replace('+', " ");
                percent_decode_str(&plain).decode_utf8().map(std::borrow::Cow::into_owned)
            };
            let (Ok(name), Ok(value)) = (read(name), read(value)) else {
                return Err(wrong("the query is not UTF-8"));
            };
            if members.iter().any(|(other, _)| *other == name) {
                return Err(wrong("a member of the query is there twice"));
            }
            members.push((name, value));
        }
        Ok(Self(members))
    }

    /// Returns a member, unless it is missing or empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str()).filter(|it| !it.is_empty())
    }

    /// Returns a member as a number.
    ///
    /// # Errors
    /// A member that is present, but no number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, WebError> {
        let read = |it: &str| {
            let wrong =
                || WebError::new(StatusCode::BAD_REQUEST, "bad_query", format!("`{name}` is no number"));
            it.parse().map_err(|_| wrong())
        };
        self.text(name).map(read).transpose()
    }

    /// Returns a required member.
    ///
    /// # Errors
    /// The member is missing.
    pub(super) fn needed(&self, name: &str) -> Result<&str, WebError> {
        let missing = || WebError::new(StatusCode::BAD_REQUEST, "bad_query", format!("`{name}` is missing"));
        self.text(name).ok_or_else(missing)
    }
}

//! Tokens that requests over HTTP carry: `Authorization: Bearer ...`.
//!
//! A token is 256 random bits behind a word by which scanners for secrets know it. Only its digest is kept,
//! and looking that up compares digests of what the peer sent, so that time tells nothing about the token.

use super::Rejected;
use provost_base::limits::TOKEN_LEN_MAX;
use provost_base::{Digest, Secret};

/// The beginning of every token.
pub const PREFIX: &str = "pvst_";

/// A new random token.
///
/// # Errors
/// When the system has no randomness to give.
pub fn fresh() -> Result<Secret, getrandom::Error> {
    let random = super::random_hex()?;
    let mut token = Vec::with_capacity(PREFIX.len() + random.expose().len());
    token.extend_from_slice(PREFIX.as_bytes());
    token.extend_from_slice(random.expose());
    Ok(Secret::new(token))
}

/// The digest of a token, which is all that the daemon keeps.
pub fn digest(token: &[u8]) -> Digest {
    Digest::of_fields([b"provost token".as_slice(), token])
}

/// The digest of the token that a request shows in its `Authorization` headers; `None` where it shows none.
///
/// # Errors
/// [`Rejected::BadToken`] when what it shows cannot be a token.
pub fn shown<'a>(headers: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Digest>, Rejected> {
    let mut headers = headers.into_iter();
    let Some(header) = headers.next() else { return Ok(None) };
    if headers.next().is_some() {
        return Err(Rejected::BadToken);
    }
    let (scheme, token) = header.split_at_checked(7).ok_or(Rejected::BadToken)?;
    if scheme.eq_ignore_ascii_case(b"bearer ") { sound(token.trim_ascii()) } else { Err(Rejected::BadToken) }
}

/// The digest of the token that a request shows as `token=` in its query; `None` where it shows none.
///
/// # Errors
/// [`Rejected::BadToken`] when what it shows cannot be a token, or there are several.
pub fn shown_in_query(query: &str) -> Result<Option<Digest>, Rejected> {
    let mut shown = query.split('&').filter_map(|it| it.strip_prefix("token="));
    let Some(token) = shown.next() else { return Ok(None) };
    if shown.next().is_some() { Err(Rejected::BadToken) } else { sound(token.as_bytes()) }
}

fn sound(token: &[u8]) -> Result<Option<Digest>, Rejected> {
    let can_be = !token.is_empty() && token.len() <= TOKEN_LEN_MAX;
    if can_be { Ok(Some(digest(token))) } else { Err(Rejected::BadToken) }
}

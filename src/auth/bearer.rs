//! Tokens that requests over HTTP carry: `Authorization: Bearer ...`.
//!
//! A token is 256 random bits behind a prefix by which secret scanners recognise it. The daemon keeps only its
//! digest. A look-up compares digests of what the peer sent, so its time reveals nothing about the token.

use super::Rejected;
use provost_base::limits::TOKEN_LEN_MAX;
use provost_base::{Digest, Secret};

/// The beginning of every token.
pub const PREFIX: &str = "pvst_";

/// Makes a new random token.
///
/// # Errors
/// If the system has no randomness to give.
pub fn fresh() -> Result<Secret, getrandom::Error> {
    let random = super::random_hex()?;
    let mut token = Vec::with_capacity(PREFIX.len() + random.expose().len());
    token.extend_from_slice(PREFIX.as_bytes());
    token.extend_from_slice(random.expose());
    Ok(Secret::new(token))
}

/// Returns the digest of a token, which is all that the daemon keeps.
pub fn digest(token: &[u8]) -> Digest {
    Digest::of_fields([b"provost token".as_slice(), token])
}

/// Returns the digest of the token in a request's `Authorization` headers; `None` if there is no such header.
///
/// # Errors
/// [`Rejected::BadToken`] if the header cannot hold a token, or there are several.
pub fn shown<'a>(headers: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Digest>, Rejected> {
    let mut headers = headers.into_iter();
    let Some(header) = headers.next() else { return Ok(None) };
    if headers.next().is_some() {
        return Err(Rejected::BadToken);
    }
    let (scheme, token) = header.split_at_checked(7).ok_or(Rejected::BadToken)?;
    if scheme.eq_ignore_ascii_case(b"bearer ") { sound(token.trim_ascii()) } else { Err(Rejected::BadToken) }
}

/// Returns the digest of the token that a request's query has as `token=`; `None` if it has none.
///
/// # Errors
/// [`Rejected::BadToken`] if the text cannot be a token, or there are several.
pub fn shown_in_query(query: &str) -> Result<Option<Digest>, Rejected> {
    let mut shown = query.split('&').filter_map(|it| it.strip_prefix("token="));
    let Some(token) = shown.next() else { return Ok(None) };
    if shown.next().is_some() { Err(Rejected::BadToken) } else { sound(token.as_bytes()) }
}

fn sound(token: &[u8]) -> Result<Option<Digest>, Rejected> {
    let can_be = !token.is_empty() && token.len() <= TOKEN_LEN_MAX;
    if can_be { Ok(Some(digest(token))) } else { Err(Rejected::BadToken) }
}

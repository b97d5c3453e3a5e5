//! Checks the browser's client data: the ceremony, the challenge and the page.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use provost_base::limits::CLIENT_DATA_BYTES_MAX;

use crate::{Refused, bytes_of};

/// The ceremony that client data belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ceremony {
    /// A new credential is made.
    Create,
    /// A credential signs.
    Get,
}

impl Ceremony {
    /// Returns the word that the browser writes for it.
    fn as_str(self) -> &'static str {
        match self {
            Ceremony::Create => "webauthn.create",
            Ceremony::Get => "webauthn.get",
        }
    }
}

/// The members that the check uses. Browsers may add others, WebAuthn 5.8.1.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
    /// Only a page within another one has this member, so that even a null refuses.
    #[serde(default, deserialize_with = "is_there")]
    top_origin: bool,
}

fn is_there<'de, D: Deserializer<'de>>(it: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(it).map(|_| true)
}

/// Checks client data against the expected values; `origins` are compared literally, with the port. Without
/// `origins` the caller has to check the page.
pub(crate) fn check(
    bytes: &[u8],
    ceremony: Ceremony,
    challenge: &[u8; 32],
    origins: Option<&[String]>,
) -> Result<(), Refused> {
    if bytes.len() > CLIENT_DATA_BYTES_MAX {
        return Err(Refused::TooLong("the client data"));
    }
    // A struct would also deserialise from an array.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refused::ClientData);
    }
    let data: ClientData = serde_json::from_slice(bytes).map_err(|_| Refused::ClientData)?;
    if data.r#type != ceremony.as_str() {
        return Err(Refused::Type);
    }
    if bytes_of(&data.challenge, "the challenge")? != challenge {
        return Err(Refused::Challenge);
    }
    if origins.is_some_and(|known| !known.contains(&data.origin)) {
        return Err(Refused::Origin);
    }
    if data.cross_origin || data.top_origin {
        return Err(Refused::Framed);
    }
    Ok(())
}

//! Adds a new passkey for which a known one signs at another page.
//!
//! A browser gives a page only the passkeys of its host. So a person with a passkey for `provost.localhost` who makes one at a
//! public page signs for it at the page of this machine: the new passkey waits, shown with its key, until a known one has
//! signed the same word that the new one has signed. Only one waits at a time, for ten minutes, in memory.

use std::time::{Duration, Instant};

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::OwnError;
use super::passkeys::allowed;
use super::pending::{Awaited, Kind, NoncePurpose};
use super::words::{bytes, refused};
use provost_api::{endpoints, wire};
use provost_auth::passkeys::ListedPasskey;
use provost_base::limits::PASSKEY_HELD_MS_MAX;
use provost_passkey::{Refused, Transcript, text_of};

impl Own {
    /// Returns the passkey that waits for the signature of a known one.
    pub(super) fn waiting_passkey(&self) -> Option<wire::WaitingPasskey> {
        self.0.pending.with_awaited(|it| it.map(shown))
    }
}

fn shown(it: &Awaited) -> wire::WaitingPasskey {
    let left = it.until.saturating_duration_since(Instant::now());
    let good_ms = u64::try_from(left.as_millis()).unwrap_or_default();
    wire::WaitingPasskey {
        id: it.listed.id.clone(),
        name: it.listed.name.to_string(),
        rp_id: it.listed.rp_id.clone(),
        key: serde_json::to_value(&it.listed.key).unwrap_or_default(),
        enrol: it.listed.digest().to_string(),
        challenge: wire::Challenge {
            nonce: text_of(&it.transcript.nonce),
            transcript: it.transcript.as_str().to_owned(),
            challenge: text_of(it.transcript.digest().as_bytes()),
            good_ms,
            allow: it.known.clone(),
        },
    }
}

impl Own {
    /// Returns the new passkey whose browser was asked to sign with this nonce, which counts once.
    pub(super) fn to_confirm(&self, nonce: &str) -> Answered<(Transcript, Box<ListedPasskey>)> {
        match self.0.pending.take(&bytes(nonce, "nonce")?)? {
            NoncePurpose::Confirm(transcript, listed) => Ok((transcript, listed)),
            _ => Err(refused(Refused::Challenge)),
        }
    }
}

impl Handles<endpoints::HoldPasskey> for Own {
    async fn handle(&self, call: &Call, body: wire::HoldPasskey) -> Answered<wire::PasskeyHeld> {
        let asker = self.asker(call).await;
        self.0.pending.count(asker.process, Kind::Word)?;
        let (transcript, mut listed) = self.to_confirm(&body.nonce)?;
        let list = self.synced_list().await?;
        if list.passkeys.is_empty() {
            let why = "no passkey is known that could sign for it, and none has to";
            return Err(OwnError::new(StatusCode::CONFLICT, "vouch_needless", why).hint("enrol it once more"));
        }
        let asserted = self.signed_itself(&asker, &mut listed, &transcript, body.own)?;
        let until = Instant::now() + Duration::from_millis(PASSKEY_HELD_MS_MAX);
        let enrol = listed.digest().to_string();
        let known = list.passkeys.iter().map(allowed).collect();
        self.0.pending.hold(Awaited { transcript, listed, asserted, known, until });
        let pages = self.addresses(|page| list.passkeys.iter().any(|it| it.rp_id == page.host)).await;
        Ok(wire::PasskeyHeld { enrol, good_s: PASSKEY_HELD_MS_MAX / 1_000, pages })
    }
}

impl Handles<endpoints::VouchPasskey> for Own {
    async fn handle(&self, call: &Call, body: wire::VouchPasskey) -> Answered<wire::Passkey> {
        let asker = self.asker(call).await;
        self.0.pending.count(asker.process, Kind::Word)?;
        let nonce = bytes(&body.nonce, "nonce")?;
        let found = self.0.pending.with_awaited(|it| {
            let it = it.filter(|it| it.transcript.nonce[..] == nonce[..])?;
            Some((it.transcript.clone(), it.listed.clone(), it.asserted))
        });
        let (transcript, mut listed, asserted) = found.ok_or_else(|| {
            let why = "no passkey waits under this challenge: it has been signed for, is older than ten minutes, or another one has come";
            OwnError::new(StatusCode::GONE, "challenge_gone", why).hint("enrol it once more")
        })?;
        let list = self.synced_list().await?;
        // If this fails, the passkey goes on waiting: otherwise any process could end the wait with a forged signature.
        self.vouched(&asker, &list, &mut listed, &transcript, body.assertion).await?;
        self.0.pending.let_go(&transcript.nonce);
        self.take_in(&listed, &asserted).await
    }
}

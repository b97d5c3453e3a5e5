//! The ways in which a person at a terminal ends passkeys, without a signature.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map;
use super::passkeys::{row, unusable};
use provost_api::{endpoints, wire};
use provost_base::Ttl;
use provost_base::limits::PASSKEYS_RESET_S;
use provost_domain::Refusal;
use provost_domain::command::{ResetPasskeys, RevokePasskey};

impl Handles<endpoints::RevokePasskey> for Own {
    async fn handle(&self, call: &Call, body: wire::RevokePasskey) -> Answered<wire::Passkey> {
        Self::check_terminal(call, "revokes a passkey without a signature")?;
        let list = self.synced_list().await?;
        if list.of_root {
            return Err(self.only_root());
        }
        let known = self.known_passkeys().await?.passkeys;
        let mut named = known.iter().filter(|it| it.revoked_at.is_none());
        let found = named.find(|it| *it.passkey.id == *body.passkey || *it.passkey.name == *body.passkey);
        let found = found
            .ok_or_else(|| map::fault(Refusal::PasskeyRefused { why: "there is no such passkey".into() }))?;
        self.revoke(&call.who, RevokePasskey { id: found.passkey.id.clone(), signed: None }).await?;
        let all = self.known_passkeys().await?.passkeys;
        Ok(all.iter().find(|it| it.passkey.id == found.passkey.id).map_or_else(|| row(found), |it| row(it)))
    }
}

impl Handles<endpoints::ResetPasskeys> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::PasskeysReset> {
        Self::check_terminal(call, "gives all passkeys up")?;
        let _turn = self.0.listing.acquire().await.ok();
        let known = self.known_passkeys().await?;
        let (standing, shared) = (known.passkeys.standing(), known.shared);
        // A list that was edited is not trusted, and neither is its count.
        let listed =
            self.listed(|files, keys| files.read(keys)).await.ok().flatten().map_or(0, |it| it.resets);
        let count = standing.count.max(listed) + 1;
        let until = self.now().after(Ttl::seconds_clamped(PASSKEYS_RESET_S));
        if shared {
            let roots = self.listed(|files, _| files.roots_list()).await.map_err(|why| unusable(&why))?;
            if roots.is_some() {
                return Err(self.only_root());
            }
        } else {
            let written =
                self.listed(move |files, keys| files.reset(keys, standing.number, count, until)).await;
            written.map_err(|why| unusable(&why))?;
        }
        let done = self.submit(&call.who, ResetPasskeys { count, waits: true }).await?;
        self.0.pending.clear();
        self.end_orphans().await;
        tracing::warn!(
            until = done.until.rfc3339(),
            "all passkeys were given up, and none counts until then"
        );
        Ok(wire::PasskeysReset { waits_until: done.until.rfc3339() })
    }
}

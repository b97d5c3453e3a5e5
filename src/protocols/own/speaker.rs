//! Explains refusals that follow from an agent's presence: in the caller's terminal, or anywhere.

use std::collections::HashSet;
use std::sync::Arc;

use hyper::StatusCode;
use serde_json::json;

use super::Own;
use super::map::OwnError;
use provost_auth::peer::PeerId;
use provost_domain::{Door, Principal, Proof};

/// The most agents at work that a refusal names.
const SPEAKING_NAMED: usize = 5;

impl Own {
    /// Returns whether an agent of another daemon of this user has spoken in the peer's terminal; `true` if that
    /// cannot be checked.
    pub(super) async fn speaks_elsewhere(&self, peer: &PeerId) -> bool {
        let names = Arc::clone(&self.0.names);
        let known = tokio::task::spawn_blocking(move || names.speakers_elsewhere()).await;
        let Ok(known) = known else { return true };
        !known.is_empty() && !peer.is_at_terminal_outside(&known.into_iter().collect::<HashSet<i32>>())
    }

    /// Returns the error that no code for a first passkey is made.
    pub(super) fn agents_at_work(&self) -> OwnError {
        let names: Vec<String> = self.0.names.speaking().into_iter().take(SPEAKING_NAMED).collect();
        let which = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let why = format!(
            "a worker or an agent is at work{which}, which could take the code and enrol a passkey of its own"
        );
        OwnError::new(StatusCode::CONFLICT, "agents_at_work", why)
            .hint("end them first, or say that you watch them: provost passkey add --even-so")
    }

    /// Adds the cause and the next step to an error, if a right of a person is missing because an agent has spoken
    /// among the caller's processes; other errors stay unchanged. `data.spoken` has the agent's name, for programs.
    pub(super) fn naming_speaker(&self, fault: OwnError, who: &Principal, peer: Option<&PeerId>) -> OwnError {
        let is_unproved = who.proof() == Proof::PeerUid && who.door() == Door::Own;
        let is_a_persons = matches!(fault.body.error.as_str(), "out_of_scope" | "held_back" | "person_only");
        let Some(peer) = peer.filter(|_| is_unproved && is_a_persons) else { return fault };
        let own_name = (*who.agent() != self.0.user).then(|| who.agent().to_string());
        let Some(spoken) = own_name.or_else(|| self.0.names.speaker_in(peer.line())) else { return fault };
        let mut data = fault.body.data.clone().unwrap_or_else(|| json!({}));
        data["spoken"] = json!(spoken);
        fault.data(data).hint(format!(
            "{spoken} has spoken as an agent in this terminal, so that no command below it counts as a person's: open another \
             terminal, and type it there"
        ))
    }
}

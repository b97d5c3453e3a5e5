//! Tools of hosts: asked about, and waited for as long as the host does.

use std::time::Duration;

use tokio::time::Instant;

use super::Provost;
use crate::domain::command::{AskPermission, Permitted};
use crate::domain::{Answer, Principal, Refusal};

impl Provost {
    /// Asks whether a tool may be used, and waits for somebody's word so long; parked if that was not long enough.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn permission(
        &self,
        who: &Principal,
        verb: AskPermission,
        patience: Duration,
    ) -> Result<Answer<Permitted>, Refusal> {
        let until = Instant::now() + patience;
        loop {
            let approval = match self.submit(who, verb.clone()).await? {
                Answer::Parked(approval) => approval,
                answer => return Ok(answer),
            };
            let left = until.saturating_duration_since(Instant::now());
            // Asked again when it was answered: then the word is there, and is used up.
            if left.is_zero() || !self.answered(approval, left).await? {
                return Ok(Answer::Parked(approval));
            }
        }
    }
}

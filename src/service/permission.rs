//! Tools of hosts: submits the permission request, and waits for the answer as long as the host does.

use std::time::Duration;

use tokio::time::Instant;

use super::Provost;
use provost_domain::command::{AskPermission, Permitted, WithdrawPermission};
use provost_domain::{Answer, Principal, Refusal};

impl Provost {
    /// Asks whether a tool may be used, and waits for approval for this time; parked if that was not long enough.
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
        let mut question = Question { provost: self, who, id: None };
        loop {
            let approval = match self.submit_judged(who, verb.clone()).await? {
                Answer::Parked(approval) => approval,
                answer => {
                    question.id = None;
                    return Ok(answer);
                }
            };
            question.id = Some(verb.id.clone());
            let left = until.saturating_duration_since(Instant::now());
            // Asked again when it was answered: then the word is there, and is used up.
            if left.is_zero() || !self.answered(approval, left).await? {
                question.id = None;
                return Ok(Answer::Parked(approval));
            }
        }
    }
}

/// A question that waits, and is taken back when its asker hangs up.
struct Question<'a> {
    provost: &'a Provost,
    who: &'a Principal,
    id: Option<Box<str>>,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (provost, who) = (self.provost.clone(), self.who.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // One that cannot be taken back now ends with its time.
                let _ = provost.submit(&who, WithdrawPermission { id }).await;
            });
        }
    }
}

//! Collecting mail, with patience where it pays.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Provost;
use crate::domain::command::{CollectMail, SettleMail};
use crate::domain::{Answer, Mail, Principal, Refusal};

/// Pauses between tries to say how a delivery went.
const SETTLE_PAUSES_MS: [u64; 6] = [10, 30, 100, 300, 1_000, 3_000];

impl Provost {
    /// The next message of the caller's queue.
    ///
    /// An empty queue of a caller with unfinished delegations is watched for up to `hold`, so that a result is
    /// handed over the moment it is there; everybody else is answered at once. DevIt 1.5.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub async fn collect(
        &self,
        who: &Principal,
        alive: bool,
        hold: Duration,
    ) -> Result<Option<Arc<Mail>>, Refusal> {
        let slot = self.engine().board().slot(who.agent());
        let until = Instant::now() + hold;
        let mut alive = alive;
        loop {
            // Armed before the queue is looked at, so that nothing arrives unseen in between.
            let mut arrived = std::pin::pin!(slot.arrived.notified());
            arrived.as_mut().enable();
            let Answer::Done(collected) = self.submit(who, CollectMail { alive }).await? else {
                return Ok(None);
            };
            if collected.mail.is_some() || !collected.waiting || hold.is_zero() {
                return Ok(collected.mail);
            }
            if timeout_at(until, arrived).await.is_err() {
                return Ok(None);
            }
            alive = false;
        }
    }

    /// Says how the delivery of a message went, again when there is too much to do at the moment: until then
    /// the message counts as being on its way. What cannot be said at all is logged, and the message comes again
    /// after the next start.
    pub async fn settle(&self, who: &Principal, mail: &Mail, delivered: bool) {
        for pause in SETTLE_PAUSES_MS {
            match self.submit(who, SettleMail { seq: mail.seq, delivered }).await {
                Err(Refusal::Busy { .. }) => tokio::time::sleep(Duration::from_millis(pause)).await,
                Err(err) => {
                    tracing::warn!(agent = %who.agent(), mail = %mail.seq, %err, "delivery not recorded");
                    return;
                }
                Ok(_) => return,
            }
        }
        tracing::warn!(agent = %who.agent(), mail = %mail.seq, "delivery not recorded: too much to do");
    }
}

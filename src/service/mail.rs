//! Collects mail, and waits for new mail where waiting saves requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Provost;
use provost_base::MailSeq;
use provost_domain::command::{CollectMail, SettleMail};
use provost_domain::view::MailOf;
use provost_domain::{Mail, MailKind, Principal, Refusal};

/// The pauses between tries to record the outcome of a delivery.
const SETTLE_PAUSES_MS: [u64; 6] = [10, 30, 100, 300, 1_000, 3_000];

impl Provost {
    /// Returns the next message of the caller's queue.
    ///
    /// If the queue is empty and the caller has unfinished delegations, this waits for up to `hold`, so that the
    /// caller gets a result as soon as it arrives. Every other caller is answered at once. DevIt 1.5.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub async fn collect(
        &self,
        who: &Principal,
        alive: bool,
        hold: Duration,
    ) -> Result<Option<Arc<Mail>>, Refusal> {
        let slot = self.engine().empty_queues().slot(who.agent());
        let until = Instant::now() + hold;
        let mut alive = alive;
        loop {
            // The signal is armed before the queue is read, so that no arrival in between is missed.
            let mut arrived = std::pin::pin!(slot.arrived.notified());
            arrived.as_mut().enable();
            let collected = self.submit(who, CollectMail { alive }).await?;
            if collected.mail.is_some() || !collected.waiting || hold.is_zero() {
                return Ok(collected.mail);
            }
            if timeout_at(until, arrived).await.is_err() {
                return Ok(None);
            }
            alive = false;
        }
    }

    /// Returns the next task for a worker, or the notice that a task is cancelled, as soon as one arrives or
    /// `patience` is over. The message counts as delivered; other messages stay in the queue.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub async fn take_work(&self, who: &Principal, patience: Duration) -> Result<Option<Arc<Mail>>, Refusal> {
        let slot = self.engine().empty_queues().slot(who.agent());
        let until = Instant::now() + patience;
        self.give_a_sign_of_life(who).await?;
        loop {
            let mut arrived = std::pin::pin!(slot.arrived.notified());
            arrived.as_mut().enable();
            let mail = self.view(MailOf { agent: who.agent().clone(), after: MailSeq(0) }).await?;
            for mail in mail.into_iter().filter(|mail| is_for_a_worker(mail)) {
                match self.submit(who, SettleMail { seq: mail.seq, delivered: true }).await {
                    Ok(_) => return Ok(Some(mail)),
                    // Another client under the same name was faster.
                    Err(Refusal::MailNotFound) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
            if timeout_at(until, arrived).await.is_err() {
                return Ok(None);
            }
        }
    }

    /// Records that a worker that looks for work is present.
    async fn give_a_sign_of_life(&self, who: &Principal) -> Result<(), Refusal> {
        if let Some(mail) = self.submit(who, CollectMail { alive: true }).await?.mail {
            self.engine().put_back(who, mail.seq);
        }
        Ok(())
    }

    /// Records the outcome of a delivery, and tries again when the core is busy: until then the message counts as
    /// being on its way. If the outcome cannot be recorded, this is logged, and the message comes again after the
    /// next start.
    ///
    /// Unlike [`provost_engine::Engine::insist`], this gives up after some seconds: the peer's connection waits for it, and its next
    /// request is to hear that the core is busy, or that the store takes no writes, rather than nothing.
    pub async fn settle(&self, who: &Principal, mail: &Mail, delivered: bool) {
        for pause in SETTLE_PAUSES_MS {
            match self.submit(who, SettleMail { seq: mail.seq, delivered }).await {
                Err(Refusal::Busy { .. }) => tokio::time::sleep(Duration::from_millis(pause)).await,
                // The receiver may have been faster: work that has begun is in no queue any more.
                Ok(_) | Err(Refusal::MailNotFound) => return,
                Err(err) => {
                    tracing::warn!(agent = %who.agent(), mail = %mail.seq, %err, "delivery not recorded");
                    return;
                }
            }
        }
        tracing::warn!(agent = %who.agent(), mail = %mail.seq, "delivery not recorded: too much to do");
    }
}

fn is_for_a_worker(mail: &Mail) -> bool {
    match &mail.kind {
        MailKind::Work { .. } => true,
        MailKind::Word { worker, from: None, last: true, said, .. } => {
            *worker == mail.to && matches!(&**said, "cancelled" | "timeout")
        }
        _ => false,
    }
}

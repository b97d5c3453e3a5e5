//! Messages between agents: read from history, waited for, and published.

use std::time::Duration;

use super::Provost;
use crate::base::{PostSeq, Slug};
use crate::domain::command::{AddressAgent, AgentAddressed, Publish, Published};
use crate::domain::post::{Post, Source};
use crate::domain::{Answer, Principal, Refusal};
pub use crate::store::{Letter, Letters};

impl Provost {
    /// Messages, oldest first: as many as fit into `bytes_max` as stored, and always one if there is any.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn letters(&self, which: Letters, bytes_max: usize) -> Result<Vec<Letter>, Refusal> {
        if let Letters::In(slug, after) = &which
            && self.engine().letterboxes().newest(slug) <= *after
        {
            return Ok(Vec::new());
        }
        self.read(move |reader| reader.letters(&which, bytes_max)).await
    }

    /// Waits until there is something in an inbox after a number, or for as long as that.
    pub async fn letter_after(&self, slug: &Slug, after: PostSeq, patience: Duration) {
        let until = tokio::time::Instant::now() + patience;
        let letterbox = self.engine().letterboxes().at(slug);
        loop {
            let arrived = letterbox.arrived.notified();
            tokio::pin!(arrived);
            // Listening before looking, so that nothing falls between the two.
            arrived.as_mut().enable();
            if letterbox.newest() > after || tokio::time::timeout_at(until, arrived).await.is_err() {
                return;
            }
        }
    }

    /// Publishes a message.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn publish(&self, who: &Principal, post: Post) -> Result<Published, Refusal> {
        done(self.submit(who, Publish { post, source: Source::Client }).await?)
    }

    /// Gives an agent an inbox.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn address(&self, who: &Principal, verb: AddressAgent) -> Result<AgentAddressed, Refusal> {
        done(self.submit(who, verb).await?)
    }
}

/// These verbs are decided by scope alone, so that there is nothing to wait for.
fn done<T>(answer: Answer<T>) -> Result<T, Refusal> {
    match answer {
        Answer::Done(it) => Ok(it),
        Answer::Parked(_) | Answer::Denied(_) => Err(Refusal::busy("a verb that policy has no say in")),
    }
}

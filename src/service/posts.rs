//! Messages between agents: read from history, waited for, and published.

use std::ops::ControlFlow;
use std::time::Duration;

use super::Provost;
use provost_base::{PostSeq, Slug};
use provost_domain::command::{AddressAgent, AgentAddressed, Publish, Published};
use provost_domain::post::{Post, Source};
use provost_domain::{Principal, Refusal};
use provost_store::Reader;
pub use provost_store::{Letters, StoredPost};

impl Provost {
    /// Messages, oldest first: as many as fit into `bytes_max` as stored, and always one if there is any.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn letters(&self, which: Letters, bytes_max: usize) -> Result<Vec<StoredPost>, Refusal> {
        if self.has_nothing(&which) {
            return Ok(Vec::new());
        }
        self.read(move |reader| reader.letters(&which, bytes_max)).await
    }

    /// The same, no more than `most`.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn letters_at_most(
        &self,
        most: usize,
        which: Letters,
        bytes_max: usize,
    ) -> Result<Vec<StoredPost>, Refusal> {
        let mut found = Vec::new();
        let each = move |reader: &mut dyn Reader| {
            reader.each_letter(&which, bytes_max, &mut |it| {
                found.push(it);
                if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            Ok(found)
        };
        self.read(each).await
    }

    /// What `write` adds of messages to a text, one after the other, so that they are never in memory together; and the
    /// number of the last one, if there is any. As many as [`Provost::letters`] has.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn letters_written(
        &self,
        which: Letters,
        bytes_max: usize,
        mut text: Vec<u8>,
        mut write: impl FnMut(StoredPost, &mut Vec<u8>) + Send + 'static,
    ) -> Result<(Vec<u8>, Option<PostSeq>), Refusal> {
        if self.has_nothing(&which) {
            return Ok((text, None));
        }
        self.read(move |reader| {
            let mut last = None;
            reader.each_letter(&which, bytes_max, &mut |it| {
                last = Some(it.n);
                write(it, &mut text);
                ControlFlow::Continue(())
            })?;
            Ok((text, last))
        })
        .await
    }

    /// Whether an inbox is known to have nothing there, without asking the store.
    fn has_nothing(&self, which: &Letters) -> bool {
        matches!(which, Letters::In(slug, after) if self.engine().letterboxes().newest(slug) <= *after)
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

    /// Publishes a message to the inboxes of the agents that it is for.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn publish(&self, who: &Principal, post: Post) -> Result<Published, Refusal> {
        self.submit(who, Publish { post, source: Source::Client }).await
    }

    /// Asks what an agent's program asks in a form: the question's number, which is in the event of its answer.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn ask_in_form(&self, who: &Principal, post: Post) -> Result<PostSeq, Refusal> {
        self.submit(who, Publish { post, source: Source::Form }).await.map(|it| it.n)
    }

    /// Gives an agent an inbox.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn address(&self, who: &Principal, verb: AddressAgent) -> Result<AgentAddressed, Refusal> {
        self.submit(who, verb).await
    }
}

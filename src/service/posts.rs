//! Messages between agents: reads them from history, waits for them, and publishes them.

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
    /// Returns messages, oldest first: as many as fit into `bytes_max` as stored, but always at least one if there is any.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn letters(&self, which: Letters, bytes_max: usize) -> Result<Vec<StoredPost>, Refusal> {
        if self.has_nothing(&which) {
            return Ok(Vec::new());
        }
        self.read(move |reader| reader.letters(&which, bytes_max)).await
    }

    /// Returns messages as above, at most `most`.
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

    /// Appends messages to a text with `write`, one by one, so that they are never in memory together; returns the
    /// text and the number of the last message, if any. Takes as many as [`Provost::letters`] does.
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

    /// Checks whether an inbox is known to have no newer message, without asking the store.
    fn has_nothing(&self, which: &Letters) -> bool {
        matches!(which, Letters::In(slug, after) if self.engine().inbox_index().newest(slug) <= *after)
    }

    /// Waits until an inbox has a message after this number, or `patience` is over.
    pub async fn letter_after(&self, slug: &Slug, after: PostSeq, patience: Duration) {
        let until = tokio::time::Instant::now() + patience;
        let letterbox = self.engine().inbox_index().at(slug);
        loop {
            let arrived = letterbox.arrived.notified();
            tokio::pin!(arrived);
            // The signal is armed before the look, so that no message in between is missed.
            arrived.as_mut().enable();
            if letterbox.newest() > after || tokio::time::timeout_at(until, arrived).await.is_err() {
                return;
            }
        }
    }

    /// Publishes a message to the inboxes of its receivers.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn publish(&self, who: &Principal, post: Post) -> Result<Published, Refusal> {
        self.submit(who, Publish { post, source: Source::Client }).await
    }

    /// Publishes a question that an agent's program asks in a form, and returns its number, which the event of its answer repeats.
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

//! One inbox for each agent: messages of other agents and of the daemon, in the order of their arrival.
//!
//! Reading removes nothing. A client of the DevIt door under the same name still collects its mail.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Letters, Provost, StoredPost};
use provost_base::limits::POLL_BYTES_MAX;
use provost_base::{MailSeq, PostSeq, Timestamp};
use provost_domain::post::slug;
use provost_domain::view::MailOf;
use provost_domain::{Mail, Principal, Refusal};

/// The position up to which an agent has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// The newest message of other agents that it has read.
    pub posts: PostSeq,
    /// The newest message of the daemon that it has read.
    pub mail: MailSeq,
}

/// An entry of an inbox.
#[derive(Clone, Debug)]
pub enum InboxItem {
    /// A message of another agent.
    Letter(Box<StoredPost>),
    /// A message of the daemon, or of a worker through the daemon.
    Mail(Arc<Mail>),
}

impl InboxItem {
    fn at(&self) -> Timestamp {
        match self {
            InboxItem::Letter(it) => it.at,
            InboxItem::Mail(it) => it.at,
        }
    }
}

/// A page of an inbox.
#[derive(Clone, Debug, Default)]
pub struct InboxPage {
    /// Messages of both kinds, oldest first.
    pub news: Vec<InboxItem>,
    /// Whether there are more messages than fit.
    pub more: bool,
}

impl Provost {
    /// Returns the entries that arrived for an agent after `seen`: at once if there are any, else when one arrives or `patience` ends.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn inbox(
        &self,
        who: &Principal,
        seen: Seen,
        limit: usize,
        patience: Duration,
    ) -> Result<InboxPage, Refusal> {
        let until = Instant::now() + patience;
        let slot = self.engine().empty_queues().slot(who.agent());
        let letterbox = self.engine().inbox_index().at(&slug(who.agent().as_str()));
        loop {
            // Both signals are armed before the inbox is read, so that no arrival in between is missed.
            let mut mail = std::pin::pin!(slot.arrived.notified());
            let mut letter = std::pin::pin!(letterbox.arrived.notified());
            mail.as_mut().enable();
            letter.as_mut().enable();
            let page = self.page_of(who, seen, limit).await?;
            if !page.news.is_empty() {
                return Ok(page);
            }
            tokio::select! {
                () = mail => {}
                () = letter => {}
                () = tokio::time::sleep_until(until) => return Ok(page),
            }
        }
    }

    async fn page_of(&self, who: &Principal, seen: Seen, limit: usize) -> Result<InboxPage, Refusal> {
        let name = slug(who.agent().as_str());
        let letters = Letters::In(name.clone(), seen.posts);
        let letters = match self.engine().inbox_index().newest(&name) > seen.posts {
            true => self.letters_at_most(limit, letters, POLL_BYTES_MAX / 4).await?,
            false => Vec::new(),
        };
        let mail = self.view(MailOf { agent: who.agent().clone(), after: seen.mail }).await?;
        let mut letters: VecDeque<InboxItem> =
            letters.into_iter().map(|it| InboxItem::Letter(Box::new(it))).collect();
        let mut mail: VecDeque<InboxItem> = mail.into_iter().map(InboxItem::Mail).collect();
        let (mut news, mut last) = (Vec::new(), seen.posts);
        while news.len() < limit {
            // Each kind keeps its own order, since readers continue by it.
            let mail_first = match (letters.front(), mail.front()) {
                (Some(letter), Some(mail)) => mail.at() < letter.at(),
                (letter, _) => letter.is_none(),
            };
            let next = if mail_first { mail.pop_front() } else { letters.pop_front() };
            let Some(next) = next else { break };
            if let InboxItem::Letter(letter) = &next {
                last = letter.n;
            }
            news.push(next);
        }
        let left = !mail.is_empty() || self.engine().inbox_index().newest(&name) > last;
        let more = left && !news.is_empty();
        Ok(InboxPage { news, more })
    }
}

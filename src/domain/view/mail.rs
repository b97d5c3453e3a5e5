//! Mail that waits, read without taking it.

use std::sync::Arc;

use super::View;
use crate::{Mail, State};
use provost_base::{AgentId, MailSeq, Timestamp};

/// The query for an agent's mail after a number, oldest first.
#[derive(Clone, Debug)]
pub struct MailOf {
    /// The agent in whose queue the mail is.
    pub agent: AgentId,
    /// The number after which the mail is read.
    pub after: MailSeq,
}

impl View for MailOf {
    type Out = Vec<Arc<Mail>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.mail.after(&self.agent, self.after).cloned().collect()
    }
}

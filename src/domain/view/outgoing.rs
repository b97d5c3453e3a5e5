//! Notices that are owed to addresses elsewhere, at one moment.

use std::sync::Arc;

use super::View;
use crate::{Approver, NoticeAbout, NoticeKind, OutgoingNotice, State};
use provost_base::{EffectId, Timestamp};

/// The query for an owed notice, by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwedNotice(pub EffectId);

/// Answer to [`OwedNotice`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwedNoticeOut {
    /// The notice.
    pub notice: Arc<OutgoingNotice>,
    /// Whether the question that it reports no longer waits for an answer.
    pub is_past: bool,
    /// The id of this daemon, made with its store.
    pub daemon: Box<str>,
    /// The number of waiting questions that a person may answer.
    pub waiting: usize,
}

impl View for OwedNotice {
    type Out = Option<OwedNoticeOut>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let notice = state.outgoing.get(self.0)?.clone();
        let is_past = match &notice.about {
            NoticeAbout::Approval(it) if notice.kind != NoticeKind::Answered => {
                state.approvals.get(it.approval).is_none()
            }
            _ => false,
        };
        let takes_a_person =
            |by: &Approver| matches!(by, Approver::Human | Approver::Passkey | Approver::PasskeyIfEnrolled);
        let waiting = state.approvals.iter().filter(|it| it.by.iter().any(takes_a_person)).count();
        Some(OwedNoticeOut { notice, is_past, daemon: state.passkeys.daemon().into(), waiting })
    }
}

/// The query for the number of notices that are owed to each address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwedNotices;

/// The notices that one address is owed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwedTo {
    /// The name of the address in the configuration.
    pub to: Box<str>,
    /// The number of notices.
    pub count: usize,
    /// When the oldest of them was made.
    pub since: Timestamp,
}

impl View for OwedNotices {
    type Out = Vec<OwedTo>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.outgoing.by_address().map(|(to, count, since)| OwedTo { to: to.into(), count, since }).collect()
    }
}

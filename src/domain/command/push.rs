//! Verbs about browsers that are told by their push services.

use serde::{Deserialize, Serialize};

use crate::push::PushSubscription;
use provost_base::{ApprovalId, Timestamp};

/// Have a browser told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddPush {
    /// The subscription. It takes the place of one with the same address.
    pub subscription: PushSubscription,
}

/// The browser is told from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushAdded;

/// Remove a browser, which then gets no more notices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemovePush {
    /// The id of the subscription.
    pub id: Box<str>,
    /// Why, in words.
    pub why: Box<str>,
}

/// The browser gets no more notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushRemoved;

/// Tell a browser of a question once more, later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnoozePush {
    /// The id of the subscription.
    pub id: Box<str>,
    /// The question.
    pub approval: ApprovalId,
}

/// The browser is told later, if the question still waits then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushSnoozed {
    /// When.
    pub until: Timestamp,
}

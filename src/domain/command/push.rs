//! Verbs about browsers that get notices from their push services.

use serde::{Deserialize, Serialize};

use crate::push::PushSubscription;
use provost_base::{ApprovalId, Timestamp};

/// Have notices sent to a browser.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddPush {
    /// The subscription. It takes the place of one with the same address.
    pub subscription: PushSubscription,
}

/// The browser gets notices from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushAdded;

/// Remove a browser, which then gets no more notices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemovePush {
    /// The id of the subscription.
    pub id: Box<str>,
    /// The reason, in words.
    pub why: Box<str>,
}

/// The browser gets no more notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushRemoved;

/// Send a browser the notice of a question once more, later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnoozePush {
    /// The id of the subscription.
    pub id: Box<str>,
    /// The question.
    pub approval: ApprovalId,
}

/// The browser gets the notice later, if the question still waits then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushSnoozed {
    /// The time of that notice.
    pub until: Timestamp,
}

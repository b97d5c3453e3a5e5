//! The verb that changes users over hosts.

use serde::{Deserialize, Serialize};

use crate::UserRole;
use provost_base::HostId;

/// Give the user of a host a role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetUser {
    /// The host that the user works at.
    pub host: HostId,
    /// The name for people.
    pub name: Box<str>,
    /// The role; `None` takes the user off the list.
    pub role: Option<UserRole>,
}

/// The user has that role on all hosts, and that is in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserSet;

//! Users of the hosts, at one moment.

use super::View;
use crate::{State, Users};
use provost_base::{HostId, Timestamp};

/// The query for all users that are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllUsers;

/// Answer to [`AllUsers`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllUsersOut {
    /// The list of users.
    pub users: Users,
    /// The host of this daemon.
    pub here: HostId,
}

impl View for AllUsers {
    type Out = AllUsersOut;

    fn look(self, _now: Timestamp, state: &State) -> AllUsersOut {
        AllUsersOut { users: state.users.clone(), here: state.here.host }
    }
}

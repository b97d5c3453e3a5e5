//! Users of the hosts, and their roles.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_domain::UserRole;
use provost_domain::command::SetUser;
use provost_domain::view::AllUsers;

impl Handles<endpoints::Users> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::User>> {
        let all = self.0.provost.view(AllUsers).await.map_err(map::fault)?;
        let row = |it: &provost_domain::User| wire::User {
            host: it.host.to_string(),
            name: it.name.to_string(),
            role: it.role.as_str().into(),
            here: it.host == all.here,
        };
        Ok(all.users.iter().map(|it| row(it)).collect())
    }
}

impl Handles<endpoints::SetUser> for Own {
    async fn handle(&self, call: &Call, body: wire::SetUser) -> Answered<wire::Done> {
        let host = body.host.parse().map_err(|err| OwnError::invalid(format!("host: {err}")))?;
        let unknown = || OwnError::invalid("role: it is viewer, agent, approver or admin");
        let role = body.role.as_deref().map(|it| UserRole::parse(it).ok_or_else(unknown)).transpose()?;
        let message = match role {
            Some(role) => format!("{} has the role {}, on all hosts", body.name, role.as_str()),
            None => format!("{} is not listed any more, and looks on", body.name),
        };
        let verb = SetUser { host, name: body.name.into(), role };
        self.0.provost.submit(&call.who, verb).await.map_err(map::fault)?;
        Ok(wire::Done { message })
    }
}

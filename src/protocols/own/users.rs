//! Hosts of the repository, their users, and the users' roles.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_domain::command::SetUser;
use provost_domain::view::AllUsers;
use provost_domain::{HereIs, UserRole};
use provost_engine::HostSeen;

impl Handles<endpoints::Hosts> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::Hosts> {
        let here = self.0.provost.view(HereIs).await.map_err(map::fault)?.host;
        let ms = |it: std::time::Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        let Some(seen) = self.0.provost.engine().hosts_seen() else {
            return Ok(wire::Hosts { hosts: Vec::new(), looked_ms: 0 });
        };
        let row = |it: &HostSeen| wire::Host {
            host: it.daemon.host.to_string(),
            incarnation: it.daemon.incarnation,
            machine: it.name.to_string(),
            role: it.role.as_str().into(),
            state: it.state.into(),
            silent_ms: ms(it.silent),
            formats: it.formats,
            here: it.daemon.host == here,
        };
        Ok(wire::Hosts { hosts: seen.hosts.iter().map(row).collect(), looked_ms: ms(seen.looked) })
    }
}

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

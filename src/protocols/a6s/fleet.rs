//! Agents as editors see them. A6s 6.1 and 6.9.

use super::A6s;
use super::envelope::{A6sError, Said};
use super::map::used;
use super::wire::{Agent, FleetAgent, FleetOne, FleetTotals, Id};
use provost_agents::{self as agents, Agents, Availability, FleetMember, Role};
use provost_base::AgentId;

impl A6s {
    /// Returns the agent that an editor names for this method; an error if it cannot do such work.
    pub(super) async fn meant(&self, wanted: &str, method: &str) -> Result<ResolvedWorker, A6sError> {
        let agents = self.service().configured();
        if agents.agents.is_empty() {
            let fleet = self.service().fleet_now().await?;
            let worker = self.member(&fleet, wanted)?.agent.id.clone();
            return Ok(ResolvedWorker { worker, preamble: None, by_agent: false });
        }
        let unknown =
            || A6sError::new(format!("Unknown agent: {}. Configured: {}", wanted.trim(), agents.ids()));
        let meant = agents.find(wanted).ok_or_else(|| refused(&agents, wanted).unwrap_or_else(unknown))?;
        if !meant.agent.takes(method) {
            let takes = meant.agent.methods.join(", ");
            return Err(A6sError::new(format!(
                "{} is not for {method}: its `methods` are {takes}",
                meant.agent.id
            )));
        }
        let preamble = meant.preamble.map(Into::into);
        Ok(ResolvedWorker { worker: meant.agent.id.clone(), preamble, by_agent: true })
    }

    /// Answers `agents.list`.
    pub(super) async fn agents(&self) -> Result<Said, A6sError> {
        let (fleet, agents) = (self.service().fleet_now().await?, self.service().configured());
        let roles = agents.roles.values().filter(|_| agents.list_roles);
        let roles = roles.filter_map(|role| role_of(role, agents.find(role.id.as_str())?, &fleet));
        Said::new(&fleet.iter().map(agent).chain(roles).collect::<Vec<_>>())
    }

    /// Answers `fleet.list`.
    pub(super) async fn fleet(&self, capability: Option<&Id>) -> Result<Said, A6sError> {
        let wanted = |it: &&FleetMember| {
            capability.is_none_or(|wanted| wanted.as_str().trim().eq_ignore_ascii_case(&it.agent.capability))
        };
        let fleet = self.service().fleet_now().await?;
        let row = |it: &FleetMember| FleetAgent {
            agent: agent(it),
            agent_id: it.agent.id.to_string(),
            capability: it.agent.capability.to_string(),
            group: it.agent.capability.to_string(),
            region: it.agent.region.to_string(),
            active_tasks: it.running,
        };
        Said::new(&fleet.iter().filter(wanted).map(row).collect::<Vec<_>>())
    }

    /// Answers `fleet.status`.
    pub(super) async fn fleet_status(&self, of: Option<&Id>) -> Result<Said, A6sError> {
        let fleet = self.service().fleet_now().await?;
        let Some(of) = of else { return Said::new(&totals(&fleet)) };
        let it = self.member(&fleet, of.as_str())?;
        let version = self.provost().program_of(&it.agent.id).await?;
        Said::new(&FleetOne {
            agent_id: it.agent.id.to_string(),
            name: it.agent.name.to_string(),
            status: status(it.availability),
            uptime: duration(self.runs_for().as_secs()),
            version: version.map(|it| format!("sha256:{}", it.short())),
            active_tasks: it.running,
            max_parallel: it.agent.max_parallel,
            usage: it.used.as_ref().map(used),
        })
    }

    /// Returns the member that a name means, in the same way in every method: as for [`A6s::meant`].
    fn member<'a>(&self, fleet: &'a [FleetMember], wanted: &str) -> Result<&'a FleetMember, A6sError> {
        let agents = self.service().configured();
        let found = find(fleet, agents.find(wanted).map_or(wanted, |meant| meant.agent.id.as_str()));
        found.map_err(|unknown| refused(&agents, wanted).unwrap_or(unknown))
    }
}

/// The agent or worker that an editor names.
pub(super) struct ResolvedWorker {
    pub(super) worker: AgentId,
    /// The text at the beginning of its prompts, if any.
    pub(super) preamble: Option<Box<str>>,
    /// Whether it is an agent of the configuration, and not only a worker.
    pub(super) by_agent: bool,
}

/// Returns what is wrong with an agent's entry, if there is one of this name.
fn refused(agents: &Agents, wanted: &str) -> Option<A6sError> {
    agents.refusal(wanted).map(|why| A6sError::new(format!("{} cannot be used: {why}", wanted.trim())))
}

/// Returns the agent with this id, or else with this name.
pub(super) fn find<'a>(fleet: &'a [FleetMember], wanted: &str) -> Result<&'a FleetMember, A6sError> {
    let wanted = wanted.trim();
    let by_id = fleet.iter().find(|it| it.agent.id.as_str().eq_ignore_ascii_case(wanted));
    let found = by_id.or_else(|| fleet.iter().find(|it| it.agent.name.eq_ignore_ascii_case(wanted)));
    found.ok_or_else(|| {
        let all: Vec<&str> = fleet.iter().map(|it| it.agent.id.as_str()).collect();
        A6sError::new(format!("Unknown agent: {wanted}. Configured: {}", all.join(", ")))
    })
}

fn agent(it: &FleetMember) -> Agent {
    Agent {
        id: it.agent.id.to_string(),
        name: it.agent.name.to_string(),
        description: it.agent.description.to_string(),
        status: status(it.availability),
    }
}

/// Returns the row of a role: it is available when the agent behind it is.
fn role_of(role: &Role, meant: agents::ResolvedAgent<'_>, fleet: &[FleetMember]) -> Option<Agent> {
    let behind = fleet.iter().find(|it| it.agent.id == meant.agent.id)?;
    Some(Agent {
        id: role.id.to_string(),
        name: role.id.to_string(),
        description: meant.preamble.unwrap_or_default().to_owned(),
        status: status(behind.availability),
    })
}

pub(super) fn status(availability: Availability) -> &'static str {
    match availability {
        Availability::Available => "available",
        Availability::Busy => "busy",
        Availability::Offline => "offline",
    }
}

fn totals(fleet: &[FleetMember]) -> FleetTotals {
    let mut totals = FleetTotals { total: fleet.len(), ..FleetTotals::default() };
    for it in fleet {
        let capability = totals.by_capability.entry(it.agent.capability.to_string()).or_default();
        capability.total += 1;
        match it.availability {
            Availability::Available => {
                totals.available += 1;
                capability.available += 1;
            }
            Availability::Busy => totals.busy += 1,
            Availability::Offline => totals.offline += 1,
        }
    }
    totals
}

/// Writes a duration, such as `3h 2m`.
fn duration(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m"),
        _ => format!("{hours}h {minutes}m"),
    }
}

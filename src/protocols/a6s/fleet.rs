//! Agents as editors see them. A6s 6.1 and 6.9.

use super::A6s;
use super::envelope::{A6sError, Said};
use super::map::used;
use super::wire::{Agent, FleetAgent, FleetOne, FleetTotals, Id};
use provost_agents::{self as agents, Agents, Availability, FleetMember, Role};
use provost_base::AgentId;

impl A6s {
    /// Whom an editor means; it has to be one who does such things.
    pub(super) async fn meant(&self, wanted: &str, method: &str) -> Result<Meant, A6sError> {
        let agents = self.service().configured();
        if agents.agents.is_empty() {
            let fleet = self.service().fleet_now().await?;
            let worker = self.member(&fleet, wanted)?.agent.id.clone();
            return Ok(Meant { worker, preamble: None, by_agent: false });
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
        Ok(Meant { worker: meant.agent.id.clone(), preamble, by_agent: true })
    }

    /// `agents.list`
    pub(super) async fn agents(&self) -> Result<Said, A6sError> {
        let (fleet, agents) = (self.service().fleet_now().await?, self.service().configured());
        let roles = agents.roles.values().filter(|_| agents.list_roles);
        let roles = roles.filter_map(|role| role_of(role, agents.find(role.id.as_str())?, &fleet));
        Said::new(&fleet.iter().map(agent).chain(roles).collect::<Vec<_>>())
    }

    /// `fleet.list`
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

    /// `fleet.status`
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

    /// Whom a name means in every method: as for [`A6s::meant`].
    fn member<'a>(&self, fleet: &'a [FleetMember], wanted: &str) -> Result<&'a FleetMember, A6sError> {
        let agents = self.service().configured();
        let found = find(fleet, agents.find(wanted).map_or(wanted, |meant| meant.agent.id.as_str()));
        found.map_err(|unknown| refused(&agents, wanted).unwrap_or(unknown))
    }
}

/// The agent or worker that an editor means.
pub(super) struct Meant {
    pub(super) worker: AgentId,
    /// The text with which its prompts begin; `None` without one.
    pub(super) preamble: Option<Box<str>>,
    /// Whether it is an agent, and not only a worker.
    pub(super) by_agent: bool,
}

/// What is wrong with an agent's entry, where there is one of this name.
fn refused(agents: &Agents, wanted: &str) -> Option<A6sError> {
    agents.refusal(wanted).map(|why| A6sError::new(format!("{} cannot be used: {why}", wanted.trim())))
}

/// The agent of this id, or else of this name.
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

/// A role in the list: it begins when the agent behind it does.
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

/// As `3h 2m`.
fn duration(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m"),
        _ => format!("{hours}h {minutes}m"),
    }
}

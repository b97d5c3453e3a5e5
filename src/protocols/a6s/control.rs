//! `fleet.command`: switches agents, shows them, or gives them work. A6s 3.0 and 6.9.

use super::A6s;
use super::envelope::{A6sError, Said};
use super::fleet::{find, status};
use super::session::{Outcome, Session};
use super::wire::{Commanded, FleetCommand};
use provost_agents::{Availability, FleetMember, fresh_job_id};
use provost_domain::Switch;

/// A command that is no task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ControlCommand {
    /// Sets the agent's switch.
    Switch(Switch),
    /// Shows the agent's state.
    Status,
}

impl ControlCommand {
    fn of(command: &str) -> Option<Self> {
        Some(match command.trim().to_ascii_lowercase().as_str() {
            // Between its tasks an agent has no process, so only its switch can be restarted.
            "start" | "enable" | "resume" | "restart" => Self::Switch(Switch::On),
            "stop" | "disable" => Self::Switch(Switch::Off),
            "pause" => Self::Switch(Switch::Paused),
            "status" => Self::Status,
            _ => return None,
        })
    }
}

impl A6s {
    /// Answers `fleet.command`.
    pub(super) async fn fleet_command(&self, session: &Session, asked: &FleetCommand) -> Outcome {
        let word = ControlCommand::of(asked.command.as_str());
        let name = self.addressed(asked, word).await?;
        match word {
            Some(word) => Ok((self.control(session, &name, word).await?, None)),
            None => {
                // Sublime always sends parameters, and they are mostly empty.
                let params = asked.params.as_ref().map(|it| it.as_str().trim());
                let context = params.filter(|it| *it != "{}" && *it != "[]");
                let (begun, hold) = self.begin(session, &name, asked.command.as_str(), context).await?;
                let mut said = Said::new(&Commanded { ok: true, execution_id: begun.id, agent: None })?;
                said.log = Some(begun.log);
                Ok((said, hold))
            }
        }
    }

    /// Returns the agent that a command names, in the three forms that editors use. Emacs sends an agent's address
    /// and capabilities beside its id.
    async fn addressed(
        &self,
        asked: &FleetCommand,
        word: Option<ControlCommand>,
    ) -> Result<String, A6sError> {
        if let Some(id) = &asked.agent_id {
            return Ok(id.as_str().to_owned());
        }
        let fleet = self.service().fleet_now().await?;
        let agents = self.service().configured();
        let target = asked.target.as_ref().map(|it| it.as_str());
        let known = |name: &&str| agents.find(name).is_some() || find(&fleet, name).is_ok();
        if let Some(name) = target.filter(known).or(asked.agent_type.as_ref().map(|it| it.as_str())) {
            return Ok(name.to_owned());
        }
        if let Some(capability) = &asked.capability {
            let wanted = capability.as_str().trim();
            let able = || fleet.iter().filter(|it| it.agent.capability.eq_ignore_ascii_case(wanted));
            let held =
                able().find(|it| word == Some(ControlCommand::Switch(Switch::On)) && it.switch != Switch::On);
            let works = |it: &&FleetMember| {
                let held_back = word.is_some() && it.switch != Switch::On;
                it.availability != Availability::Offline || held_back
            };
            let found = held.or_else(|| able().find(works)).map(|it| it.agent.id.to_string());
            return found
                .ok_or_else(|| A6sError::new(format!("No agent that works has the capability {wanted}")));
        }
        target.map(str::to_owned).ok_or_else(|| {
            A6sError::new("fleet.command: name an agent: `agentId`, `target`, `agentType`, or a `capability`")
        })
    }

    async fn control(&self, session: &Session, name: &str, word: ControlCommand) -> Result<Said, A6sError> {
        let fleet = self.service().fleet_now().await?;
        let id = match find(&fleet, name) {
            Ok(it) => it.agent.id.clone(),
            Err(unknown) => {
                let agents = self.service().configured();
                let meant = agents.find(name).ok_or(unknown)?.agent.id.clone();
                if word != ControlCommand::Status {
                    return Err(A6sError::new(format!(
                        "{} is a role of {meant}, which has others too: say {meant}",
                        name.trim()
                    )));
                }
                meant
            }
        };
        let execution_id = format!("ctl_{}", fresh_job_id()?);
        if let ControlCommand::Switch(to) = word {
            if fleet.iter().any(|it| it.agent.id == id && !it.agent.enabled) {
                return Err(A6sError::new(format!(
                    "{id} is switched off by `enabled = false` in its entry of the configuration; change it there"
                )));
            }
            self.provost().switch_worker(&session.who, &id, to, &execution_id).await?;
        }
        let fleet = self.service().fleet_now().await?;
        let now = find(&fleet, id.as_str())?;
        let agent = super::wire::CommandedAgent {
            agent_id: id.to_string(),
            status: status(now.availability),
            switch: now.switch.as_str(),
            active_tasks: now.running,
        };
        Said::new(&Commanded { ok: true, execution_id, agent: Some(agent) })
    }
}

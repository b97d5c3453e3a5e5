//! The daemon itself: its state, the agents that it knows, and its operator's commands.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use hyper::StatusCode;
use tokio::sync::oneshot;

use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use super::{DaemonCommand, Own, SessionsThere};
use provost_api::{endpoints, wire};
use provost_auth::role;
use provost_base::{AgentId, HostId, HostRole};
use provost_domain::view::{AllPasskeys, AllSwitches, KnownAgents, OwedNotices, TaskCounts, Waiting};
use provost_domain::{OnlyWorks, Principal, Refusal, Switch, WorkersElsewhere};

/// The text for people about a machine that has joined only to work.
const ONLY_WORKS: &str = "this machine only works for the other hosts: it carries out their tasks, and refuses what only a full host decides";

impl Handles<endpoints::About> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::About> {
        let provost = &self.0.provost;
        let tasks = provost.view(TaskCounts).await.map_err(map::fault)?;
        let waiting = provost.view(Waiting).await.map_err(map::fault)?;
        let head = provost.engine().journal_head().await.map_err(map::fault)?;
        let switches = provost.view(AllSwitches).await.map_err(map::fault)?;
        let mut about = (self.0.about)();
        for owed in provost.view(OwedNotices).await.map_err(map::fault)? {
            if let Some(row) = about.notices.iter_mut().find(|row| row.name == *owed.to) {
                (row.owed, row.owed_since) = (owed.count, Some(owed.since.rfc3339()));
            }
        }
        about.notes.extend(self.passkeys_given_up().await);
        if provost.view(OnlyWorks).await.map_err(map::fault)? {
            about.notes.push(ONLY_WORKS.into());
        }
        for (id, hosts) in provost.view(WorkersElsewhere).await.map_err(map::fault)? {
            let named = |(host, role): &(HostId, HostRole)| match role {
                HostRole::Full => host.short(),
                HostRole::Worker => format!("{} (only works)", host.short()),
            };
            let hosts = hosts.iter().map(named).collect();
            match about.workers.iter_mut().find(|worker| worker.id == id.as_str()) {
                Some(worker) => worker.hosts = hosts,
                None => about.workers.push(map::worker_elsewhere(&id, hosts)),
            }
        }
        for (id, switched) in switches.iter() {
            let worker = about.workers.iter_mut().find(|worker| worker.id == id.as_str());
            let says = format!("{} by {}", switched.to.as_str(), switched.by);
            worker.map(|worker| worker.switched.replace(says));
        }
        Ok(wire::About {
            active: tasks.live,
            approvals: waiting.len(),
            completed: tasks.completed,
            failed: tasks.failed,
            journal_seq: head.seq.0,
            journal_anchor: head.to_string(),
            ..about
        })
    }
}

impl Handles<endpoints::WhoAmI> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::Me> {
        Ok(wire::Me { agent: call.who.agent().to_string(), operates: call.who.operates() })
    }
}

impl Handles<endpoints::Agents> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::Agent>> {
        let mut known = self.0.provost.view(KnownAgents).await.map_err(map::fault)?;
        // A model that thinks for long gives no sign of life, though its host runs.
        let there = self.sessions_there().await;
        known.iter_mut().for_each(|it| it.alive |= there.contains(&it.id));
        // People, and the daemon itself, are not agents.
        Ok(known.iter().filter(|it| !role::is_reserved(&it.id)).map(map::known_agent).collect())
    }
}

impl Own {
    /// Sets the function that returns the agents of hosts' sessions whose process runs. It may block.
    pub fn knows_sessions(&self, there: SessionsThere) {
        let _known_already = self.0.sessions_there.set(there);
    }

    async fn sessions_there(&self) -> BTreeSet<AgentId> {
        let Some(there) = self.0.sessions_there.get().cloned() else { return BTreeSet::new() };
        tokio::task::spawn_blocking(move || there()).await.unwrap_or_default()
    }
}

impl Handles<endpoints::SwitchWorker> for Own {
    async fn handle(&self, call: &Call, body: wire::SwitchWorker) -> Answered<wire::WorkerSwitched> {
        let worker = map::agent(&body.worker, "worker")?;
        let to = if body.on { Switch::On } else { Switch::Off };
        let from =
            self.0.provost.switch_worker(&call.who, &worker, to, to.as_str()).await.map_err(map::fault)?;
        let (from, to) = (from.as_str().into(), to.as_str().into());
        Ok(wire::WorkerSwitched { worker: body.worker, from, to })
    }
}

impl Handles<endpoints::Reload> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::Done> {
        order(self, &call.who, DaemonCommand::Reload).await
    }
}

impl Handles<endpoints::Listen> for Own {
    async fn handle(&self, call: &Call, body: wire::Listen) -> Answered<wire::Done> {
        let wire::Listen { address, secret } = body;
        let secret = secret.map(|it| provost_base::Secret::new(it.into_bytes()));
        order(self, &call.who, DaemonCommand::Listen(address.into(), secret)).await
    }
}

impl Handles<endpoints::OpenPage> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::PageAt> {
        let done = order(self, &call.who, DaemonCommand::OpenPage).await?;
        let public = self.0.public.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(wire::PageAt { address: done.message, public })
    }
}

impl Handles<endpoints::TestNotice> for Own {
    async fn handle(&self, call: &Call, body: wire::TestNotice) -> Answered<wire::NoticeTested> {
        let done = order(self, &call.who, DaemonCommand::TestNotice(body.name.clone())).await?;
        Ok(wire::NoticeTested { name: body.name, says: done.message })
    }
}

impl Handles<endpoints::Stop> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::Done> {
        order(self, &call.who, DaemonCommand::Stop).await
    }
}

/// Carries out a command of the operator; agents that share the user may not give them. An agent that omits its
/// name gains no right: what is known of agents, and what a person holds back, survives a restart.
pub(super) async fn order(own: &Own, who: &Principal, order: DaemonCommand) -> Answered<wire::Done> {
    if !who.may(provost_domain::Scope::Operate) {
        return Err(map::fault(Refusal::OutOfScope { needs: provost_domain::Scope::Operate }));
    }
    ask_daemon(own, order).await
}

/// Lets the daemon as a whole carry out a command that needs no right.
pub(super) async fn ask_daemon(own: &Own, order: DaemonCommand) -> Answered<wire::Done> {
    let (reply, done) = oneshot::channel();
    own.0.orders.send((order, reply)).await.map_err(|_| map::fault(Refusal::Stopping))?;
    match done.await.map_err(|_| map::fault(Refusal::Stopping))? {
        Ok(message) => Ok(wire::Done { message }),
        Err(message) => Err(OwnError::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message)),
    }
}

impl Own {
    /// Returns the note of every list while no passkey counts because all were given up.
    async fn passkeys_given_up(&self) -> Option<String> {
        let known = self.0.provost.view(AllPasskeys).await.ok()?;
        known.waits_until?;
        // The time is in hours, so that the note is the same for an hour.
        let hours = known.passkeys.standing().left_ms.div_ceil(3_600_000);
        Some(format!(
            "all passkeys were given up: until the daemon has run for {hours} more hours, none counts, and nothing that asks for one is \
             answered; provost passkey list says more"
        ))
    }
}

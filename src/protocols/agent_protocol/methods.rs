//! One function per endpoint: decode, submit, encode. Agent Protocol, 3.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::body::Members;
use super::error::AgentProtocolError;
use super::{AgentProtocol, foreign, ids, map, wire};
use provost_auth::caller::Caller;
use provost_auth::names::is_same;
use provost_auth::role;
use provost_base::{AgentId, AssignmentId, HandoffId, RepoPath, TaskId};
use provost_domain::command::{
    AnswerTransfer, BeatCrew, JoinCrew, MakeAssignment, MoveAssignment, MoveMember, OfferTransfer,
};
use provost_domain::view::{
    CrewSnapshot, OneAssignment, OneFile, OneForeign, OneHandoff, OneMember, ShowsForeign, WholeCrew,
};
use provost_domain::{Note, Principal, Refusal, Role, Verb};
use provost_service::Restore;

/// The answer of an endpoint: a status, and JSON as text.
pub(super) type Said = Result<(StatusCode, String), AgentProtocolError>;

fn ok(value: &impl serde::Serialize) -> Said {
    Ok((StatusCode::OK, wire::json(value)))
}

fn created(value: &impl serde::Serialize) -> Said {
    Ok((StatusCode::CREATED, wire::json(value)))
}

/// Parses a name in a path. No agent has a malformed name, so the door answers as for an unknown one.
fn named(id: &str) -> Result<AgentId, AgentProtocolError> {
    AgentId::parse(id).map_err(|_| AgentProtocolError::not_found("Agent not found"))
}

/// Returns the caller's principal under the name that it gives. The name must be one that every process of this
/// user may use.
fn speaks_as(caller: &Caller, agent: AgentId) -> Result<Principal, AgentProtocolError> {
    let reserved = || {
        AgentProtocolError::forbidden(format!(
            "the id {agent} is reserved: it has a key or token of its own, or belongs to the daemon, a person or an agent of another host; choose another one"
        ))
    };
    if map::OURS.contains(&agent.as_str()) {
        return Err(reserved());
    }
    caller.speaks_just_as(agent.clone()).map_err(|_| reserved())
}

/// Checks whether the caller may act on a thing that is meant for this name. A name with a key or token of its own
/// must be proved.
fn meant_for(caller: &Caller, name: Option<&str>) -> Result<(), AgentProtocolError> {
    let Some(Ok(agent)) = name.map(AgentId::parse) else { return Ok(()) };
    caller.reads(&agent).map(drop).map_err(|_| {
        AgentProtocolError::forbidden(format!(
            "this is meant for {agent}, a name with a key or token of its own, which has to be shown"
        ))
    })
}

/// Returns the crew, and after it agents of other doors if they are shown.
fn agents(all: &CrewSnapshot) -> Vec<wire::Agent<'_>> {
    let own = all.members.iter().map(|it| map::agent(it));
    own.chain(all.foreign.agents.iter().map(foreign::agent)).collect()
}

/// Returns assignments, and after them delegated work if it is shown.
fn tasks(all: &CrewSnapshot) -> Vec<wire::Task<'_>> {
    let own = all.assignments.iter().map(|it| map::task(it));
    own.chain(all.foreign.tasks.iter().map(|it| foreign::task(it))).collect()
}

/// Returns the version of a file to restore at the end of a conflict.
fn restore(body: &Members, picked: bool) -> Result<Option<Restore>, AgentProtocolError> {
    match body.inside("metadata", "restore") {
        None | Some(Value::Null | Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) if picked => Ok(Some(Restore::Picked)),
        Some(Value::Bool(true)) => Err(AgentProtocolError::bad(
            "restore needs picked_agent, or names a version: an agent, or its path",
        )),
        Some(Value::String(name)) if !name.is_empty() => Ok(Some(Restore::Of(name.as_str().into()))),
        Some(_) => Err(AgentProtocolError::bad("restore must be true, an agent, or the path of a version")),
    }
}

impl AgentProtocol {
    async fn submit<V: Verb>(&self, who: &Principal, verb: V) -> Result<V::Reply, AgentProtocolError> {
        Ok(self.provost().submit(who, verb).await?)
    }

    pub(super) async fn status(&self) -> Said {
        let counts = self.counts().await?;
        ok(&wire::Status {
            version: "0.1",
            project: self.project(),
            port: self.port(),
            agents: wire::AgentCounts {
                total: counts.members,
                active: counts.there,
                lead: counts.lead.as_ref().map(AgentId::as_str),
            },
            resources: wire::ResourceCounts {
                total: counts.files,
                claimed: counts.claimed,
                conflicted: counts.conflicted,
            },
            tasks: wire::TaskCounts {
                total: counts.assignments,
                in_progress: counts.in_progress,
                done: counts.done,
            },
            event_count: counts.events,
        })
    }

    pub(super) async fn state(&self) -> Said {
        let all = self.provost().view(WholeCrew).await?;
        ok(&wire::State {
            agents: agents(&all),
            resources: foreign::resources(&all.claims, &all.stakes),
            tasks: tasks(&all),
            handoffs: all.handoffs.iter().map(|it| map::handoff(it)).collect(),
            lead: all.lead.as_ref().map(AgentId::as_str),
            event_count: all.events,
        })
    }

    pub(super) async fn announce(&self, caller: &Caller, body: &Members) -> Said {
        body.require(&["id", "tool"], "id and tool are required")?;
        let (id, tool) = (body.agent("id")?, body.given("tool")?);
        let role = body.one_of("role", &map::ROLES)?.unwrap_or(Role::Worker);
        let capabilities = body.texts("capabilities")?.unwrap_or_else(|| vec!["code".into()]);
        let joined = self.submit(&speaks_as(caller, id)?, JoinCrew { tool, role, capabilities }).await?;
        created(&map::agent(&joined.member))
    }

    pub(super) async fn agents(&self) -> Said {
        let all = self.provost().view(WholeCrew).await?;
        ok(&agents(&all))
    }

    pub(super) async fn agent(&self, id: &str) -> Said {
        let id = named(id)?;
        if let Some(found) = self.provost().view(OneMember(id.clone())).await? {
            return ok(&map::agent(&found));
        }
        let found = self.provost().view(OneForeign(id)).await?;
        ok(&foreign::agent(&found.ok_or_else(|| AgentProtocolError::not_found("Agent not found"))?))
    }

    pub(super) async fn leave(&self, caller: &Caller, id: &str) -> Said {
        // An agent that was never there has nothing to leave.
        let Ok(id) = AgentId::parse(id) else { return ok(&json!({ "ok": true })) };
        self.provost().leave_crew(&speaks_as(caller, id)?, false).await?;
        ok(&json!({ "ok": true }))
    }

    pub(super) async fn heartbeat(&self, caller: &Caller, id: &str) -> Said {
        self.submit(&speaks_as(caller, named(id)?)?, BeatCrew).await?;
        ok(&json!({ "ok": true }))
    }

    pub(super) async fn agent_status(&self, caller: &Caller, id: &str, body: &Members) -> Said {
        body.require(&["status"], "status is required")?;
        let to = body
            .one_of("status", &map::STATUSES)?
            .ok_or_else(|| AgentProtocolError::bad("status is required"))?;
        self.submit(&speaks_as(caller, named(id)?)?, MoveMember { to }).await?;
        ok(&json!({ "ok": true }))
    }

    /// Returns the caller and the file of a request about a file.
    async fn about_file(
        &self,
        caller: &Caller,
        body: &Members,
    ) -> Result<(Principal, Option<RepoPath>), AgentProtocolError> {
        body.require(&["path", "agent_id"], "path and agent_id are required")?;
        let who = speaks_as(caller, body.agent("agent_id")?)?;
        Ok((who, self.provost().file_of(&body.given("path")?).await))
    }

    pub(super) async fn claim(&self, caller: &Caller, body: &Members) -> Said {
        let (who, file) = self.about_file(caller, body).await?;
        let assignment = body.text("task_id")?.filter(|it| !it.is_empty());
        let file = file.ok_or_else(|| AgentProtocolError::bad("Invalid path"))?;
        let claimed =
            self.provost().claim(&who, file, assignment).await.map_err(AgentProtocolError::of_claim)?;
        if claimed.met.is_empty() {
            return ok(&json!({ "granted": true }));
        }
        // Beside the published member, the answer has the reservations through other doors.
        let warnings = claimed.met.iter().map(|it| {
            let (with, at) = (&it.with, it.mine.at.as_str());
            format!("{at} {} {}: {}", with.kind.verb(), with.agent, with.asked)
        });
        ok(&json!({ "granted": true, "warnings": warnings.collect::<Vec<_>>() }))
    }

    pub(super) async fn release(&self, caller: &Caller, body: &Members) -> Said {
        let (who, file) = self.about_file(caller, body).await?;
        // A malformed path was never claimed.
        let Some(file) = file else { return ok(&json!({ "released": false })) };
        let released = self.provost().release_claim(&who, file).await?.released;
        ok(&json!({ "released": released }))
    }

    pub(super) async fn lock(&self, caller: &Caller, body: &Members, lock: bool) -> Said {
        let (who, file) = self.about_file(caller, body).await?;
        let file = file.ok_or_else(|| AgentProtocolError::bad("Invalid path"))?;
        let locked =
            self.provost().lock_file(&who, file, lock).await.map_err(AgentProtocolError::of_claim)?;
        match lock {
            true => ok(&json!({ "locked": true })),
            false => ok(&json!({ "unlocked": locked.changed })),
        }
    }

    pub(super) async fn resources(&self, filter: Option<&str>) -> Said {
        let all = self.provost().view(WholeCrew).await?;
        let mut resources = foreign::resources(&all.claims, &all.stakes);
        if let Some(state @ ("claimed" | "conflicted")) = filter {
            resources.retain(|it| it.state == state);
        }
        ok(&resources)
    }

    pub(super) async fn resource(&self, path: &str) -> Said {
        if path.contains("..") {
            return Err(AgentProtocolError::bad("Invalid path"));
        }
        let untracked = || AgentProtocolError::not_found("Resource not tracked");
        let file = self.provost().file_of(path).await.ok_or_else(untracked)?;
        let (claim, stakes) = self.provost().view(OneFile(file)).await?;
        let claims: Vec<_> = claim.into_iter().collect();
        let found = foreign::resources(&claims, &stakes);
        ok(found.first().ok_or_else(untracked)?)
    }

    pub(super) async fn new_task(&self, caller: &Caller, body: &Members) -> Said {
        body.require(&["title", "assigned_by"], "title and assigned_by are required")?;
        let verb = MakeAssignment {
            id: ids::task(),
            title: body.given("title")?,
            description: body.given("description")?,
            to: body.text("assigned_to")?,
            files: body.texts("resources")?.unwrap_or_default(),
            after: body.texts("depends_on")?.unwrap_or_default(),
        };
        let made = self.submit(&speaks_as(caller, body.agent("assigned_by")?)?, verb).await?;
        created(&map::task(&made.assignment))
    }

    pub(super) async fn tasks(&self) -> Said {
        let all = self.provost().view(WholeCrew).await?;
        ok(&tasks(&all))
    }

    pub(super) async fn task(&self, id: &str) -> Said {
        let unknown = || AgentProtocolError::not_found("Task not found");
        let made = AssignmentId::parse(id).map_err(|_| unknown())?;
        if let Some(found) = self.provost().view(OneAssignment(made)).await? {
            return ok(&map::task(&found));
        }
        if !self.provost().view(ShowsForeign).await? {
            return Err(unknown());
        }
        // Delegated work can be found after its end, too.
        let delegated = TaskId::parse(id).map_err(|_| unknown())?;
        match self.provost().task(&delegated).await {
            Ok(found) => ok(&foreign::task(&found)),
            Err(Refusal::TaskNotFound) => Err(unknown()),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Moves a task to another status. `by_page`: the published dashboard asks, which names no agent.
    pub(super) async fn move_task(&self, caller: &Caller, id: &str, body: &Members, by_page: bool) -> Said {
        let says = "status and agent_id are required";
        body.require(if by_page { &["status"] } else { &["status", "agent_id"] }, says)?;
        let to = body.one_of("status", &map::TASK_STATUSES)?.ok_or_else(|| AgentProtocolError::bad(says))?;
        let expected = body.one_of("expected_status", &map::TASK_STATUSES)?;
        let who = speaks_as(caller, self.answering(body, by_page)?)?;
        let id = AssignmentId::parse(id).map_err(|_| AgentProtocolError::not_found("Task not found"))?;
        let task = self.provost().view(OneAssignment(id.clone())).await?;
        if let Some(task) = task.filter(|it| !is_same(&it.by, who.agent())) {
            meant_for(caller, task.to.as_deref())?;
        }
        self.submit(&who, MoveAssignment { id, to, expected }).await?;
        ok(&json!({ "ok": true }))
    }

    /// Returns the acting agent: the page if it names none.
    fn answering(&self, body: &Members, by_page: bool) -> Result<AgentId, AgentProtocolError> {
        if by_page && body.require(&["agent_id"], "").is_err() {
            return Ok(AgentId::parse(role::DASHBOARD).expect("a constant that is a valid id"));
        }
        body.agent("agent_id")
    }

    pub(super) async fn new_handoff(&self, caller: &Caller, body: &Members) -> Said {
        let says = "from_agent, task_id, and summary are required";
        body.require(&["from_agent", "task_id", "summary"], says)?;
        let verb = OfferTransfer {
            id: ids::handoff(),
            to: body.text("to_agent")?,
            assignment: body.given("task_id")?,
            summary: body.given("summary")?,
            modified: body.texts("files_modified")?.unwrap_or_default(),
            created: body.texts("files_created")?.unwrap_or_default(),
            context: body.given("context")?,
            blockers: body.texts("blockers")?.unwrap_or_default(),
        };
        let offered = self.submit(&speaks_as(caller, body.agent("from_agent")?)?, verb).await?;
        created(&map::handoff(&offered.transfer))
    }

    pub(super) async fn handoffs(&self) -> Said {
        let all = self.provost().view(WholeCrew).await?;
        ok(&all.handoffs.iter().map(|it| map::handoff(it)).collect::<Vec<_>>())
    }

    pub(super) async fn handoff(&self, id: &str) -> Said {
        let unknown = || AgentProtocolError::not_found("Handoff not found");
        let id = HandoffId::parse(id).map_err(|_| unknown())?;
        let found = self.provost().view(OneHandoff(id)).await?.ok_or_else(unknown)?;
        ok(&map::handoff(&found))
    }

    pub(super) async fn answer_handoff(
        &self,
        caller: &Caller,
        id: &str,
        body: &Members,
        accept: bool,
        by_page: bool,
    ) -> Said {
        if !by_page {
            body.require(&["agent_id"], "agent_id required")?;
        }
        let who = speaks_as(caller, self.answering(body, by_page)?)?;
        let reason = if accept { Box::default() } else { body.given("reason")? };
        let answered = match HandoffId::parse(id) {
            Ok(id) => {
                let offered = self.provost().view(OneHandoff(id.clone())).await?;
                meant_for(caller, offered.and_then(|it| it.to.clone()).as_deref())?;
                self.submit(&who, AnswerTransfer { id, accept, reason }).await?.answered
            }
            Err(_) => false,
        };
        ok(&json!({ if accept { "accepted" } else { "rejected" }: answered }))
    }

    /// Records an event in the caller's words. Two kinds have a meaning for Provost: the caller has changed a file,
    /// and a conflict is over.
    pub(super) async fn new_event(&self, caller: &Caller, body: &Members) -> Said {
        body.require(&["agent_id", "action"], "agent_id and action are required")?;
        let checkouts = self.provost().checkouts(None);
        let who = speaks_as(caller, body.agent("agent_id")?)?;
        let note = Note {
            action: body.given("action")?,
            plain: body.text("resource")?.and_then(|it| RepoPath::parse(&checkouts.inside(&it)).ok()),
            file: body.text("resource")?,
            assignment: body.text("task_id")?,
            before: body.text("before_hash")?,
            after: body.text("after_hash")?,
            metadata: body.anything("metadata"),
            origin: None,
        };
        let file = match (&*note.action, &note.file) {
            ("resource.modified" | "resource.conflict_resolved", Some(file)) => {
                self.provost().file_of(file).await
            }
            _ => None,
        };
        let settles = &*note.action == "resource.conflict_resolved";
        let picked = body.text_in("metadata", "picked_agent").and_then(|it| AgentId::parse(it).ok());
        let restore = if settles { restore(body, picked.is_some())? } else { None };
        let taken = match file {
            Some(file) if settles => {
                self.provost().settle_conflict(&who, note, (file, picked), restore).await?
            }
            None if restore.is_some() => return Err(AgentProtocolError::bad("Invalid path")),
            changed => self.provost().note(&who, note, changed).await?,
        };
        created(&map::event(&taken.event).expect("every event of the crew is on the timeline"))
    }

    /// Refuses to appoint a lead, which only a person does. The error names the command for the person.
    pub(super) async fn appoint(&self, body: &Members) -> Said {
        body.require(&["agent_id"], "agent_id is required")?;
        let agent = body.agent("agent_id")?;
        let known = self.provost().view(OneMember(agent.clone())).await?;
        known.ok_or_else(|| AgentProtocolError::not_found("Agent not found"))?;
        Err(AgentProtocolError::forbidden(format!(
            "only a person names the lead, at a terminal: `provost crew appoint {agent}`"
        )))
    }
}

//! The timeline: the part of the log that agents see, in every protocol.
//!
//! Each of its entries has a kind. Agents write notes with any kind; the daemon's own entries use the kinds of Agent
//! Protocol, so that a search for a kind finds both.

use super::post::Post;
use super::{AssignmentState, CrewEvent, Event, EventKind, Status, note};
use provost_base::{SymbolPath, Timestamp};

/// The properties by which an event is found on the timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic<'a> {
    /// When the event happened.
    pub at: Timestamp,
    /// The agent whose event it is.
    pub agent: &'a str,
    /// The kind of event, in one word.
    pub word: &'a str,
    /// The file that it is about, in its one spelling if it has one.
    pub file: Option<&'a str>,
    /// The assignment or task that it is about.
    pub task: Option<&'a str>,
}

/// The name under which the watch over files appears.
pub const WATCHER: &str = "watcher";

/// The word for a sign of life.
pub const BEAT: &str = "agent.heartbeat";

impl Event {
    /// Returns the event's name at its origin, if it did not happen here.
    pub fn origin(&self) -> Option<&str> {
        match &self.kind {
            EventKind::Crew(CrewEvent::Noted(note)) => note.origin.as_ref().map(|it| &*it.id),
            _ => None,
        }
    }

    /// Returns the properties by which the event is found on the timeline; `None` if the timeline does not show it.
    pub fn topic(&self) -> Option<Topic<'_>> {
        let actor = self.actor.as_str();
        let daemon = "provost";
        let topic = |agent, word| Some(Topic { at: self.at, agent, word, file: None, task: None });
        match &self.kind {
            EventKind::Crew(event) => Some(self.topic_in_crew(event)),
            EventKind::Recorded { what, .. } if **what == *DOOR_OPENED => topic(daemon, "agent.joined"),
            EventKind::LockAcquired { symbol, refreshed: false, .. } => {
                about(topic(actor, "resource.claimed"), place_of(symbol))
            }
            EventKind::LockFreed { symbol, holder, .. } => {
                about(topic(holder.as_str(), "resource.released"), place_of(symbol))
            }
            EventKind::IntentDeclared { files, .. } => {
                let topic = topic(actor, "intent.declared");
                match files.first() {
                    Some(file) => about(topic, file.as_str()),
                    None => topic,
                }
            }
            EventKind::IntentMoved { owner, to, .. } if !to.is_live() => {
                topic(owner.as_str(), "intent.ended")
            }
            EventKind::ContractProposed { symbol, .. } => {
                about(topic(actor, "contract.proposed"), symbol.file().as_str())
            }
            EventKind::ContractMoved { symbol, .. } => {
                about(topic(actor, "contract.settled"), symbol.file().as_str())
            }
            EventKind::StakesMet { file, .. } => {
                about(topic(daemon, "resource.conflict_detected"), file.as_str())
            }
            EventKind::ApprovalAsked { .. } | EventKind::ApprovalAskedAgain { .. } => {
                self.for_task(topic(actor, "authority.escalation"))
            }
            EventKind::ApprovalAnswered { .. } | EventKind::ApprovalExpired { .. } => {
                topic(actor, "authority.decision")
            }
            EventKind::TaskDelegated { .. } => self.for_task(topic(actor, "task.created")),
            EventKind::TaskAssigned { worker, .. } => self.for_task(topic(worker.as_str(), "task.assigned")),
            EventKind::TaskStarted { .. } => self.for_task(topic(actor, "task.started")),
            EventKind::TaskFinished { status: Status::Completed, .. } => {
                self.for_task(topic(actor, "task.completed"))
            }
            EventKind::TaskFinished { .. } => self.for_task(topic(actor, "task.blocked")),
            EventKind::Published { post, .. } => {
                let (word, file) = topic_of_post(post)?;
                Some(Topic { at: self.at, agent: post.sender().as_str(), word, file, task: None })
            }
            _ => None,
        }
    }

    fn for_task<'a>(&'a self, topic: Option<Topic<'a>>) -> Option<Topic<'a>> {
        topic.map(|it| Topic { task: self.kind.task().map(|task| task.as_str()), ..it })
    }

    fn topic_in_crew<'a>(&'a self, event: &'a CrewEvent) -> Topic<'a> {
        let (actor, daemon) = (self.actor.as_str(), "provost");
        let topic = |agent, word| Topic { at: self.at, agent, word, file: None, task: None };
        match event {
            CrewEvent::MemberJoined { .. } => topic(actor, "agent.joined"),
            CrewEvent::MemberLeft => topic(actor, "agent.left"),
            CrewEvent::MemberBeat => topic(actor, BEAT),
            CrewEvent::MemberMoved { why: Some(_), .. } => topic(daemon, "agent.status_changed"),
            CrewEvent::MemberMoved { member, why: None, .. } => {
                topic(member.as_str(), "agent.status_changed")
            }
            CrewEvent::LeadElected { .. } => topic(daemon, "authority.decision"),
            CrewEvent::ClaimGranted { file, assignment, .. } => Topic {
                file: Some(file.as_str()),
                task: assignment.as_deref(),
                ..topic(actor, "resource.claimed")
            },
            CrewEvent::ClaimFreed { file, owner, .. } => {
                Topic { file: Some(file.as_str()), ..topic(owner.as_str(), "resource.released") }
            }
            CrewEvent::ClaimLocked { file, .. } => {
                Topic { file: Some(file.as_str()), ..topic(actor, "authority.decision") }
            }
            CrewEvent::FileChanged { file, by: Some(by), .. } => {
                Topic { file: Some(file.as_str()), ..topic(by.as_str(), "resource.modified") }
            }
            CrewEvent::FileChanged { file, owner, by: None, how, tracked, .. } => {
                let agent = match (owner, how, tracked) {
                    (Some(owner), super::Seen::Changed, _) => owner.as_str(),
                    (None, super::Seen::Changed, true) => note::UNKNOWN,
                    _ => WATCHER,
                };
                Topic { file: Some(file.as_str()), ..topic(agent, "resource.modified") }
            }
            CrewEvent::ConflictFound { file, .. } => {
                Topic { file: Some(file.as_str()), ..topic(daemon, "resource.conflict_detected") }
            }
            CrewEvent::AssignmentMade { id, .. } => {
                Topic { task: Some(id.as_str()), ..topic(actor, "task.created") }
            }
            CrewEvent::AssignmentMoved { id, to, .. } => {
                Topic { task: Some(id.as_str()), ..topic(actor, word_of(*to)) }
            }
            CrewEvent::TransferOffered { assignment, .. } => {
                Topic { task: Some(assignment), ..topic(actor, "handoff.initiated") }
            }
            CrewEvent::TransferAnswered { assignment, accepted, .. } => {
                let word = if *accepted { "handoff.accepted" } else { "handoff.rejected" };
                Topic { task: Some(assignment), ..topic(actor, word) }
            }
            CrewEvent::Noted(note) => Topic {
                at: note.origin.as_ref().map_or(self.at, |it| it.at),
                agent: note.origin.as_ref().map_or(actor, |it| &it.agent),
                word: &note.action,
                file: note.plain.as_ref().map(|it| it.as_str()).or(note.file.as_deref()),
                task: note.assignment.as_deref(),
            },
        }
    }
}

/// The name of the event that is recorded when a door that shows the timeline opens.
pub const DOOR_OPENED: &str = "agent_protocol.opened";

/// Returns the word for a message between agents, and the first file that it is about. The status of an agent is
/// not on the timeline: agents report it all the time, and the roster shows it.
fn topic_of_post(post: &Post) -> Option<(&'static str, Option<&str>)> {
    Some(match post {
        Post::Status { .. } | Post::Learning { .. } | Post::VerifyNow { .. } => return None,
        Post::Artifact { files, .. } => ("work.delivered", files.first().map(|it| &**it)),
        Post::Blocked { .. } => ("agent.blocked", None),
        Post::Verified { .. } => ("work.verified", None),
        Post::Feedback { .. } => ("work.criticised", None),
        Post::Question { .. } => ("escalation", None),
        Post::Answer { .. } => ("authority.decision", None),
        Post::Intent { files, .. } => ("intent.declared", files.first().map(|it| &*it.path)),
        Post::Advanced { .. } => ("branch.merged", None),
    })
}

fn about<'a>(topic: Option<Topic<'a>>, file: &'a str) -> Option<Topic<'a>> {
    topic.map(|it| Topic { file: Some(file), ..it })
}

/// Returns the place of a lock as the timeline names it: the file, or the resource.
fn place_of(at: &SymbolPath) -> &str {
    if at.is_resource() { at.symbol() } else { at.file().as_str() }
}

fn word_of(state: AssignmentState) -> &'static str {
    match state {
        AssignmentState::InProgress => "task.started",
        AssignmentState::Done => "task.completed",
        AssignmentState::Blocked => "task.blocked",
        AssignmentState::Assigned => "task.assigned",
        // The published server has no other word for these states.
        AssignmentState::Queued | AssignmentState::Review => "task.started",
    }
}

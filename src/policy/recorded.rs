//! Requests on record, put to other rules: the decision that those would have made.

use super::explain::Outcome;
use super::file::{Net, Ruling};
use super::judge::RuleSet;
use super::request::Request;
use provost_base::Digest;
use provost_domain::{Action, JudgedRequest, Network};

/// The reason why a recorded request cannot be put to other rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAskable {
    /// It is about a host's tool, whose arguments are not on record.
    Arguments,
    /// The line that it would have run is no longer kept.
    Command,
}

/// A recorded decision, and the one that other rules would have made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// The recorded decision.
    pub was: Ruling,
    /// The answer of the other rules.
    pub would: Outcome,
}

impl Request {
    /// Restores a recorded request, in the repository at this root. `command` is the line that it would have run,
    /// if it is kept; a line other than the recorded one counts as none.
    ///
    /// # Errors
    /// [`NotAskable`], if a part of the request is not known.
    pub fn on_record(asked: &JudgedRequest, command: Option<&str>, root: &str) -> Result<Self, NotAskable> {
        let mut request = Request {
            action: asked.action,
            client: asked.asked_by.as_str().into(),
            door: asked.door,
            proof: asked.proof,
            now: asked.now,
            ..Request::default()
        };
        if asked.action == Action::Permission {
            return Err(NotAskable::Arguments);
        }
        let Some(work) = &asked.work else { return Ok(request) };
        request.command = match work.command {
            None => None,
            Some(digest) => {
                let kept = command.filter(|it| Digest::of(it.as_bytes()) == digest);
                Some(kept.ok_or(NotAskable::Command)?.into())
            }
        };
        request.worker = work.worker.as_str().into();
        (request.worker_kind, request.tier) = (work.kind, work.tier);
        (request.tool, request.path) = (work.tool.clone(), work.path.clone());
        (request.max_bytes, request.timeout_secs) = (work.max_bytes, work.timeout_s);
        request.goal_bytes = work.goal_bytes;
        (request.depth, request.running) = (work.depth, work.running);
        request.network = Net::of(&work.network);
        if let Network::Hosts(hosts) = &work.network {
            request.hosts = hosts.clone();
        }
        (request.git, request.credentials) = (work.git, work.credentials);
        (request.root, request.cwd) = (Some(root.into()), work.dir.clone());
        Ok(request)
    }
}

/// Returns the answer of these rules to a recorded request, beside the recorded decision: `allow`, `approve` or `deny`.
pub fn replay(rules: &RuleSet, was: &str, request: &Request) -> Option<Replayed> {
    let was = [Ruling::Allow, Ruling::Approve, Ruling::Deny].into_iter().find(|it| it.name() == was)?;
    Some(Replayed { was, would: Outcome::of(rules, &rules.decide_request(request)) })
}

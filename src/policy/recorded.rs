//! Requests that are on record, asked about once more: what would other rules have decided of them?

use super::explain::Outcome;
use super::file::{Net, Ruling};
use super::judge::RuleSet;
use super::request::Request;
use provost_base::Digest;
use provost_domain::{Action, JudgedRequest, Network};

/// Why other rules cannot be asked about a request that is on record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAskable {
    /// It is about a tool of a host, whose arguments are not on record.
    Arguments,
    /// The line that it would have run is kept no more.
    Command,
}

/// A decision that is on record, and what other rules would have decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// What was decided.
    pub was: Ruling,
    /// What would have been.
    pub would: Outcome,
}

impl Request {
    /// The request that is on record, in the repository at this root. `command` is the line that it would have run, where it is
    /// kept; another line than the one on record counts as none.
    ///
    /// # Errors
    /// [`NotAskable`], where not all of it is known.
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

/// What these rules would have decided of a request that is on record, beside what was decided: `allow`, `approve` or `deny`.
pub fn replay(rules: &RuleSet, was: &str, request: &Request) -> Option<Replayed> {
    let was = [Ruling::Allow, Ruling::Approve, Ruling::Deny].into_iter().find(|it| it.name() == was)?;
    Some(Replayed { was, would: Outcome::of(rules, &rules.decide_request(request)) })
}

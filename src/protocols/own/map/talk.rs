//! Sayings to agents while they work, in the own API's words.

use super::{OwnError, task_id};
use provost_api::wire;
use provost_domain::command::SayToTask;
use provost_domain::{Continued, Saying, SayingState, Talk};

pub(in crate::own) fn say(it: wire::SayToTask) -> Result<SayToTask, OwnError> {
    if it.text.trim().is_empty() {
        return Err(OwnError::invalid("text is empty"));
    }
    Ok(SayToTask { task: task_id(&it.task)?, text: it.text.into(), now: it.now })
}

/// Splits the reason of an error into what an agent cannot do, and the next step.
pub(super) fn with_next_step(mut fault: OwnError, why: &str) -> OwnError {
    let Some((what, next)) = why.split_once("; ") else { return fault };
    fault.body.message = what.to_owned();
    fault.hint(next)
}

/// Returns the earlier task whose session the delegation continues; the service finds the session.
pub(super) fn continued(task: Option<&str>) -> Result<Option<Box<Continued>>, OwnError> {
    let Some(task) = task else { return Ok(None) };
    Ok(Some(Box::new(Continued { task: task_id(task)?, session: None })))
}

pub(super) fn session(talk: &Talk) -> Option<wire::AgentSession> {
    let it = talk.session.as_ref()?;
    let offers = [("load", it.loads), ("resume", it.resumes), ("list", it.lists), ("close", it.closes)];
    Some(wire::AgentSession {
        id: it.id.to_string(),
        folder: Some(it.folder.to_string()),
        goes_on: it.goes_on(),
        offers: offers.iter().filter(|(_, there)| *there).map(|(name, _)| (*name).to_owned()).collect(),
        resumed: talk.resumed,
        closed: talk.closed,
    })
}

pub(super) fn saying(it: &Saying) -> wire::Saying {
    let (state, delivered_at) = match it.state {
        SayingState::Waiting => ("waiting", None),
        SayingState::Delivered { at } => ("delivered", Some(at.rfc3339())),
        SayingState::NotDelivered => ("not_delivered", None),
    };
    wire::Saying {
        number: it.number,
        by: it.by.to_string(),
        at: it.at.rfc3339(),
        text: it.text.to_string(),
        now: it.now,
        state: state.into(),
        delivered_at,
    }
}

//! The crew: one handler per path.

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::crew as words;
use super::map::{self, OwnError};
use super::ties::Taken;
use provost_api::{endpoints, wire};
use provost_base::{HandoffId, RepoPath};
use provost_domain::command::{AnswerTransfer, BeatCrew};
use provost_domain::view::{AtWork, HeldFiles, OneHandoff, SomeHandoffs};

impl Handles<endpoints::AtWork> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::AtWork> {
        let found = self.0.provost.view(AtWork(call.who.agent().clone())).await.map_err(map::fault)?;
        Ok(words::at_work(&found))
    }
}

impl Handles<endpoints::JoinCrew> for Own {
    async fn handle(&self, call: &Call, body: wire::JoinCrew) -> Answered<wire::Member> {
        let joined = self.submit(&call.who, words::join(body)?).await?;
        Ok(words::member(&joined.member))
    }
}

impl Handles<endpoints::BeatCrew> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::Done> {
        self.submit(&call.who, BeatCrew).await?;
        Ok(wire::Done { message: "heard".into() })
    }
}

impl Handles<endpoints::LeaveCrew> for Own {
    async fn handle(&self, call: &Call, body: wire::LeaveCrew) -> Answered<wire::LeftCrew> {
        let left = self.0.provost.leave_crew(&call.who, body.only_if_idle).await.map_err(map::fault)?;
        Ok(wire::LeftCrew { left: left.was_there })
    }
}

/// Returns the file's one spelling.
async fn file(own: &Own, path: &str) -> Result<RepoPath, OwnError> {
    let found = own.0.provost.file_of(path).await;
    found.ok_or_else(|| OwnError::invalid("path names no file of the repository"))
}

impl Handles<endpoints::ClaimFile> for Own {
    async fn handle(&self, call: &Call, body: wire::ClaimFile) -> Answered<wire::Claimed> {
        let file = file(self, &body.path).await?;
        let task = body.task.filter(|it| !it.is_empty()).map(Into::into);
        let done = self.0.provost.claim(&call.who, file, task).await.map_err(map::fault)?;
        if done.fresh {
            self.tie(&call.tied, &call.who, Taken::Claim(done.claim.file.clone(), done.claim.fence));
        }
        Ok(words::claimed(&done))
    }
}

impl Handles<endpoints::ReleaseClaim> for Own {
    async fn handle(&self, call: &Call, body: wire::ReleaseClaim) -> Answered<wire::Released> {
        let file = file(self, &body.path).await?;
        if body.force {
            return self.free_claim(call, file, body.fence).await;
        }
        let done = self.0.provost.release_claim(&call.who, file).await.map_err(map::fault)?;
        Ok(wire::Released { released: done.released })
    }
}

impl Handles<endpoints::Claims> for Own {
    async fn handle(&self, call: &Call, query: wire::ClaimsQuery) -> Answered<Vec<wire::HeldFile>> {
        let file = match &query.file {
            Some(path) => Some(file(self, path).await?),
            None => None,
        };
        let of = query.mine.then(|| call.who.agent().clone());
        let held = self.0.provost.view(HeldFiles { of, file }).await.map_err(map::fault)?;
        Ok(held.iter().filter_map(|it| words::held(it)).collect())
    }
}

impl Handles<endpoints::Handoffs> for Own {
    async fn handle(&self, call: &Call, query: wire::HandoffsQuery) -> Answered<Vec<wire::HandedOver>> {
        let wanted = SomeHandoffs { of: call.who.agent().clone(), answered: query.answered };
        let found = self.0.provost.view(wanted).await.map_err(map::fault)?;
        Ok(found.iter().map(|it| words::handed_over(it)).collect())
    }
}

impl Handles<endpoints::OfferHandoff> for Own {
    async fn handle(&self, call: &Call, body: wire::OfferHandoff) -> Answered<wire::HandedOver> {
        let offered = self.submit(&call.who, words::offer(body)?).await?;
        Ok(words::handed_over(&offered.transfer))
    }
}

impl Handles<endpoints::AnswerHandoff> for Own {
    // Only the agent that it is meant for answers it, and only once.
    async fn handle(&self, call: &Call, body: wire::AnswerHandoff) -> Answered<wire::HandedOver> {
        let unknown = || {
            OwnError::new(
                StatusCode::NOT_FOUND,
                "handoff_not_found",
                format!("there is no hand-off {}", body.id),
            )
            .hint("handoff_list shows those that wait for you")
        };
        let id = HandoffId::parse(&body.id).map_err(|_| unknown())?;
        let find = || async {
            let found = self.0.provost.view(OneHandoff(id.clone())).await.map_err(map::fault)?;
            found.ok_or_else(unknown)
        };
        words::may_answer(&*find().await?, call.who.agent())?;
        let reason = body.reason.clone().unwrap_or_default().into();
        let done =
            self.submit(&call.who, AnswerTransfer { id: id.clone(), accept: body.accept, reason }).await?;
        let now = find().await?;
        match done.answered {
            true => Ok(words::handed_over(&now)),
            false => {
                let message = format!("hand-off {id} was {} before", words::transfer_word(now.state));
                Err(OwnError::new(StatusCode::CONFLICT, "handoff_answered", message))
            }
        }
    }
}

//! Approvals: the list, and the answer of a person or an approver.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map;
use provost_api::{endpoints, wire};
use provost_domain::view::{AllPasskeys, Waiting};

impl Handles<endpoints::Approvals> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::Approval>> {
        let waiting = self.0.provost.view(Waiting).await.map_err(map::fault)?;
        let enrolled = self.0.provost.view(AllPasskeys).await.map_err(map::fault)?.enrolled;
        Ok(waiting.iter().map(|it| map::approval(it, enrolled)).collect())
    }
}

impl Handles<endpoints::AnswerApproval> for Own {
    async fn handle(&self, call: &Call, body: wire::Answer) -> Answered<wire::Answered> {
        if call.who.is_person() {
            // The list of passkeys may have become unreadable just now, and a rule that wants a passkey once there is one must know.
            self.look_at_passkeys().await;
        }
        let done = self.submit_judged(&call.who, map::answer(body)?).await?;
        let (task, failed) = (done.task.map(|it| it.to_string()), done.failed.map(Into::into));
        Ok(wire::Answered { task, failed })
    }
}

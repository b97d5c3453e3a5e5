//! The sayings to the agents of tasks while they work.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::talk;
use provost_api::{endpoints, wire};

impl Handles<endpoints::SayToTask> for Own {
    async fn handle(&self, call: &Call, body: wire::SayToTask) -> Answered<wire::Said> {
        let verb = talk::say(body)?;
        let task = verb.task.to_string();
        let done = self.submit(&call.who, verb).await?;
        Ok(wire::Said { task, number: done.number, waiting: done.waiting })
    }
}

//! The inbox of an agent: one handler per path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::inbox as words;
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::limits::INBOX_PAGE_MAX;
use provost_base::{MailSeq, PostSeq};
use provost_domain::MailKind;
use provost_domain::command::AddressAgent;
use provost_domain::post::slug;
use provost_service::Seen;

impl Handles<endpoints::SendMessage> for Own {
    // The caller is the sender, even if the message says otherwise.
    async fn handle(&self, call: &Call, body: wire::SendMessage) -> Answered<wire::Sent> {
        let me = call.who.agent().clone();
        let post = words::post(me, body)?;
        let to = words::recipient(&post);
        let waits = !self.0.provost.engine().inbox_index().has(&slug(&to));
        let published = self.0.provost.publish(&call.who, post).await.map_err(map::fault)?;
        Ok(wire::Sent { number: published.n.0, to, waits })
    }
}

impl Handles<endpoints::ReadInbox> for Own {
    // An agent that reads its inbox has one from then on.
    async fn handle(&self, call: &Call, body: wire::ReadInbox) -> Answered<wire::Inbox> {
        let provost = &self.0.provost;
        let agent = call.who.agent().clone();
        if !provost.engine().inbox_index().has(&slug(agent.as_str())) {
            provost.address(&call.who, AddressAgent { agent, cli: "".into() }).await.map_err(map::fault)?;
        }
        let seen = Seen { posts: PostSeq(body.posts_after), mail: MailSeq(body.mail_after) };
        let limit = body.limit.unwrap_or(INBOX_PAGE_MAX).clamp(1, INBOX_PAGE_MAX);
        let found =
            provost.inbox(&call.who, seen, limit, patience(body.wait_ms)).await.map_err(map::fault)?;
        Ok(wire::Inbox { entries: found.news.iter().map(words::entry).collect(), more: found.more })
    }
}

impl Handles<endpoints::TakeWork> for Own {
    // The next task for the caller as a worker. It is the caller's once this answer is made; if the answer gets
    // lost, the task is handed out again after a while.
    async fn handle(&self, call: &Call, body: wire::TakeWork) -> Answered<wire::Work> {
        let provost = &self.0.provost;
        let mail = provost.take_work(&call.who, patience(body.wait_ms)).await.map_err(map::fault)?;
        let Some(mail) = mail else { return Ok(wire::Work::default()) };
        Ok(match &mail.kind {
            MailKind::Work { task, payload } => {
                let task = provost.task(task).await.map_err(map::fault)?;
                let order = words::order(&task, payload, provost.root().place().path());
                wire::Work { order: Some(order), called_off: None }
            }
            kind => wire::Work { order: None, called_off: words::called_off(kind) },
        })
    }
}

impl Handles<endpoints::Picture> for Own {
    async fn handle(&self, call: &Call, query: wire::PictureQuery) -> Answered<wire::Picture> {
        let task = map::task_id(&query.task)?;
        let found = self.0.provost.picture(&call.who, &task, query.width).await.map_err(map::fault)?;
        let found = found.ok_or_else(|| {
            OwnError::new(StatusCode::CONFLICT, "no_picture", format!("task {task} has no picture"))
        })?;
        let (thumb, why) = match found.thumb {
            Ok(it) => {
                let png = STANDARD.encode(&it.png);
                (Some(wire::Thumb { png, width: it.width, height: it.height }), None)
            }
            Err(why) => (None, Some(why)),
        };
        let path = found.path.to_string_lossy().into_owned();
        Ok(wire::Picture { path, format: found.format, bytes: found.bytes, thumb, why })
    }
}

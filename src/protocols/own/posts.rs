//! Messages between agents: one handler per path.

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError, inbox};
use crate::broker::{entry, read, sentence};
use provost_api::{endpoints, wire};
use provost_base::PostSeq;
use provost_base::limits::{OVERLAPS_MAX, POLL_BYTES_MAX};
use provost_domain::command::BeginLog;
use provost_domain::post::slug;
use provost_domain::view::{OpenQuestions, Overlaps, Roster};
use provost_domain::{Refusal, Reservation, Scope};
use provost_service::{ChangedSide, Difference, FoundMeeting, Letters, StoredPost};

impl Handles<endpoints::PublishPost> for Own {
    // The user may speak for any agent; an agent for those without a key or token.
    async fn handle(&self, call: &Call, body: wire::PublishPost) -> Answered<wire::PostPublished> {
        let message = body.message;
        let letterboxes = self.0.provost.engine().inbox_index();
        let now = self.0.provost.engine().now();
        // The name of a branch may be a single word, and is its agent's name.
        let sender = message.get("agent_id").and_then(|it| it.as_str()).map(slug);
        let post = read(message, now, &self.0.provost.checkouts(None), |it| {
            letterboxes.has(it) || call.who.may(Scope::Operate) || sender.as_ref() == Some(it)
        });
        let post = post.map_err(|(status, why)| {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            OwnError::new(status, "invalid", why).hint("`provost broker skill` shows what messages look like")
        })?;
        self.check_other(&call.who, post.sender())?;
        let published = self.0.provost.publish(&call.who, post).await.map_err(map::fault)?;
        Ok(wire::PostPublished { seq: published.n.0 })
    }
}

impl Handles<endpoints::Posts> for Own {
    async fn handle(&self, call: &Call, query: wire::PostsQuery) -> Answered<wire::Posts> {
        let provost = &self.0.provost;
        let since = PostSeq(query.since.unwrap_or(0));
        let which = match query.inbox {
            Some(name) => {
                self.check_other(&call.who, &map::agent(&name, "inbox")?)?;
                let to = slug(&name);
                if query.wait_ms.is_some_and(|it| it > 0) {
                    provost.letter_after(&to, since, patience(query.wait_ms)).await;
                }
                Letters::In(to, since)
            }
            None if query.before.is_some() || (query.limit.is_some() && query.since.is_none()) => {
                Letters::Before(PostSeq(query.before.unwrap_or(u64::MAX)))
            }
            None => query.since.map_or(Letters::Newest, |_| Letters::After(since)),
        };
        // People read only a fraction of the messages that fit into an answer.
        let most = query.limit.unwrap_or(usize::MAX).max(1);
        let letters = provost.letters_at_most(most, which, POLL_BYTES_MAX / 4).await.map_err(map::fault)?;
        let last_seq = letters.last().map_or(since.0, |it| it.n.0);
        Ok(wire::Posts { posts: letters.into_iter().map(shown).collect(), last_seq })
    }
}

fn shown(letter: StoredPost) -> wire::Post {
    let (at, from) = (letter.at.rfc3339(), letter.post.sender().to_string());
    let (kind, said) = (letter.post.kind().into(), inbox::said(&letter.post));
    let to = letter.post.recipient().map(|it| it.as_str().to_owned());
    let proof = serde_json::to_value(letter.proof).ok().and_then(|it| it.as_str().map(str::to_owned));
    let entry = entry(letter);
    wire::Post {
        seq: entry.seq,
        at,
        text: sentence(&entry.message),
        message: serde_json::to_value(&entry.message).unwrap_or_default(),
        kind,
        from,
        to,
        said,
        proof,
    }
}

impl Handles<endpoints::Roster> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::RosterRow>> {
        let (people, _) = self.0.provost.view(Roster).await.map_err(map::fault)?;
        let rows = people.iter().filter_map(|it| {
            let row = it.row.as_ref()?;
            Some(wire::RosterRow {
                agent: it.slug.as_str().into(),
                status: row.label.as_ref().into(),
                phase: row.phase.as_deref().map(Into::into),
                cli: it.cli.as_deref().unwrap_or_default().into(),
                last_seen: row.seen.rfc3339(),
            })
        });
        Ok(rows.collect())
    }
}

impl Handles<endpoints::Questions> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::Question>> {
        let open = self.0.provost.view(OpenQuestions).await.map_err(map::fault)?;
        let shown = |it: &std::sync::Arc<provost_domain::post::Question>| wire::Question {
            seq: it.n.0,
            agent: slug(it.agent.as_str()).as_str().into(),
            text: it.text.as_ref().into(),
            at: it.at.rfc3339(),
        };
        Ok(open.iter().map(shown).collect())
    }
}

impl Handles<endpoints::Overlaps> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::Overlap>> {
        let found = self.0.provost.view(Overlaps(OVERLAPS_MAX)).await.map_err(map::fault)?;
        let shown = |it: provost_domain::Overlap| wire::Overlap {
            file: it.file.into(),
            agents: [it.a.into(), it.b.into()],
        };
        Ok(found.into_iter().map(shown).collect())
    }
}

impl Handles<endpoints::Meetings> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::Meeting>> {
        let found = self.0.provost.meetings().await.map_err(map::fault)?;
        let shown = |it: FoundMeeting| wire::Meeting {
            file: it.at,
            severity: it.severity.as_str().into(),
            sides: it.sides.iter().map(|it| side(it)).collect(),
        };
        Ok(found.into_iter().map(shown).collect())
    }
}

fn side(it: &Reservation) -> wire::MeetingSide {
    wire::MeetingSide {
        agent: it.agent.to_string(),
        kind: it.kind.as_str().into(),
        asked: it.asked.to_string(),
        symbols: it.part.names.iter().map(ToString::to_string).collect(),
        lines: it.part.lines.clone(),
        since: it.since.rfc3339(),
        until: it.until.map(|it| it.rfc3339()),
    }
}

impl Handles<endpoints::BothChanges> for Own {
    async fn handle(&self, _call: &Call, query: wire::BothChangesQuery) -> Answered<Vec<wire::ChangedSide>> {
        let file = map::coordinate::path(&query.file, "file")?;
        let mut sides = Vec::new();
        for (name, member) in [(&query.one, "one"), (&query.other, "other")] {
            let agent = map::agent(name, member)?;
            let side = self.0.provost.changed_side(agent, file.clone()).await.map_err(map::fault)?;
            sides.push(changed_side(side));
        }
        Ok(sides)
    }
}

fn changed_side(it: ChangedSide) -> wire::ChangedSide {
    let side =
        wire::ChangedSide { agent: it.agent.to_string(), branch: it.branch, ..wire::ChangedSide::default() };
    match it.changed {
        Ok(Difference { text, added, removed, .. }) => {
            wire::ChangedSide { diff: Some(text), added, removed, ..side }
        }
        Err(why) => wire::ChangedSide { why_not: Some(why), ..side },
    }
}

impl Handles<endpoints::PurgePosts> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::LogBegun> {
        // A model must not end other agents' messages, not even one that omits its name.
        if !call.who.operates() {
            return Err(map::fault(Refusal::OutOfScope { needs: Scope::Operate }));
        }
        Ok(wire::LogBegun { after: self.submit(&call.who, BeginLog).await?.after.0 })
    }
}

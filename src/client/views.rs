//! The requests behind each view: answers of the own API, which `view` turns into blocks for the page, the screen in a terminal and lists.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, ClientError};
use provost_api::wire;
use provost_auth::role;
use provost_base::limits::{
    WEB_APPLIES_SHOWN, WEB_DECISIONS_SHOWN, WEB_EVENTS_LOOKED_AT, WEB_EVENTS_PAGE, WEB_FINISHED_PAGE,
    WEB_MESSAGES_PAGE, WEB_ROWS_MAX,
};
use provost_base::{Timestamp, visible};
use provost_view::{self as view, AgentSources, Filter, HeldSources, NeedSources, Shown};

/// An event about an approval: its moment, the agent or person behind it, and the outcome in words.
pub type Became = (String, String, String);

/// The time that a list waits for the moment of the last decision, which comes from the search index.
const LAST_DECISION_WAIT: Duration = Duration::from_millis(300);

fn of_tasks(filter: &str, limit: usize) -> wire::TasksQuery {
    wire::TasksQuery { filter: Some(filter.into()), limit: Some(limit), before: None }
}

/// Returns nothing instead of what a store has that is known not to answer at present.
fn unless_broken<T: Default>(answer: Result<T, ClientError>, is_broken: bool) -> Result<T, ClientError> {
    match answer {
        Err(ClientError::Refused { status: 503, .. }) if is_broken => Ok(T::default()),
        answer => answer,
    }
}

impl Client {
    /// Returns the view of things that need a person, with the daemon's report about itself.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_needs(&self, about: wire::About, now: Timestamp) -> Result<Shown, ClientError> {
        let (everyones, finished) = (wire::Whose::default(), of_tasks("finished", WEB_FINISHED_PAGE));
        let merges = wire::MergesQuery::default();
        // What waits for a person is shown also while the store, which alone has finished tasks, does not answer: a note says so.
        let is_broken = about.broken.is_some();
        let finished = async { unless_broken(self.tasks(&finished).await.map(|it| it.finished), is_broken) };
        let merges = async { unless_broken(self.merges(&merges).await.map(|it| it.entries), is_broken) };
        let (approvals, questions, roster, overlaps, locks, finished, merges, agents) = tokio::try_join!(
            self.approvals(),
            self.questions(),
            self.roster(),
            self.overlaps(),
            self.locks(&everyones),
            finished,
            merges,
            self.agents(),
        )?;
        let is_calm = approvals.is_empty() && questions.is_empty();
        let last_decision = if is_calm { self.last_decision().await } else { None };
        let notes = about.broken.into_iter().chain(about.notes).collect();
        let (waiting, locks, workers) = (locks.waiting, locks.locks, about.workers);
        let from = NeedSources {
            approvals,
            questions,
            roster,
            overlaps,
            waiting,
            finished,
            merges,
            agents,
            locks,
            workers,
            notes,
            last_decision,
        };
        Ok(view::needs(from, now.0))
    }

    /// Returns the moment at which an approval was last answered or expired; `None` where the search index finds none
    /// or does not answer in time: no list waits for it.
    async fn last_decision(&self) -> Option<String> {
        let one = |kind: &str| wire::SearchQuery {
            words: kind.into(),
            only: Some("events".into()),
            limit: Some(WEB_DECISIONS_SHOWN),
            ..wire::SearchQuery::default()
        };
        let (answered, expired) = (one("approval_answered"), one("approval_expired"));
        let asked = async { tokio::join!(self.search(&answered), self.search(&expired)) };
        let (answered, expired) = tokio::time::timeout(LAST_DECISION_WAIT, asked).await.ok()?;
        let found = [(answered, "approval_answered"), (expired, "approval_expired")].into_iter();
        let moments = found.filter_map(|(found, kind)| {
            // The word may also stand in an event of another kind.
            let hit = found.ok()?.hits.into_iter().find(|it| it.what == kind)?;
            Some((hit.seq, hit.at))
        });
        moments.max().map(|(_, at)| at)
    }

    /// Returns a page of tasks, from the beginning or after a task; `typed` is the filter as the person typed it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_tasks(
        &self,
        filter: &Filter,
        typed: &str,
        after: Option<String>,
    ) -> Result<Shown, ClientError> {
        let older = after.is_some();
        let asked = wire::TaskPageQuery { after, ..filter.task_query() };
        match self.task_page(&asked).await {
            Ok(found) => Ok(view::task_page(&found, filter, typed, older)),
            // An unknown state matches no task.
            Err(ClientError::Refused { status: 400, .. }) if !older => {
                Ok(view::task_page(&wire::TaskPage::default(), filter, typed, older))
            }
            Err(err) => Err(err),
        }
    }

    /// Returns the view of one task.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_task(&self, id: &str) -> Result<Shown, ClientError> {
        let asked = wire::TaskQuery { id: id.to_owned(), ..wire::TaskQuery::default() };
        let task = self.task(&asked).await?;
        let mut shown = view::task(&task);
        if task.changes.is_some() {
            let applies = self.applies().await?;
            let own: Vec<&wire::Apply> =
                applies.iter().filter(|it| it.task.as_ref() == Some(&task.id)).collect();
            shown.blocks.extend((!own.is_empty()).then(|| view::applies(&own, WEB_APPLIES_SHOWN)));
        }
        Ok(shown)
    }

    /// Returns the view of agents, with their activity.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_agents(&self, filter: &Filter) -> Result<Shown, ClientError> {
        let (everyones, active) = (wire::Whose::default(), of_tasks("active", WEB_ROWS_MAX));
        let all = wire::ClaimsQuery::default();
        let (mut known, locks, live, claims, intents, waits) = tokio::try_join!(
            self.agents(),
            self.locks(&everyones),
            self.tasks(&active),
            self.claims(&all),
            self.intents(&everyones),
            self.waits(),
        )?;
        // The page itself is not shown as an agent.
        known.retain(|it| it.id != role::PAGE);
        let from = AgentSources {
            known,
            locks: Some(locks),
            claims,
            intents,
            waits: waits.waits,
            live: live.active,
        };
        Ok(view::agents(&from, filter, WEB_ROWS_MAX))
    }

    /// Returns the view of locks, the agents that wait for them, and claimed files.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_locks(&self, filter: &Filter, now: Timestamp) -> Result<Shown, ClientError> {
        let (everyones, all) = (wire::Whose::default(), wire::ClaimsQuery::default());
        let (locks, claims, intents) =
            tokio::try_join!(self.locks(&everyones), self.claims(&all), self.intents(&everyones))?;
        let from = HeldSources { locks: &locks, claims: &claims, intents: &intents };
        let mut shown = view::locks(from, filter, WEB_ROWS_MAX, &now.rfc3339());
        if let Some(place) = filter.way() {
            shown.blocks.splice(0..0, self.in_the_way(place).await?);
        }
        Ok(shown)
    }

    /// Returns the agents in the way of a change to a file or to a symbol in it, and the symbol's callers.
    async fn in_the_way(&self, place: &str) -> Result<Vec<view::Block>, ClientError> {
        let (file, symbol) = place.split_once(':').unwrap_or((place, ""));
        let symbols = if symbol.is_empty() { Vec::new() } else { vec![symbol.to_owned()] };
        let asked = wire::CheckConflicts { files: vec![file.to_owned()], symbols, worktree: None };
        let found = match self.check_conflicts(&asked).await {
            Ok(found) => found,
            // While a person types, the text is not a place yet.
            Err(ClientError::Refused { status: 400..=422, fault }) => {
                return Ok(vec![view::no_way(&fault.message)]);
            }
            Err(err) => return Err(err),
        };
        let callers = match symbol.is_empty() {
            true => None,
            false => match self.callers(&wire::GraphQuery { symbol: place.to_owned() }).await {
                Ok(found) => Some(Ok(found)),
                Err(ClientError::Refused { fault, .. }) => Some(Err(fault.message)),
                Err(err) => return Err(err),
            },
        };
        Ok(view::in_the_way(place, &found, callers.as_ref().map(Result::as_ref)))
    }

    /// Returns the view of waits, each with its reason and the agents ahead.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_waits(&self, filter: &Filter) -> Result<Shown, ClientError> {
        Ok(view::waits(&self.waits().await?, filter, WEB_ROWS_MAX))
    }

    /// Returns the view of events before a number, or of the newest up to `head`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_events(
        &self,
        filter: &Filter,
        before: Option<u64>,
        head: u64,
    ) -> Result<Shown, ClientError> {
        let before = before.unwrap_or_else(|| head.saturating_add(1));
        let most = before.saturating_sub(1).min(u64::from(WEB_EVENTS_PAGE));
        let after = before.saturating_sub(1).saturating_sub(most);
        let asked = wire::EventsQuery { after: Some(after), limit: u16::try_from(most).ok(), wait_ms: None };
        let mut page = self.events(&asked).await?;
        page.events.retain(|it| it.get("seq").and_then(Value::as_u64).is_some_and(|seq| seq < before));
        Ok(view::events(&page.events, filter))
    }

    /// Returns the view of intents, and of places where agents are in each other's way.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_intents(&self, filter: &Filter) -> Result<Shown, ClientError> {
        let (everyones, all) = (wire::Whose::default(), wire::ContractsQuery::default());
        let (met, overlaps, contracts, intents) = tokio::try_join!(
            self.meetings(),
            self.overlaps(),
            self.contracts(&all),
            self.intents(&everyones),
        )?;
        Ok(view::intents(&met, &overlaps, &contracts, &intents, filter, WEB_ROWS_MAX))
    }

    /// Returns the view of unanswered questions, and of messages before a number or of the newest.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_messages(&self, filter: &Filter, before: Option<u64>) -> Result<Shown, ClientError> {
        let asked =
            wire::PostsQuery { before, limit: Some(WEB_MESSAGES_PAGE), ..wire::PostsQuery::default() };
        let (questions, posts, mut agents) =
            tokio::try_join!(self.questions(), self.posts(&asked), self.agents())?;
        // The page itself is not shown as an agent.
        agents.retain(|it| it.id != role::PAGE);
        let mut shown = view::messages(&questions, &posts.posts, filter, WEB_MESSAGES_PAGE, before.is_some());
        if before.is_none() {
            shown.blocks.extend(view::to_all(&agents));
        }
        Ok(shown)
    }

    /// Returns the view of an approval that does not wait any more; its outcome is looked for among the newest events up to `head`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_gone(
        &self,
        id: u64,
        head: u64,
        known: Option<&wire::Passkeys>,
    ) -> Result<Shown, ClientError> {
        let mut said = Vec::new();
        let mut after = head.saturating_sub(WEB_EVENTS_LOOKED_AT);
        loop {
            let asked = wire::EventsQuery { after: Some(after), ..wire::EventsQuery::default() };
            let page = self.events(&asked).await?;
            said.extend(page.events.iter().filter_map(|event| became(event, id, known)));
            if page.events.is_empty() || page.next >= head {
                return Ok(view::gone(id, &said));
            }
            after = page.next;
        }
    }

    /// Says who has answered an approval that does not wait any more, when and how. `None` where none of the newest
    /// thousands of events is about it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn what_became(&self, id: u64) -> Result<Option<String>, ClientError> {
        let (about, known) = tokio::try_join!(self.about(), self.passkeys())?;
        let head = about.journal_seq;
        let (mut after, mut last) = (head.saturating_sub(WEB_EVENTS_LOOKED_AT), None);
        loop {
            let asked = wire::EventsQuery { after: Some(after), ..wire::EventsQuery::default() };
            let page = self.events(&asked).await?;
            let all = page.events.iter().filter_map(|event| became(event, id, Some(&known)));
            for (at, who, what) in all.filter(|(_, _, what)| what != view::ASKED) {
                let was = if what.contains("(proof: ") { "it was answered" } else { "it has gone" };
                last.get_or_insert_with(|| format!("{was}: {what}, by {who}, at {at}"));
            }
            if page.events.is_empty() || page.next >= head {
                return Ok(last);
            }
            after = page.next;
        }
    }

    /// Answers an agent in its inbox: with an answer, and for agents of git-paw with the feedback message that they know.
    /// Returns the number of the answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn answer_agent(
        &self,
        (from, agent): (&str, &str),
        text: &str,
        about: Option<&wire::Question>,
    ) -> Result<u64, ClientError> {
        let mut payload = json!({ "from": from, "answer": text });
        if let Some(question) = about {
            payload["re"] = json!(question.text);
        }
        let answer = json!({ "type": "agent.answer", "agent_id": agent, "payload": payload });
        let mut faults = json!({ "from": from, "errors": [text] });
        if let Some(question) = about {
            faults["re"] = json!(question.text);
        }
        let feedback = json!({ "type": "agent.feedback", "agent_id": agent, "payload": faults });
        let seq = self.publish_post(&wire::PublishPost { message: answer }).await?.seq;
        self.publish_post(&wire::PublishPost { message: feedback }).await?;
        Ok(seq)
    }
}

/// Reads an event about an approval; a passkey is named where its name is known.
pub fn became(event: &Value, id: u64, known: Option<&wire::Passkeys>) -> Option<Became> {
    let (kind, about) = event.get("kind")?.as_object()?.iter().next()?;
    if about.get("approval")?.as_u64()? != id {
        return None;
    }
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = match kind.as_str() {
        "approval_asked" | "approval_asked_again" => view::ASKED.to_owned(),
        "approval_answered" => {
            let credential = about.get("signed").map(|it| text(it, "credential"));
            let key = known.and_then(|it| it.passkeys.iter().find(|it| Some(&it.id) == credential.as_ref()));
            let key = key.map(|it| format!(", {}", visible(&it.name))).unwrap_or_default();
            format!("{} (proof: {}{key})", text(about, "verdict"), text(about, "proof"))
        }
        "approval_expired" => "expired, which denies it".to_owned(),
        "grant_failed" => format!("granted, and not carried out: {}", text(about, "why")),
        "task_delegated" => format!("carried out as task {}", text(about, "task")),
        other => other.replace('_', " "),
    };
    Some((text(event, "at"), text(event, "actor"), what))
}

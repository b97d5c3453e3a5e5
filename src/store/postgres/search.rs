//! The search by words: tasks, messages between agents, and events.
//!
//! Words are split and folded here in the same way as SQLite's `unicode61 remove_diacritics 2`, and not by a
//! dictionary of the server: runs of letters and digits, in lower case, without accents. The index has each word
//! once, for AND and for prefixes; the words in their order are stored beside it, since a text with other
//! characters in it is a phrase. Thus a search finds the same in both stores.

use std::time::Duration;

use tokio_postgres::Row;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::session::{Session, Step};
use super::unreadable;
use crate::StoreError;
use crate::codec::{int, nat, parse};
use crate::said::{said_in, what_of, words_of};
use crate::search::{Found, Hit, HitKind, SearchQuery, SearchWords};
use provost_base::limits::{INDEX_BITE_BYTES_MAX, SEARCH_LOOKED_AT_MAX, TURN_MS_MAX};
use provost_base::{AgentId, EventSeq, TaskId, Timestamp};
use provost_domain::{Event, EventKind, Task};

/// The highest length of a word in the index, in characters: PostgreSQL's limit is 2,046 bytes.
const WORD_MAX: usize = 400;

/// The separator between two texts, so that no phrase crosses their border.
const BORDER: &str = " | ";

/// Returns the words of a text, in their order.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word) = (Vec::new(), String::new());
    for sign in text.chars() {
        if sign.is_alphanumeric() {
            word.extend(folded(sign));
        } else if !is_combining_mark(sign) && !word.is_empty() {
            // A combining mark belongs to the letter before it, and is left out like the accent of a single character.
            all.push(std::mem::take(&mut word));
        }
    }
    if !word.is_empty() {
        all.push(word);
    }
    all
}

/// Returns a letter in lower case, without its marks.
fn folded(sign: char) -> impl Iterator<Item = char> {
    sign.to_lowercase().flat_map(|it| {
        let mut parts = it.nfd();
        match (parts.next(), parts.all(is_combining_mark)) {
            (Some(base), true) => base,
            _ => it,
        }
        .to_lowercase()
    })
}

/// Returns the index's form of some texts: their words, and their words in order.
fn indexed(texts: [&str; 2]) -> (Vec<String>, String) {
    let each = texts.map(words);
    let said = each.iter().map(|it| it.join(" ")).collect::<Vec<_>>().join(BORDER);
    let mut all: Vec<String> = each.into_iter().flatten().map(cut).collect();
    all.sort_unstable();
    all.dedup();
    (all, format!(" {said} "))
}

fn cut(word: String) -> String {
    match word.char_indices().nth(WORD_MAX) {
        Some((at, _)) => word[..at].to_owned(),
        None => word,
    }
}

/// Returns the query for the index, and the phrases that have to occur.
fn asked(query: &SearchWords) -> (String, Vec<String>) {
    let (mut terms, mut phrases) = (Vec::new(), Vec::new());
    for (text, is_beginning) in query.each() {
        let parts = words(text);
        for (n, part) in parts.iter().enumerate() {
            // A word has only letters and digits, so that it contains no sign of the index's or of the pattern's
            // own language.
            let open = if is_beginning && n + 1 == parts.len() { ":*" } else { "" };
            terms.push(format!("'{}'{open}", cut(part.clone())));
        }
        if parts.len() > 1 {
            phrases.push(format!("% {}{}%", parts.join(" "), if is_beginning { "" } else { " " }));
        }
    }
    (terms.join(" & "), phrases)
}

/// Rows in the index's form: their keys, their words, and their words in order.
type InIndex<K> = (Vec<K>, Vec<String>, Vec<String>);

/// Events and tasks in the index's form, as they were read.
pub(super) struct Portion {
    repo: i32,
    /// The last event of the portion.
    pub(super) last: EventSeq,
    /// Whether there may be further events.
    pub(super) is_more: bool,
    /// Events, by number.
    events: InIndex<i64>,
    /// Tasks in their present form, by id.
    tasks: InIndex<String>,
}

/// Reads up to `most` events after `from` and up to `upto`, and the tasks that they are about.
///
/// # Errors
/// If the database does not answer, or a row cannot be read.
pub(super) fn read(
    session: &mut Session,
    repo: i32,
    (from, upto): (EventSeq, EventSeq),
    most: u32,
) -> Result<Portion, StoreError> {
    // Each login can write rows behind the end of the journal.
    let sql = "select seq, kind, actor, task, body from provost.event where repo = $1 and seq > $2 and seq <= $3 order by seq limit $4";
    let step = Step::new(sql).with(repo).with(int(from.0)?).with(int(upto.0)?);
    // Commands wait meanwhile: no longer than for a turn.
    let limit = Duration::from_millis(TURN_MS_MAX);
    let rows = session.ask_within(&[step.with(i64::from(most))], limit)?.pop().unwrap_or_default();
    let (mut last, mut count, mut bytes) = (from, 0, 0_usize);
    let mut events: InIndex<i64> = Default::default();
    let mut tasks: Vec<String> = Vec::new();
    for row in &rows {
        if bytes >= INDEX_BITE_BYTES_MAX {
            break;
        }
        last = EventSeq(nat(row.try_get(0).map_err(unreadable)?)?);
        count += 1;
        // A pruned event has no body, and its task is gone or has later events.
        let Some(body) = row.try_get::<_, Option<&str>>(4).map_err(unreadable)? else { continue };
        bytes = bytes.saturating_add(body.len());
        let (kind, actor): (&str, &str) =
            (row.try_get(1).map_err(unreadable)?, row.try_get(2).map_err(unreadable)?);
        let said = words_of(&serde_json::from_str(body).map_err(StoreError::damaged)?);
        let (words, said) = indexed([&format!("{kind} {actor}"), &said]);
        events.0.push(int(last.0)?);
        events.1.push(words.join(" "));
        events.2.push(said);
        if let Some(task) =
            row.try_get::<_, Option<String>>(3).map_err(unreadable)?.filter(|it| !tasks.contains(it))
        {
            tasks.push(task);
        }
    }
    let is_more = count > 0 && (count == most || bytes >= INDEX_BITE_BYTES_MAX);
    Ok(Portion { repo, last, is_more, events, tasks: read_tasks(session, repo, tasks)? })
}

/// Reads tasks in their present form. A change of one that comes later is in a later portion.
fn read_tasks(session: &mut Session, repo: i32, tasks: Vec<String>) -> Result<InIndex<String>, StoreError> {
    let mut read: InIndex<String> = Default::default();
    if tasks.is_empty() {
        return Ok(read);
    }
    let sql = "select t.id, t.body from unnest($2::text[]) with ordinality as it (id, n)
               join provost.task t on t.repo = $1 and t.id = it.id order by it.n";
    let rows = session.rows(Step::new(sql).with(repo).with(tasks))?;
    for row in &rows {
        let task: Task = parse(row.try_get(1).map_err(unreadable)?)?;
        let (words, said) = indexed([&what_of(&task), &said_in(&task)]);
        read.0.push(row.try_get::<_, String>(0).map_err(unreadable)?);
        read.1.push(words.join(" "));
        read.2.push(said);
    }
    Ok(read)
}

impl Portion {
    /// Returns the statements that put the portion into the index, instead of earlier forms. Events up to `pruned_to` and tasks that were
    /// forgotten meanwhile stay out of it.
    ///
    /// # Errors
    /// If a number does not fit its column.
    pub(super) fn steps(self, pruned_to: EventSeq) -> Result<Vec<Step>, StoreError> {
        let (mut steps, repo) = (Vec::new(), self.repo);
        let (seqs, words, said) = self.events;
        if !seqs.is_empty() {
            let sql = "insert into provost.search_event (repo, seq, words, said)
                       select $1, seq, array_to_tsvector(string_to_array(words, ' ')), said
                       from unnest($2::bigint[], $3::text[], $4::text[]) as it (seq, words, said) where seq > $5
                       on conflict (repo, seq) do update set words = excluded.words, said = excluded.said";
            let step = Step::new(sql).with(repo).with(seqs).with(words).with(said);
            steps.push(step.with(int(pruned_to.0)?));
        }
        let (ids, words, said) = self.tasks;
        if !ids.is_empty() {
            let sql = "insert into provost.search_task (repo, id, words, said)
                       select $1, it.id, array_to_tsvector(string_to_array(it.words, ' ')), it.said
                       from unnest($2::text[], $3::text[], $4::text[]) with ordinality as it (id, words, said, n)
                       join provost.task t on t.repo = $1 and t.id = it.id order by it.n
                       on conflict (repo, id) do update set words = excluded.words, said = excluded.said";
            steps.push(Step::new(sql).with(repo).with(ids).with(words).with(said));
        }
        Ok(steps)
    }
}

/// Returns the rows with all words of a query, newest first.
///
/// # Errors
/// If the database does not answer, or a row cannot be read.
pub(super) fn search(session: &mut Session, repo: i32, query: &SearchQuery) -> Result<Found, StoreError> {
    let rows = session.rows(
        Step::new("select greatest(0, least(searched_to, event)) from provost.repo where id = $1").with(repo),
    )?;
    let to: i64 = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?.unwrap_or(0);
    let mut found = Found { indexed_to: EventSeq(nat(to)?), ..Found::default() };
    if query.takes(HitKind::Task) && query.before.is_none() {
        tasks(session, repo, query, &mut found)?;
    }
    if query.takes(HitKind::Message) || query.takes(HitKind::Event) {
        events(session, repo, query, &mut found)?;
    }
    Ok(found)
}

fn tasks(session: &mut Session, repo: i32, query: &SearchQuery, found: &mut Found) -> Result<(), StoreError> {
    let sql = "select t.body from provost.search_task s join provost.task t on t.repo = s.repo and t.id = s.id
               where s.repo = $1 and s.words @@ $2::text::tsquery and s.said like all ($3::text[]) order by s.n desc limit $4";
    let (terms, phrases) = asked(&query.words);
    let rows = session
        .rows(Step::new(sql).with(repo).with(terms).with(phrases).with(int(query.limit as u64 + 1)?))?;
    for row in &rows {
        if found.hits.len() == query.limit {
            found.more_tasks = true;
            break;
        }
        let task: Task = parse(row.try_get(0).map_err(unreadable)?)?;
        found.hits.push(Hit {
            kind: HitKind::Task,
            seq: None,
            post: None,
            at: task.updated_at,
            what: task.state.as_str().into(),
            actor: task.asked_by.clone(),
            excerpt: query.words.excerpt(&said_in(&task)).into(),
            task: Some(task.id().clone()),
        });
    }
    Ok(())
}

fn events(
    session: &mut Session,
    repo: i32,
    query: &SearchQuery,
    found: &mut Found,
) -> Result<(), StoreError> {
    let kind = match query.only {
        Some(HitKind::Message) => "and e.kind = 'published'",
        Some(HitKind::Event) => "and e.kind <> 'published'",
        _ => "",
    };
    let sql = format!(
        "select e.seq, e.at, e.kind, e.actor, e.task, e.body from provost.search_event s
         join provost.event e on e.repo = s.repo and e.seq = s.seq
         where s.repo = $1 and s.words @@ $2::text::tsquery and s.said like all ($3::text[]) and s.seq < $4 {kind}
         order by s.seq desc limit $5"
    );
    let before = query.before.and_then(|it| int(it.0).ok()).unwrap_or(i64::MAX);
    let (terms, phrases) = asked(&query.words);
    let limit = query.limit.min(SEARCH_LOOKED_AT_MAX) as u64 + 1;
    let rows =
        session.rows(Step::new(sql).with(repo).with(terms).with(phrases).with(before).with(int(limit)?))?;
    for (count, row) in rows.iter().enumerate() {
        let hit = hit(row, query)?;
        if count == query.limit {
            found.next = Some(EventSeq(nat(row.try_get(0).map_err(unreadable)?)? + 1));
            break;
        }
        found.hits.extend(hit);
    }
    Ok(())
}

fn hit(row: &Row, query: &SearchQuery) -> Result<Option<Hit>, StoreError> {
    let Some(body) = row.try_get::<_, Option<&str>>(5).map_err(unreadable)? else { return Ok(None) };
    let event = Event::from_json(body).map_err(StoreError::damaged)?;
    let (kind, post) = match &event.kind {
        EventKind::Published { n, .. } => (HitKind::Message, Some(*n)),
        _ => (HitKind::Event, None),
    };
    let task: Option<&str> = row.try_get(4).map_err(unreadable)?;
    let said = words_of(&serde_json::from_str(body).map_err(StoreError::damaged)?);
    Ok(Some(Hit {
        kind,
        seq: Some(EventSeq(nat(row.try_get(0).map_err(unreadable)?)?)),
        post,
        at: Timestamp(row.try_get(1).map_err(unreadable)?),
        what: row.try_get::<_, String>(2).map_err(unreadable)?.into(),
        actor: AgentId::parse(row.try_get(3).map_err(unreadable)?).map_err(StoreError::damaged)?,
        excerpt: query.words.excerpt(&said).into(),
        task: task.map(TaskId::parse).transpose().map_err(StoreError::damaged)?,
    }))
}

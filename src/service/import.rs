//! Imports the events of another daemon of Agent Protocol into the timeline, once.

use std::path::Path;

use super::{Provost, unreadable};
use provost_base::limits::{ID_LEN_MAX, NOTE_BYTES_MAX, PATH_LEN_MAX};
use provost_base::{AgentId, Json, RepoPath};
use provost_domain::command::TakeNotes;
use provost_domain::{Note, Origin, Principal, Refusal};
use provost_store::{ForeignEvent, StoreError, foreign_events};

/// The counts of an import.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Imported {
    /// The events that are new on the timeline.
    pub taken: u64,
    /// The events that were there already.
    pub known: u64,
    /// The events that do not have a valid form.
    pub unfit: u64,
}

/// The reason why an import failed or stopped.
#[derive(Debug)]
pub enum CallGraphImportError {
    /// The file cannot be read as such a database; a sentence for people.
    File(String),
    /// The core has refused.
    Refused(Refusal),
}

impl From<Refusal> for CallGraphImportError {
    fn from(refusal: Refusal) -> Self {
        CallGraphImportError::Refused(refusal)
    }
}

impl Provost {
    /// Imports the events of a database of the published server. It skips events that were imported before, so that
    /// an import can be repeated, and continued after a crash.
    ///
    /// # Errors
    /// [`CallGraphImportError`]; events that were imported before it stay.
    pub async fn import(&self, who: &Principal, file: &Path) -> Result<Imported, CallGraphImportError> {
        // The caller's right to import is checked before anything is read.
        self.take(who, Vec::new()).await?;
        let (mut so_far, mut last) = (Imported::default(), i64::MIN);
        loop {
            let path = file.to_owned();
            let read = tokio::task::spawn_blocking(move || foreign_events(&path, last)).await;
            let page = match read {
                Ok(Ok(page)) => page,
                Ok(Err(err)) => return Err(CallGraphImportError::File(said(&err))),
                Err(_) => return Err(Refusal::Stopping.into()),
            };
            let Some(end) = page.last().map(|it| it.row) else { return Ok(so_far) };
            last = end;
            let ids: Vec<String> = page.iter().map(|it| it.id.clone()).collect();
            let known = self.read(move |reader| reader.imported(&ids)).await?;
            let before = page.len();
            let fresh: Vec<ForeignEvent> = page.into_iter().filter(|it| !known.contains(&it.id)).collect();
            so_far.known += (before - fresh.len()) as u64;
            let notes: Vec<Note> = fresh.iter().filter_map(note).collect();
            so_far.unfit += (fresh.len() - notes.len()) as u64;
            so_far.taken += notes.len() as u64;
            self.take(who, notes).await?;
        }
    }

    async fn take(&self, who: &Principal, notes: Vec<Note>) -> Result<(), Refusal> {
        self.submit(who, TakeNotes { notes }).await.map(drop)
    }
}

fn said(err: &StoreError) -> String {
    let _logged = unreadable(err);
    err.to_string()
}

/// Converts an event to a note; `None` if the event does not have a valid form.
fn note(it: &ForeignEvent) -> Option<Note> {
    let fits =
        |text: &str| !text.is_empty() && text.len() <= ID_LEN_MAX && !text.chars().any(char::is_control);
    let agent = AgentId::parse(&it.agent).ok()?;
    if !fits(&it.id) || !fits(&it.action) {
        return None;
    }
    let metadata = it.metadata.as_deref().map_or_else(|| Json::parse("{}"), Json::parse).ok()?;
    let long = |it: &Option<String>, most| it.as_deref().is_some_and(|it| it.len() > most);
    let short = [&it.task, &it.before, &it.after];
    if long(&it.resource, PATH_LEN_MAX)
        || short.iter().any(|it| long(it, ID_LEN_MAX))
        || metadata.as_str().len() > NOTE_BYTES_MAX
    {
        return None;
    }
    let text = |it: &Option<String>| it.as_deref().map(Into::into);
    Some(Note {
        action: it.action.as_str().into(),
        plain: it.resource.as_deref().and_then(|it| RepoPath::parse(it).ok()),
        file: text(&it.resource),
        assignment: text(&it.task),
        before: text(&it.before),
        after: text(&it.after),
        metadata,
        origin: Some(Origin { id: it.id.as_str().into(), at: it.at, agent: agent.as_str().into() }),
    })
}

//! `provost search --all`: everything that contains all the words, in all repositories of the user. Each daemon
//! decides what it shows to the caller; one that does not answer in time is named, and delays no other.

use std::sync::Arc;

use serde::Serialize;

use super::cli_error::DONE;
use super::overview::{Repository, Running, each, failed, of_places};
use super::search::line;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::DAEMONS_ASKED_MAX;
use provost_base::shell_word;
use provost_client::ClientError;
use provost_config::daemons;
use provost_config::env::Environment;

/// A repository, and the search's results in it.
#[derive(Serialize)]
struct Searched {
    root: String,
    name: String,
    /// Whether the command was typed in it.
    here: bool,
    /// `answers`, or the state of one that does not answer, as `provost --json` prints it.
    state: &'static str,
    /// The reason, where it does not answer.
    why: Option<String>,
    /// The next command, if one helps.
    next: Option<String>,
    /// The results, if the daemon has answered.
    found: Option<wire::Found>,
}

/// All repositories, for programs.
#[derive(Serialize)]
struct Everywhere {
    /// Whether every daemon has answered.
    complete: bool,
    /// The number of daemons that were not asked, since there are too many.
    more: usize,
    repositories: Vec<Searched>,
}

impl Searched {
    fn of(it: Repository, found: Option<wire::Found>) -> Self {
        let Repository { root, name, here, state, why, next, .. } = it;
        Self { root, name, here, state, why, next, found }
    }

    /// Returns the beginning of commands for it.
    fn program(&self) -> String {
        match self.here {
            true => "provost".into(),
            false => format!("provost -C {}", shell_word(&self.root)),
        }
    }
}

/// An answer, or the refusal of words that no daemon accepts for a search.
type Answer = Result<Searched, ClientError>;

pub(super) fn search_all(here: &RepoContext, query: &wire::SearchQuery) -> Result<u8, CliError> {
    let environment = Environment::current();
    let (files, more) = daemons::files(&environment, DAEMONS_ASKED_MAX)?;
    let query = Arc::new(query.clone());
    let ask = move |it: Running| ask(it, Arc::clone(&query));
    let answers = each(files, &environment, Some(here), ask, |it| Ok(Searched::of(it, None)))?;
    let mut repositories = answers.into_iter().collect::<Result<Vec<_>, ClientError>>()?;
    repositories.sort_by(|a, b| b.here.cmp(&a.here).then_with(|| a.root.cmp(&b.root)));
    let complete = more == 0 && repositories.iter().all(|it| it.found.is_some());
    let everywhere = Everywhere { complete, more, repositories };
    if here.json {
        return out::json(&everywhere).map(|()| DONE);
    }
    told(&everywhere).map(|()| DONE)
}

async fn ask(it: Running, query: Arc<wire::SearchQuery>) -> Answer {
    match it.client.search(&query).await {
        Ok(found) => Ok(Searched::of(of_places(&it.places, it.here, "answers"), Some(found))),
        // All daemons parse words alike.
        Err(err @ ClientError::Refused { status: 400, .. }) => Err(err),
        Err(err) => Ok(Searched::of(failed(&it.places, it.here, err).await, None)),
    }
}

fn told(all: &Everywhere) -> Result<(), CliError> {
    let mut count = 0;
    for it in &all.repositories {
        let title = format!("{}  {}", out::one_line(&it.name, 60), out::one_line(&it.root, 400));
        let Some(found) = &it.found else {
            let why = out::one_line(it.why.as_deref().unwrap_or("it has said nothing"), 400);
            let next = it.next.as_ref().map(|it| format!("; try: {it}")).unwrap_or_default();
            out::note(format!("not searched: {title}: {why}{next}"));
            continue;
        };
        let run = it.program();
        if !found.hits.is_empty() {
            out::line(format!("== {title}"))?;
        }
        for hit in &found.hits {
            out::line(out::one_line(&line(hit, &run), 400))?;
        }
        count += found.hits.len();
        if found.more_tasks || found.next.is_some() {
            out::note(format!("there is more in {title}: {run} search WORDS"));
        }
        if found.not_yet > 0 {
            out::note(format!("the last {} events of {title} cannot be searched yet", found.not_yet));
        }
    }
    if all.more > 0 {
        out::note(format!("{} more daemons were not asked", all.more));
    }
    if count == 0 {
        out::note(match all.repositories.is_empty() {
            true => "no daemon of yours runs",
            false => "nothing has all of these words",
        });
    }
    Ok(())
}

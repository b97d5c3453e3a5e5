//! `provost search`: tasks, messages and events by the words in them.

use clap::{Args, ValueEnum};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out, search_all};
use provost_api::wire;
use provost_base::task_command;

/// `provost journal search`.
#[derive(Args, Debug)]
pub(super) struct Search {
    /// Words that all have to be there; words in quotation marks stand together, and log* is the beginning of a word
    #[arg(required = true)]
    words: Vec<String>,
    /// Search all of your repositories whose daemons run, each at the same time
    #[arg(long, conflicts_with = "before")]
    all: bool,
    /// Search only these
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Only messages and events before this number: the next page
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    /// The largest number of tasks, and of messages and events
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

/// The kind of things to search.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Only {
    /// Tasks: goals and reports
    Tasks,
    /// Messages between agents
    Messages,
    /// Other events of the journal
    Events,
}

pub(super) fn search(here: &RepoContext, asked: &Search) -> Result<u8, CliError> {
    let only = asked.only.map(|it| match it {
        Only::Tasks => "tasks",
        Only::Messages => "messages",
        Only::Events => "events",
    });
    let query = wire::SearchQuery {
        words: asked.words.join(" "),
        only: only.map(Into::into),
        before: asked.before,
        limit: Some(asked.limit),
    };
    if asked.all {
        return search_all::search_all(here, &query);
    }
    let found = wait_for(async { Ok(here.daemon(None).await?.search(&query).await?) })?;
    if here.json {
        return out::json(&found).map(|()| DONE);
    }
    for it in &found.hits {
        out::line(out::one_line(&line(it, "provost"), 400))?;
    }
    if found.hits.is_empty() {
        out::note("nothing has all of these words");
    }
    if found.more_tasks {
        out::note("there are more tasks: --limit shows more");
    }
    if let Some(next) = found.next {
        out::note(format!("there are more messages and events: --before {next}"));
    }
    if found.not_yet > 0 {
        out::note(format!("the last {} events cannot be searched yet", found.not_yet));
    }
    Ok(DONE)
}

/// Returns a hit as a line; `program` is the beginning of commands for its repository.
pub(super) fn line(it: &wire::Hit, program: &str) -> String {
    let at = short_time(&it.at);
    let about = it.task.as_deref().map(|task| format!(" (task {task})")).unwrap_or_default();
    match (it.kind.as_str(), &it.task) {
        ("task", Some(task)) => {
            let show = task_command("task show", task, "");
            let show = show.strip_prefix("provost").map_or(show.clone(), |rest| format!("{program}{rest}"));
            format!("{at}  task {task}, {} for {}: {}  [{show}]", it.what, it.actor, it.excerpt)
        }
        ("message", _) => {
            let number = it.message.map(|it| format!(" {it}")).unwrap_or_default();
            format!("{at}  message{number} of {}: {}", it.actor, it.excerpt)
        }
        _ => {
            let number = it.seq.map(|it| it.to_string()).unwrap_or_default();
            format!("{at}  event {number} {} by {}{about}: {}", it.what, it.actor, it.excerpt)
        }
    }
}

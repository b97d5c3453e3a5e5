//! `provost wait`: the waits of agents, with the agents ahead and the beginning of each.

use clap::{Args, Subcommand, ValueEnum};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out};
use provost_api::wire;

/// `provost wait`.
#[derive(Subcommand, Debug)]
pub(super) enum Wait {
    /// List who waits for what, longest first, and the circles of waiting that were refused in the last hour
    #[command(
        after_help = "Examples:\n  provost wait list\n  provost wait list --kind lock\n  provost wait list --agent client:claude --json\n\nNo agent waits for a claim: one that another agent has is refused at once."
    )]
    List(List),
    /// End an agent's wait for a lock or a resource; the daemon refuses what the agent has waited for
    #[command(after_help = "Example:\n  provost wait end 12")]
    End(End),
}

/// `provost wait end`.
#[derive(Args, Debug)]
pub(super) struct End {
    /// The number of its place, as `provost wait list` shows it
    ticket: u64,
}

/// `provost wait list`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// List only waits of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// List only waits of this agent, and those that depend on it
    #[arg(long)]
    agent: Option<String>,
}

/// The kind of a wait.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A symbol or file that another agent has locked
    Lock,
    /// A resource, such as a port
    Resource,
    /// An answer to an approval
    Approval,
    /// An answer to a question
    Answer,
    /// The end of a task
    Task,
    /// An agent that takes over work
    Handoff,
    /// An answer to a contract
    Contract,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Lock => "lock",
            Kind::Resource => "resource",
            Kind::Approval => "approval",
            Kind::Answer => "answer",
            Kind::Task => "task",
            Kind::Handoff => "handoff",
            Kind::Contract => "contract",
        }
    }
}

pub(super) fn wait(here: &RepoContext, asked: &Wait) -> Result<u8, CliError> {
    let asked = match asked {
        Wait::List(asked) => asked,
        Wait::End(End { ticket }) => {
            let asked = wire::EndWait { ticket: *ticket };
            let done = wait_for(async { Ok(here.daemon(None).await?.end_wait(&asked).await?) })?;
            if here.json {
                return out::json(&done).map(|()| DONE);
            }
            return out::line(out::one_line(&done.message, 400)).map(|()| DONE);
        }
    };
    let mut found = wait_for(async { Ok(here.daemon(None).await?.waits().await?) })?;
    let is_of = |it: &wire::Wait| {
        let agent = asked.agent.as_ref();
        asked.kind.is_none_or(|kind| kind.word() == it.kind)
            && agent.is_none_or(|agent| it.agent == *agent || it.by.contains(agent))
    };
    found.waits.retain(is_of);
    found.refused.retain(|it| {
        asked.kind.is_none_or(|kind| matches!(kind, Kind::Lock | Kind::Resource))
            && asked.agent.as_ref().is_none_or(|agent| it.members.contains(agent))
    });
    if here.json {
        return out::json(&found).map(|()| DONE);
    }
    if found.waits.is_empty() {
        out::note("no agent waits");
    } else {
        out::text_as_is(&table(&found.waits))?;
    }
    if found.more > 0 {
        out::note(format!("and {} more", found.more));
    }
    for it in &found.refused {
        let first = it.members.first().into_iter();
        let names: Vec<&str> = it.members.iter().chain(first).map(String::as_str).collect();
        let times = if it.times > 1 { format!(", {} times", it.times) } else { String::new() };
        let text = format!(
            "refused at {}{times}: {} for {}",
            short_time(&it.at),
            names.join(" waits for "),
            it.wanted
        );
        out::line(out::one_line(&text, 800))?;
    }
    Ok(DONE)
}

/// Says its place in line, and the number by which `provost wait end` ends it.
fn in_line(it: &wire::Wait) -> String {
    match (it.place, it.ticket) {
        (Some(place), Some(ticket)) => format!("{place} (number {ticket})"),
        (Some(place), None) => place.to_string(),
        (None, _) => "-".into(),
    }
}

fn table(waits: &[wire::Wait]) -> String {
    let mut rows = vec![["AGENT", "WAITS FOR", "WHAT", "DEPENDS ON", "IN LINE", "SINCE"].map(String::from)];
    rows.extend(waits.iter().map(|it| {
        let words = it.words.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
        [
            out::one_line(&it.agent, 40),
            out::one_line(&it.kind, 12),
            out::one_line(&format!("{}{words}", it.wanted), 60),
            out::one_line(&it.by.join(", "), 40),
            in_line(it),
            short_time(&it.since),
        ]
    }));
    out::table(&rows)
}

//! `provost merge`: shows what merging branches would do, and merges them into the trunk one after the other.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};

use super::cli_error::{DONE, INTERRUPTED, RETURNED};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::visible_name;
use provost_client::Client;

/// The time that one request waits for news, in milliseconds.
const WAIT_MS: u64 = 10_000;

/// Longest name in a line, in characters.
const NAME_CHARS: usize = 400;

/// Longest reason, in characters.
const WHY_CHARS: usize = 8_000;

/// `provost merge`.
#[derive(Subcommand, Debug)]
pub(super) enum Merge {
    /// Merge branches into the trunk, or show what would come of that
    #[command(
        after_help = "Examples:\n  provost merge feat/auth feat/log --preview\n  provost merge feat/auth feat/log\n  provost merge feat/auth --into release\n  provost merge branches queue   # a branch that is called so\n\nThe branches are merged in an order that is shown with its reasons, each is checked on the merged tree, and only then the trunk moves. One that conflicts is returned to the agent that made it, and the others go on.\n\nExit codes: 7 if a branch was set aside, or taken out of the queue meanwhile."
    )]
    Branches(Branches),
    /// Add branches to the queue of merges, list, remove and merge them
    #[command(
        subcommand,
        after_help = "Examples:\n  provost merge queue add feat/auth feat/log\n  provost merge queue list\n  provost merge queue remove feat/log\n  provost merge queue run --wait"
    )]
    Queue(Queue),
}

/// `provost merge queue`.
#[derive(Subcommand, Debug)]
pub(super) enum Queue {
    /// Add branches to the queue, at the commits that they name now
    #[command(
        after_help = "Examples:\n  provost merge queue add feat/auth feat/log\n  provost merge queue add feat/auth --into release --as coder\n\nAn agent may add branches as far as the rules for applies allow it; mostly a person has to approve it first."
    )]
    Add(Add),
    /// List what waits, and what was lately merged or set aside
    #[command(after_help = "Examples:\n  provost merge queue list\n  provost merge queue list --json")]
    List,
    /// Remove branches from the queue
    #[command(
        after_help = "Examples:\n  provost merge queue remove feat/log\n  provost merge queue remove feat/log --into release"
    )]
    Remove(Remove),
    /// Merge what waits, one branch after the other
    #[command(
        after_help = "Examples:\n  provost merge queue run\n  provost merge queue run --wait\n\nExit codes: 7 if a branch was set aside, or taken out of the queue, while this waited."
    )]
    Run(Run),
}

/// The objections that the person overrides.
#[derive(Args, Debug)]
pub(super) struct Passes {
    /// Also merge changes of files that run later, or that tell agents what to do
    #[arg(long)]
    with_settings: bool,
    /// Also merge changes of what agents hold by locks and claims
    #[arg(long)]
    with_held: bool,
    /// Also merge where symbols or contracts are in conflict
    #[arg(long)]
    with_symbols: bool,
    /// Do not run the configured checks
    #[arg(long)]
    no_checks: bool,
}

impl Passes {
    fn words(&self) -> Vec<String> {
        let all = [
            (self.with_settings, "settings"),
            (self.with_held, "held"),
            (self.with_symbols, "symbols"),
            (self.no_checks, "unchecked"),
        ];
        all.into_iter().filter(|(passes, _)| *passes).map(|(_, word)| word.to_owned()).collect()
    }
}

/// `provost merge branches`.
#[derive(Args, Debug)]
pub(super) struct Branches {
    /// The branches, by their names
    #[arg(required = true)]
    branches: Vec<String>,
    /// The branch into which they are merged; by default the one that is checked out in the workspace
    #[arg(long, value_name = "TRUNK")]
    into: Option<String>,
    /// Show the conflicts and the order, and merge nothing
    #[arg(long)]
    preview: bool,
    #[command(flatten)]
    passes: Passes,
}

/// `provost merge queue add`.
#[derive(Args, Debug)]
pub(super) struct Add {
    /// The branches, by their names, in the order in which they are merged
    #[arg(required = true)]
    branches: Vec<String>,
    /// The branch into which they are merged; by default the one that is checked out in the workspace
    #[arg(long, value_name = "TRUNK")]
    into: Option<String>,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    who: IdentityArgs,
}

/// `provost merge queue remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The branches, by their names
    #[arg(required = true)]
    branches: Vec<String>,
    /// The branch into which they were to be merged; needed where they wait for several
    #[arg(long, value_name = "TRUNK")]
    into: Option<String>,
    #[command(flatten)]
    who: IdentityArgs,
}

/// `provost merge queue run`.
#[derive(Args, Debug)]
pub(super) struct Run {
    /// Wait until all are merged or set aside
    #[arg(long)]
    wait: bool,
}

pub(super) fn merge(here: &RepoContext, asked: Merge) -> Result<u8, CliError> {
    match asked {
        Merge::Branches(it) => branches(here, &it),
        Merge::Queue(Queue::Add(it)) => add(here, &it),
        Merge::Queue(Queue::List) => list(here),
        Merge::Queue(Queue::Remove(it)) => remove(here, &it),
        Merge::Queue(Queue::Run(it)) => run(here, &it),
    }
}

fn branches(here: &RepoContext, asked: &Branches) -> Result<u8, CliError> {
    let (branches, into) = (asked.branches.clone(), asked.into.clone());
    wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, None)?).await?;
        let preview = client.preview_merge(&wire::MergeBranches { branches, into }).await?;
        if asked.preview {
            match here.json {
                true => out::json(&preview)?,
                false => show(&preview)?,
            }
            return Ok(DONE);
        }
        if !here.json {
            out::note(in_order(&preview).trim_end());
        }
        // A branch that the trunk contains already is queued too: its tasks are then recorded as merged.
        let request = wire::QueueMerges {
            branches: preview.branches.iter().map(|it| it.branch.clone()).collect(),
            commits: preview.branches.iter().map(|it| it.commit.clone()).collect(),
            into: Some(preview.into.clone()),
            passes: asked.passes.words(),
        };
        let moves = preview.branches.iter().any(|it| it.way != "merged");
        if moves && preview.checks.is_empty() && !asked.passes.no_checks {
            out::note(
                "no checks are configured: `merge.checks` in provost.toml names what is run on the merged tree",
            );
        }
        // This is asked before a branch is queued: otherwise the branch would stay in the queue, and its merge would be refused.
        if !client.who_am_i().await?.operates {
            return Err(CliError::refusal("an agent has spoken in this terminal, and a merge is a person's to start")
                .next("provost merge queue add BRANCH here, which asks for approval; or provost merge in another terminal"));
        }
        let queued = client.queue_merges(&request).await?;
        let only: Vec<u64> = entries(&queued)?.iter().map(|it| it.number).collect();
        let begun = client.run_merges(&wire::RunMerges { only }).await?;
        to_the_end(here, &client, &begun.numbers).await
    })
}

fn add(here: &RepoContext, asked: &Add) -> Result<u8, CliError> {
    let request = wire::QueueMerges {
        branches: asked.branches.clone(),
        commits: Vec::new(),
        into: asked.into.clone(),
        passes: asked.passes.words(),
    };
    let queued = wait_for(async { Ok(asked.who.daemon(here).await?.queue_merges(&request).await?) })?;
    if here.json {
        out::json(&queued)?;
        return if queued.state == "queued" { Ok(DONE) } else { entries(&queued).map(|_| DONE) };
    }
    for it in entries(&queued)? {
        let (branch, into) = (name(&it.branch), name(&it.into));
        out::line(format!(
            "{}: {branch} at {} waits to be merged into {into}",
            it.number,
            short(&it.commit)
        ))?;
    }
    out::note("merge what waits: provost merge queue run --wait");
    Ok(DONE)
}

/// Returns the entries of an answer, or the reason why it has none.
fn entries(queued: &wire::MergesQueued) -> Result<&[wire::Merge], CliError> {
    match queued.state.as_str() {
        "awaiting" => {
            let approval = queued.approval.unwrap_or_default();
            Err(CliError::refusal("this waits for approval")
                .because(format!("approval {approval}"))
                .next(super::approvals::then_again(approval)))
        }
        "denied" => {
            let word = |text: &Option<String>| out::one_line(text.as_deref().unwrap_or("unknown"), 400);
            Err(CliError::of("denied by policy")
                .because(format!("rule {}: {}", word(&queued.rule), word(&queued.reason)))
                .next("provost policy explain --action apply"))
        }
        _ => Ok(&queued.entries),
    }
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let query = wire::MergesQuery::default();
    let found = wait_for(async { Ok(here.daemon(None).await?.merges(&query).await?) })?;
    if here.json {
        return out::json(&found.entries).map(|()| DONE);
    }
    if found.entries.is_empty() {
        out::note("no branch waits to be merged: provost merge queue add BRANCH");
        return Ok(DONE);
    }
    let mut rows = vec![["NUMBER", "BRANCH", "INTO", "COMMIT", "BY", "STATE", "TOLD"].map(String::from)];
    rows.extend(found.entries.iter().map(row));
    out::text_as_is(&out::table(&rows))?;
    for it in found.entries.iter().filter(|it| it.why.is_some()) {
        out::text_as_is(&format!("\n{}", reason(it)))?;
    }
    Ok(DONE)
}

fn row(it: &wire::Merge) -> [String; 7] {
    let what = it.what.as_ref().map(|it| format!(": {}", out::one_line(it, 60))).unwrap_or_default();
    [
        it.number.to_string(),
        out::one_line(&it.branch, 60),
        out::one_line(&it.into, 40),
        short(&it.commit),
        out::one_line(&it.by, 40),
        format!("{}{what}", it.state.replace('_', " ")),
        it.told.as_deref().map_or("-".into(), |it| out::one_line(it, 40)),
    ]
}

fn remove(here: &RepoContext, asked: &Remove) -> Result<u8, CliError> {
    let request = wire::RemoveMerges { branches: asked.branches.clone(), into: asked.into.clone() };
    let done = wait_for(async { Ok(asked.who.daemon(here).await?.remove_merges(&request).await?) })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    out::line(format!("removed: {}", done.count))?;
    Ok(DONE)
}

fn run(here: &RepoContext, asked: &Run) -> Result<u8, CliError> {
    wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, None)?).await?;
        let begun = client.run_merges(&wire::RunMerges::default()).await?;
        if asked.wait && !begun.numbers.is_empty() {
            return to_the_end(here, &client, &begun.numbers).await;
        }
        if here.json {
            return out::json(&begun).map(|()| DONE);
        }
        match begun.numbers.len() {
            0 => out::line("no branch waits to be merged")?,
            count => out::line(format!("{count} to be merged; follow them: provost merge queue list"))?,
        }
        Ok(DONE)
    })
}

/// Watches entries until each is merged or set aside. Ctrl-C does not stop the run.
async fn to_the_end(here: &RepoContext, client: &Client, numbers: &[u64]) -> Result<u8, CliError> {
    tokio::select! {
        done = watch(here, client, numbers) => done,
        _interrupted = tokio::signal::ctrl_c() => {
            out::note("\nthe merge goes on\n  watch it: provost merge queue list");
            Ok(INTERRUPTED)
        }
    }
}

async fn watch(here: &RepoContext, client: &Client, numbers: &[u64]) -> Result<u8, CliError> {
    let mut query = wire::MergesQuery { seen: None, wait_ms: Some(WAIT_MS) };
    let (mut told, mut seen): (Vec<(u64, String)>, BTreeMap<u64, String>) = (Vec::new(), BTreeMap::new());
    let ended = loop {
        let now = client.merges(&query).await?;
        let ours: Vec<wire::Merge> =
            now.entries.into_iter().filter(|it| numbers.contains(&it.number)).collect();
        for it in &ours {
            let line = progress(it);
            let is_new = !told.iter().any(|(number, known)| *number == it.number && *known == line);
            if is_new && it.state != "waiting" && !here.json {
                match it.is_over() {
                    true => out::line(&line)?,
                    false => out::note(&line),
                }
            }
            told.retain(|(number, _)| *number != it.number);
            told.push((it.number, line));
        }
        seen.extend(ours.iter().map(|it| (it.number, name(&it.branch))));
        if ours.iter().all(wire::Merge::is_over) {
            break ours;
        }
        query.seen = Some(now.version);
    };
    if here.json {
        out::json(&ended)?;
    } else {
        for it in ended.iter().filter(|it| it.why.is_some()) {
            out::note(reason(it).trim_end());
        }
    }
    // An entry that has gone was not merged by this run.
    let gone: Vec<u64> =
        numbers.iter().copied().filter(|it| !ended.iter().any(|e| e.number == *it)).collect();
    for number in gone.iter().filter(|_| !here.json) {
        let branch = seen.get(number).cloned().unwrap_or_else(|| format!("entry {number}"));
        out::line(format!("{branch}: taken out of the queue meanwhile"))?;
    }
    let aside = ended.iter().filter(|it| it.state == "set_aside").count();
    let and_gone =
        if gone.is_empty() { String::new() } else { format!(", and {} were taken out", gone.len()) };
    match aside + gone.len() {
        0 => Ok(DONE),
        _ if here.json => Err(CliError::silent(RETURNED)),
        _ => Err(CliError::of(format!("{aside} of {} branches are set aside{and_gone}", numbers.len()))
            .with_code(RETURNED)
            .next("solve the problems above, then: provost merge queue add BRANCH")),
    }
}

fn progress(it: &wire::Merge) -> String {
    let branch = name(&it.branch);
    match (it.state.as_str(), &it.what, &it.trunk) {
        ("merged", _, Some(trunk)) => format!("{branch}: merged; {} is at {}", name(&it.into), short(trunk)),
        ("set_aside", Some(cause), _) => match &it.told {
            Some(agent) => {
                format!("{branch}: set aside ({}), returned to {}", out::one_line(cause, 40), name(agent))
            }
            None => {
                format!("{branch}: set aside ({}); no agent is told", out::one_line(cause, 40))
            }
        },
        (_, Some(step), _) => format!("{branch}: {}", out::one_line(step, 200)),
        (state, _, _) => format!("{branch}: {state}"),
    }
}

/// Says why an entry was set aside, or what else a person should know about it.
fn reason(it: &wire::Merge) -> String {
    let why = it.why.as_deref().unwrap_or_default();
    let lines = why.lines().map(|line| format!("  {}\n", out::one_line(line, WHY_CHARS)));
    format!("{}:\n{}", name(&it.branch), lines.collect::<String>())
}

fn name(text: &str) -> String {
    visible_name(text, NAME_CHARS)
}

fn short(commit: &str) -> String {
    out::one_line(commit.get(..12).unwrap_or(commit), 12)
}

/// Says in which order the branches would be merged, with the reasons.
fn in_order(preview: &wire::MergePreview) -> String {
    let mut text = format!("into {} at {}:\n", name(&preview.into), short(&preview.commit));
    for (at, it) in preview.branches.iter().enumerate() {
        let way = match it.way.as_str() {
            "merged" => "is in it already".to_owned(),
            _ => {
                let files = if it.files == 1 { "file" } else { "files" };
                let order = match it.reason.as_str() {
                    "as asked" => "in the order that was asked for".to_owned(),
                    reason => out::one_line(reason, 200),
                };
                format!("{} {files}, {order}", it.files)
            }
        };
        text.push_str(&format!("  {}. {} at {}: {way}\n", at + 1, name(&it.branch), short(&it.commit)));
    }
    text
}

fn show(preview: &wire::MergePreview) -> Result<(), CliError> {
    let mut text = in_order(preview);
    for it in &preview.branches {
        text.push_str(&about(it, &preview.into));
    }
    for pair in &preview.pairs {
        text.push_str(&format!("\n{} and {} collide:\n", name(&pair.one), name(&pair.other)));
        pair.conflicts.iter().for_each(|it| text.push_str(&conflict(it)));
    }
    if preview.pairs.is_empty() && preview.branches.len() > 1 {
        text.push_str("\nno two of the branches collide\n");
    }
    if !preview.whole {
        text.push_str("\nthe repository has more source files than are read: calls were looked for in changed files alone\n");
    }
    match preview.checks.is_empty() {
        true => text.push_str("\nno checks are configured (`merge.checks` in provost.toml)\n"),
        false => text.push_str(&format!("\nchecks: {}\n", out::one_line(&preview.checks.join(", "), 400))),
    }
    out::text_as_is(&text)
}

fn conflict(it: &wire::MergeConflict) -> String {
    format!("  {}: {}: {}\n", it.kind, name(&it.file), out::one_line(&it.text, 800))
}

/// Says what is wrong with one branch; empty where all is well.
fn about(it: &wire::MergeBranch, into: &str) -> String {
    let mut text = String::new();
    if !it.conflicts.is_empty() {
        text.push_str(&format!("  conflicts with {}:\n", name(into)));
        it.conflicts.iter().for_each(|it| text.push_str(&format!("  {}", conflict(it))));
    }
    let lists = [
        ("held", &it.held, ""),
        ("announced", &it.announced, ""),
        ("runs later", &it.settings, " (asks for --with-settings)"),
    ];
    for (what, list, more) in lists {
        list.iter().for_each(|it| text.push_str(&format!("  {what}: {}{more}\n", out::one_line(it, 400))));
    }
    if let (Some(owner), Some(by)) = (&it.owner, &it.owner_by) {
        let known = if it.owner_proven { "" } else { "; not proven" };
        text.push_str(&format!("  owner: {} (by {}{known})\n", name(owner), out::one_line(by, 80)));
    }
    if text.is_empty() { text } else { format!("\n{}:\n{text}", name(&it.branch)) }
}

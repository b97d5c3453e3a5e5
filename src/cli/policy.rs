//! `provost policy`: checks rules, tests them, and compares them with others. Reads files; asks no daemon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::cli_error::{DONE, FAILED, USAGE};
use super::repo_context::now;
use super::{CliError, RepoContext, database, out};
use provost_base::AgentId;
use provost_base::limits::{POLICY_LOOK_S, REPLAY_EVENTS_MAX, REPLAY_LAST, REPLAY_LAST_MAX, REPLAY_MS};
use provost_config::{Copies, Loaded, WorkerKind};
use provost_policy::{
    Case, Failed, Layer, LoadError, PASSKEY_MISSING, Problem, Request, RuleSet, SYSTEM_POLICY, Source,
    by_passkey_alone, check, diff, explain_request, is_passkey_alone, run_cases,
};
use provost_store as store;

/// `provost policy`.
#[derive(Subcommand, Debug)]
pub(super) enum Policy {
    /// Check rule files for mistakes, rules that can never decide, and failing examples
    #[command(after_help = "Examples:\n  provost policy check\n  provost policy check ./policy.toml")]
    Check(Check),
    /// Judge every request of a table of cases
    #[command(
        after_help = "Example:\n  provost policy test cases.toml\n\ncases.toml:\n  [[case]]\n  worker = \"shell\"\n  cwd = \"src\"\n  expect = \"allow\""
    )]
    Test(Test),
    /// Show how the rules would answer a request, and why
    #[command(
        after_help = "Examples:\n  provost policy explain --worker shell --dir src\n  provost policy explain --client mcp --door devit --proof shared_key --action screenshot\n  provost policy explain --action permission --tool Bash --command \"git status\""
    )]
    Explain(Explain),
    /// Show the requests that other rules would answer differently
    #[command(
        after_help = "Examples:\n  provost policy diff --replay --last 100 new.toml\n  provost policy diff builtin:strict --cases cases.toml"
    )]
    Diff(Diff),
}

/// `provost policy check`.
#[derive(Args, Debug)]
pub(super) struct Check {
    /// The rule files; by default those that a daemon would use
    #[arg(value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

/// `provost policy test`.
#[derive(Args, Debug)]
pub(super) struct Test {
    /// A file of `[[case]]` entries: a request, and `expect = "allow"`, `"approve"` or `"deny"`
    #[arg(value_hint = ValueHint::FilePath)]
    cases: PathBuf,
    /// The rules that answer: a file, or builtin:default, builtin:strict, builtin:open; by default the rules in force
    #[arg(long)]
    policy: Option<String>,
}

/// `provost policy explain`.
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The worker of the request
    #[arg(long, default_value = "shell")]
    worker: AgentId,
    /// The directory of the request, relative to the repository's root
    #[arg(long, default_value = ".")]
    dir: String,
    /// The asking agent; by default you
    #[arg(long)]
    client: Option<AgentId>,
    /// The door of the request: own, devit, wit, mcp or another of those that docs/policy.md names
    #[arg(long, default_value = "own")]
    door: String,
    /// The proof of the asking agent: person (a person at a terminal, terminal is the same), desktop, passkey, peer_uid, own_key,
    /// shared_key, token or jailed
    #[arg(long, default_value = "terminal")]
    proof: String,
    /// The kind of request: delegate, screenshot, apply, permission, approve or token
    #[arg(long, default_value = "delegate")]
    action: String,
    /// The tool of DevIt that the request names, or the tool of a host
    #[arg(long, default_value = "devit_delegate")]
    tool: String,
    /// The line that the tool would run
    #[arg(long)]
    command: Option<String>,
    /// The file that the tool would touch
    #[arg(long)]
    path: Option<String>,
    /// The rules that answer: a file, or builtin:default, builtin:strict, builtin:open; by default the rules in force
    #[arg(long)]
    policy: Option<String>,
}

/// `provost policy diff`.
#[derive(Args, Debug)]
pub(super) struct Diff {
    /// The other rules: a file, or builtin:default, builtin:strict, builtin:open
    new: String,
    /// The rules to compare with; by default the rules in force
    #[arg(long)]
    from: Option<String>,
    /// Judge the requests of this repository's newest decisions, as they are on record; this is the default
    #[arg(long, conflicts_with = "cases")]
    replay: bool,
    /// How many of the newest decisions are judged again
    #[arg(long, value_name = "NUMBER", default_value_t = REPLAY_LAST, conflicts_with = "cases",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=REPLAY_LAST_MAX as u64))]
    last: usize,
    /// Judge the requests of this table of cases
    #[arg(long, value_hint = ValueHint::FilePath)]
    cases: Option<PathBuf>,
}

pub(super) fn policy(here: &RepoContext, asked: Policy) -> Result<u8, CliError> {
    match asked {
        Policy::Check(it) => look_over(here, &it),
        Policy::Test(it) => test(here, &it),
        Policy::Explain(it) => explain(here, &it),
        Policy::Diff(it) => compare(here, &it),
    }
}

/// Returns the base of the rules that a daemon started now would use.
pub(super) fn base(here: &RepoContext, loaded: &Loaded) -> Result<Source, LoadError> {
    let named = loaded.config.policy.file.as_ref().map(|it| it.0.as_str());
    Source::base(named, &here.places.config.join("policy.toml"))
}

impl From<LoadError> for CliError {
    fn from(err: LoadError) -> Self {
        Self::of("these rules cannot be used").because(&err).next("provost policy check")
    }
}

/// Returns the rules that the command line names, or those in force.
fn rules(here: &RepoContext, named: Option<&str>) -> Result<RuleSet, CliError> {
    match named {
        // A file that a person names here is only judged, so it need not be trusted.
        Some(path) if !path.starts_with("builtin:") => {
            let layer = Layer::parse(&read(Path::new(path))?, path).map_err(LoadError::from)?;
            Ok(RuleSet::new(layer))
        }
        Some(builtin) => Ok(RuleSet::new(Source::base(Some(builtin), Path::new(""))?.load()?)),
        None => Ok(Source::load_layers(&base(here, &here.config(None)?)?, SYSTEM_POLICY.as_ref())?),
    }
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|e| {
        CliError::of(format!("{} cannot be read", path.display()))
            .because(e)
            .next("name a file that is there")
    })
}

fn look_over(here: &RepoContext, asked: &Check) -> Result<u8, CliError> {
    let texts = match asked.files.is_empty() {
        false => asked
            .files
            .iter()
            .map(|path| Ok((path.display().to_string(), read(path)?)))
            .collect::<Result<Vec<_>, CliError>>()?,
        true => in_force(here)?,
    };
    let any_passkey = super::passkeys::any_listed(here);
    let look_at = |(name, text): &'_ (String, String)| {
        let mut report = check(text, name);
        if !any_passkey {
            report.warnings.extend(by_passkey_alone(text, name));
        }
        report
    };
    let reports: Vec<_> = texts.iter().map(|it| (&it.0, look_at(it))).collect();
    let loads = reports.iter().all(|(_, report)| report.loads());
    if here.json {
        let lines = |problems: &[Problem]| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let row = |(name, report): &(&String, provost_policy::Report)| {
            json!({ "file": name, "loads": report.loads(), "rules": report.rules, "version": report.version,
                    "problems": lines(&report.problems), "warnings": lines(&report.warnings) })
        };
        out::json(&reports.iter().map(row).collect::<Vec<_>>())?;
    } else {
        for (name, report) in &reports {
            report.problems.iter().try_for_each(|it| out::line(out::plain(&format!("error: {it}"))))?;
            report.warnings.iter().try_for_each(|it| out::line(out::plain(&format!("warning: {it}"))))?;
            match report.version {
                Some(version) => {
                    out::line(format!("{name}: {} rules, version {}", report.rules, version.short()))?
                }
                None => out::line(format!("{name}: would be refused"))?,
            }
        }
        if asked.files.is_empty() && loads {
            out::line(counts(here))?;
        }
    }
    Ok(if loads { DONE } else { FAILED })
}

/// Says when these rules come into force.
fn counts(here: &RepoContext) -> String {
    let Ok(Some(about)) = super::up::running(here) else {
        return "no daemon runs: they count from its next start on".into();
    };
    let loaded = here.config(None).and_then(|loaded| Ok(base(here, &loaded)?));
    let rules = loaded.and_then(|source| Ok(Source::load_layers(&source, SYSTEM_POLICY.as_ref())?));
    match rules {
        Ok(rules) if rules.digest().to_string() == about.policy => "they are in force".into(),
        Ok(_) => {
            format!(
                "not in force yet: the daemon looks every {POLICY_LOOK_S} s, and `provost daemon reload` makes it look now"
            )
        }
        Err(_) => "the daemon keeps its present rules".into(),
    }
}

/// Returns names and texts of the rules that a daemon would use. Loading them checks whether they can be trusted.
fn in_force(here: &RepoContext) -> Result<Vec<(String, String)>, CliError> {
    let system = Path::new(SYSTEM_POLICY);
    let mut sources = vec![base(here, &here.config(None)?)?];
    sources.extend(system.exists().then(|| Source::File(system.to_owned())));
    let text = |source: Source| match source {
        Source::Builtin(builtin) => Ok((format!("builtin:{}", builtin.name()), builtin.text().to_owned())),
        Source::File(path) => {
            let text = read(&path)?;
            match Source::File(path.clone()).load() {
                // The report shows mistakes in the text.
                Ok(_) | Err(LoadError::Wrong(_)) => Ok((path.display().to_string(), text)),
                Err(err) => Err(err.into()),
            }
        }
    };
    sources.into_iter().map(text).collect()
}

fn cases(path: &Path) -> Result<Vec<Case>, CliError> {
    let name = path.display().to_string();
    Case::parse(&read(path)?, &name).map_err(|problems| {
        CliError::of(format!("{name} is not a table of cases"))
            .because(problems)
            .next("provost policy test --help")
    })
}

fn test(here: &RepoContext, asked: &Test) -> Result<u8, CliError> {
    let rules = rules(here, asked.policy.as_deref())?;
    let cases = cases(&asked.cases)?;
    let failed = run_cases(&rules, &cases);
    let row = |it: &Failed| {
        json!({ "case": it.case.name, "line": it.case.line, "expected": it.case.expect.name(),
                "rule": it.case.rule, "found": it.outcome })
    };
    if here.json {
        out::json(&json!({ "cases": cases.len(), "failed": failed.iter().map(row).collect::<Vec<_>>() }))?;
    } else {
        for it in &failed {
            let by = it.case.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
            let (place, expected) = (asked.cases.display(), it.case.expect.name());
            let line = format!(
                "{place}:{}: {}: expected {expected}{by}, found {}",
                it.case.line, it.case.name, it.outcome
            );
            out::line(out::one_line(&line, 1_000))?;
        }
        out::line(format!("{} of {} cases as expected", cases.len() - failed.len(), cases.len()))?;
    }
    Ok(if failed.is_empty() { DONE } else { FAILED })
}

fn explain(here: &RepoContext, asked: &Explain) -> Result<u8, CliError> {
    let request = request(here, asked)?;
    let explanation = explain_request(&rules(here, asked.policy.as_deref())?, &request);
    if here.json {
        out::json(&explanation)?;
    } else {
        let lines = explanation.to_string();
        // Conditions may list dozens of directories; `--json` and the file have all of them.
        lines.lines().try_for_each(|line| out::line(out::one_line_indented(line, out::width())))?;
        let outcome = &explanation.outcome;
        if is_passkey_alone(&outcome.by) && !super::passkeys::any_listed(here) {
            out::note(format!("rule `{}` {PASSKEY_MISSING}", outcome.rule));
        }
        if asked.action == "permission" && outcome.rule.as_str() == "no-rule" {
            out::note(
                "no rule speaks of it, so the daemon says nothing: the agent's host asks its own person",
            );
        }
        if asked.action == "delegate" && !here.places.root.join(&asked.dir).is_dir() {
            out::note(format!(
                "there is no folder {}: a delegation there is refused before the rules are asked",
                asked.dir
            ));
        }
    }
    Ok(DONE)
}

/// Makes the request that the daemon would give to the rules, with the worker's configuration.
fn request(here: &RepoContext, asked: &Explain) -> Result<Request, CliError> {
    let config = here.config(None)?.config;
    let mut parts = json!({
        "action": asked.action, "client": asked.client.as_ref().map_or_else(us, ToString::to_string),
        "door": asked.door, "proof": if asked.proof == "person" { "terminal" } else { &asked.proof }, "worker": asked.worker, "cwd": asked.dir,
        "root": here.places.root.to_string_lossy(), "tool": asked.tool, "now": now(),
        "command": asked.command, "path": asked.path,
    });
    let worker = config.workers.get(&asked.worker).ok_or_else(|| {
        let known: Vec<&str> = config.workers.keys().map(AgentId::as_str).collect();
        CliError::of(format!("there is no worker {}", asked.worker))
            .because(format!("the configuration has {}", known.join(", ")))
            .next("name one with --worker, or add it to provost.toml")
    })?;
    let polling = worker.kind == WorkerKind::Polling;
    parts["worker_kind"] = if polling { "polling" } else { "cli" }.into();
    parts["network"] = worker.network.as_str().into();
    parts["hosts"] = json!(worker.hosts);
    if worker.copies() == Copies::No && !polling {
        parts["git"] = worker.git.as_str().into();
    }
    let vault = here.vault()?;
    let by = worker.secrets.iter().map(|name| Ok(vault.get(name)?.delivery.credentials()));
    parts["credentials"] = json!(by.collect::<Result<Vec<_>, CliError>>()?.into_iter().max());
    if !polling {
        parts["tier"] = worker.tier.as_str().into();
    }
    serde_json::from_value(parts).map_err(|e| {
        CliError::of("such a request cannot be made")
            .because(e)
            .next("provost policy explain --help")
            .with_code(USAGE)
    })
}

/// Returns the name by which the daemon would know this process.
fn us() -> String {
    format!("user:{}", provost_system::user_name())
}

fn compare(here: &RepoContext, asked: &Diff) -> Result<u8, CliError> {
    let (old, new) = (rules(here, asked.from.as_deref())?, rules(here, Some(&asked.new))?);
    let requests = match &asked.cases {
        Some(path) => cases(path)?.into_iter().map(|case| (String::from(case.name), case.request)).collect(),
        None => from_history(here, asked.last)?,
    };
    let (names, requests): (Vec<String>, Vec<Request>) = requests.into_iter().unzip();
    let changed = diff(&old, &new, &requests);
    if here.json {
        let row = |it: &provost_policy::Difference| json!({ "request": names[it.index], "before": it.before, "after": it.after });
        out::json(
            &json!({ "requests": requests.len(), "changed": changed.iter().map(row).collect::<Vec<_>>() }),
        )?;
        return Ok(DONE);
    }
    for it in &changed {
        out::line(out::one_line(&names[it.index], 200))?;
        let (mut before, mut after) = (it.before.to_string(), it.after.to_string());
        if before == after {
            // Only the limits of the decision change then.
            let terms = |it: &provost_policy::Outcome| json!(it.terms).to_string();
            (before, after) =
                (format!("{before} {}", terms(&it.before)), format!("{after} {}", terms(&it.after)));
        }
        out::line(out::one_line(&format!("  before: {before}"), 400))?;
        out::line(out::one_line(&format!("  after:  {after}"), 400))?;
    }
    out::line(format!("{} of {} requests would be answered differently", changed.len(), requests.len()))?;
    Ok(DONE)
}

/// Returns the requests of the newest recorded decisions that other rules can judge.
fn from_history(here: &RepoContext, last: usize) -> Result<Vec<(String, Request)>, CliError> {
    let no_history = || {
        CliError::of("there is nothing to replay")
            .because("the journal has no decision of the rules yet whose facts are on record")
            .next("give requests of your own: provost policy diff NEW --cases FILE")
    };
    if !store::is_begun(&here.places.state) {
        return Err(no_history());
    }
    let mut reader = store::open_reader_in(&here.places.state, database::of(here)?.as_ref())?;
    let head = store::newest_event(reader.as_mut())?;
    let until = Instant::now() + Duration::from_millis(REPLAY_MS);
    let found = store::recorded_decisions(reader.as_mut(), head, (last, REPLAY_EVENTS_MAX), until)?;
    let root = here.places.root.to_string_lossy();
    let (mut requests, mut left) = (Vec::new(), 0);
    for it in &found.decisions {
        let Some((judged, _)) = it.event.kind.judged() else { continue };
        let command = it.task.as_ref().and_then(|task| task.order.tool.command.as_deref());
        let Ok(request) = Request::on_record(judged, command, &root) else {
            left += 1;
            continue;
        };
        let about = judged.work.as_ref().map(|it| it.worker.as_str());
        let about = about.unwrap_or_else(|| judged.action.name());
        let task = it.event.kind.task().map(|it| format!("{it}: ")).unwrap_or_default();
        requests.push((format!("{task}{about} for {}, event {}", judged.asked_by, it.event.seq), request));
    }
    if left > 0 {
        out::note(format!(
            "{left} decisions were skipped: their requests are not recorded, or no longer kept"
        ));
    }
    if found.late {
        out::note(format!("the time was over at event {}: earlier decisions were not looked at", found.from));
    }
    if requests.is_empty() { Err(no_history()) } else { Ok(requests) }
}

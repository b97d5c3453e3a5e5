//! `provost workflow`: the workflows that editors can run, and their files. Reads files; asks no daemon.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::cli_error::{DONE, FAILED};
use super::{CliError, RepoContext, out};
use provost_base::nearest;
use provost_config::{BUILT_IN_FILE, Config, Step, Value as _, Workflow};

/// `provost workflow`.
#[derive(Subcommand, Debug)]
pub(super) enum Workflows {
    /// List the workflows, which editors can run, and their files
    #[command(
        after_help = "Examples:\n  provost workflow list\n  provost workflow list --domain dev --json\n\nExit codes: 0; 1 if one of the workflows is invalid."
    )]
    List(List),
    /// Show a workflow, step by step
    #[command(
        after_help = "Examples:\n  provost workflow show dev:fix_and_review\n  provost workflow show dev:test_until_green --json"
    )]
    Show(Show),
}

/// `provost workflow list`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// List only the workflows of this domain
    #[arg(long)]
    domain: Option<String>,
}

/// `provost workflow show`.
#[derive(Args, Debug)]
pub(super) struct Show {
    /// The workflow, as DOMAIN:NAME
    id: String,
}

pub(super) fn workflows(here: &RepoContext, asked: Workflows) -> Result<u8, CliError> {
    let config = here.config(None)?.config;
    match asked {
        Workflows::List(it) => list(here, &config, &it),
        Workflows::Show(it) => show(here, &config, &it),
    }
}

fn list(here: &RepoContext, config: &Config, asked: &List) -> Result<u8, CliError> {
    let wanted = |domain: &str| asked.domain.as_ref().is_none_or(|wanted| wanted == domain);
    let all = config.all_workflows();
    let usable = || all.iter().filter(|it| wanted(it.domain()));
    let refused = || {
        let domain = |id: &String| id.split(':').next().unwrap_or_default().to_owned();
        config.refused_workflows.iter().filter(move |(id, _)| wanted(&domain(id)))
    };
    if here.json {
        let refused = refused().map(|(id, it)| json!({ "id": id, "file": it.file, "reason": it.reason }));
        let both = json!({
            "workflows": usable().map(as_json).collect::<Vec<_>>(),
            "refused": refused.collect::<Vec<_>>(),
        });
        out::json(&both)?;
    } else {
        let mut rows = vec![["WORKFLOW", "PATTERN", "STEPS", "WHAT FOR", "WHERE"].map(String::from)];
        rows.extend(usable().map(|it| {
            let says = it.head.description.as_deref().unwrap_or_else(|| it.name());
            let pattern = it.head.pattern.print().unwrap_or_default().replace('"', "");
            let steps = it.steps.len().to_string();
            [it.head.id.clone(), pattern, steps, out::one_line(says, 70), out::one_line(&place(it), 120)]
        }));
        out::text_as_is(&out::table(&rows))?;
        for (id, it) in refused() {
            out::note(format!(
                "{id} cannot be used: {}: {}",
                out::name(&it.file, 200),
                out::one_line(&it.reason, 400)
            ));
        }
    }
    Ok(if refused().next().is_some() { FAILED } else { DONE })
}

fn show(here: &RepoContext, config: &Config, asked: &Show) -> Result<u8, CliError> {
    let id = asked.id.trim();
    let all = config.all_workflows();
    let Some(found) = all.iter().find(|it| it.head.id == id) else {
        if let Some(it) = config.refused_workflows.get(id) {
            return Err(CliError::of(format!("workflow {id} cannot be used"))
                .because(format!("{}: {}", it.file, it.reason))
                .next("provost workflow list"));
        }
        let near = nearest(id, all.iter().map(|it| it.head.id.as_str()));
        let next = near.map_or("provost workflow list".into(), |near| {
            format!("provost workflow show {}", provost_base::shell_word(near))
        });
        return Err(CliError::of(format!("there is no workflow {}", out::one_line(id, 80))).next(next));
    };
    if here.json {
        out::json(&as_json(found))?;
        return Ok(DONE);
    }
    let mut text = format!("{}: {}\n", found.head.id, out::one_line(found.name(), 200));
    if let Some(says) = &found.head.description {
        text += &format!("{}\n", out::one_line(says, 1_000));
    }
    let rounds = format!(", at most {} rounds", found.head.max_rounds);
    let pattern = found.head.pattern.print().unwrap_or_default().replace('"', "");
    let turns = matches!(pattern.as_str(), "supervisor" | "maker_checker");
    text +=
        &format!("{pattern}{}; {}\n", if turns { &rounds } else { "" }, out::one_line(&place(found), 400));
    found.steps.iter().for_each(|step| text += &in_words(step));
    out::text_as_is(&text)?;
    Ok(DONE)
}

fn in_words(step: &Step) -> String {
    let who = step.agent.as_deref().unwrap_or("the first agent");
    let phase = step.phase.print().unwrap_or_default().replace('"', "");
    let mut text = format!("\n{} ({}, {phase})\n", step.name, out::one_line(who, 80));
    let mut add = |what: &str, words: &str| {
        let lines = out::plain(words);
        lines.lines().for_each(|line| text += &format!("  {what}{line}\n"));
    };
    if !step.until.is_empty() {
        add("until: ", &step.until.join(" "));
        add("", &format!("at most {} rounds", step.max_rounds));
    }
    if !step.command.is_empty() {
        add("runs: ", &step.command.join(" "));
    }
    step.prompt.iter().for_each(|prompt| add("| ", prompt.0.trim()));
    text
}

fn place(it: &Workflow) -> String {
    match it.file.as_str() {
        BUILT_IN_FILE => BUILT_IN_FILE.to_owned(),
        file => format!("{file}:{}", it.line),
    }
}

fn as_json(it: &Workflow) -> Value {
    let word = |word: Option<String>| word.unwrap_or_default().replace('"', "");
    let step = |step: &Step| {
        json!({
            "name": step.name,
            "agent": step.agent,
            "phase": word(step.phase.print()),
            "prompt": step.prompt.as_ref().map(|it| &it.0),
            "command": step.command,
            "until": step.until,
            "max_rounds": step.max_rounds,
        })
    };
    json!({
        "id": it.head.id,
        "name": it.name(),
        "domain": it.domain(),
        "description": it.head.description,
        "pattern": word(it.head.pattern.print()),
        "max_rounds": it.head.max_rounds,
        "where": place(it),
        "steps": it.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

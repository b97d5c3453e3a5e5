//! `provost broker` and `provost answer`: messages between agents, for people and scripts.

use std::io::Read as _;
use std::process::Command;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::duration;
use super::cli_error::{DONE, USAGE};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, git, out};
use provost_api::wire;
use provost_base::{AgentId, Ttl};
use provost_client::Client;

/// The text that tells agents how to work side by side.
const SKILL: &str = include_str!("broker/skill.md");

/// `provost broker`.
#[derive(Subcommand, Debug)]
pub(super) enum Broker {
    /// Publish a message
    #[command(
        after_help = "Examples:\n  provost broker publish '{\"type\":\"agent.status\",\"agent_id\":\"feat-x\",\"payload\":{\"status\":\"working\"}}'\n  provost broker publish - < message.json"
    )]
    Publish(Publish),
    /// Show an agent's inbox
    #[command(
        after_help = "Examples:\n  provost broker inbox supervisor\n  provost broker inbox feat/x --since 42 --wait 1m --json"
    )]
    Inbox(Inbox),
    /// Show the status of every agent
    #[command(after_help = "Example:\n  provost broker status --json")]
    Status,
    /// Show all messages, the newest last
    #[command(after_help = "Examples:\n  provost broker log\n  provost broker log --since 120 --json")]
    Log(Log),
    /// Purge `.git-paw/broker.log`, which starts again; the messages stay in the journal
    #[command(after_help = "Example:\n  provost broker purge")]
    Purge,
    /// Print the text that tells agents how to work side by side
    #[command(after_help = "Example:\n  provost broker skill >> AGENTS.md")]
    Skill,
    /// Print an agent's first instructions, with every command filled in
    #[command(after_help = "Example:\n  provost broker boot-block feat/auth")]
    BootBlock(BootBlock),
}

/// `provost broker publish`.
#[derive(Args, Debug)]
pub(super) struct Publish {
    /// The message as JSON; `-` to read it from standard input
    message: String,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// `provost broker inbox`.
#[derive(Args, Debug)]
pub(super) struct Inbox {
    /// The agent whose inbox is shown: a branch or its dashed form
    agent: String,
    /// Show only the messages after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    since: u64,
    /// If there is no message, wait for one this long
    #[arg(long, value_parser = duration, value_name = "30s")]
    wait: Option<Ttl>,
}

/// `provost broker log`.
#[derive(Args, Debug)]
pub(super) struct Log {
    /// Show only the messages after this number
    #[arg(long, value_name = "NUMBER")]
    since: Option<u64>,
}

/// `provost broker boot-block`.
#[derive(Args, Debug)]
pub(super) struct BootBlock {
    /// The agent's branch, or its dashed form
    agent: String,
}

/// `provost question`.
#[derive(Subcommand, Debug)]
pub(super) enum Questions {
    /// Answer an agent's question; `provost` alone shows the open ones
    #[command(
        after_help = "Examples:\n  provost question answer feat-auth \"RS256\"\n  provost question answer 42 \"yes\" --tmux paw:0.2"
    )]
    Answer(Answer),
}

/// `provost question answer`.
#[derive(Args, Debug)]
pub(super) struct Answer {
    /// The agent that asks, or the number of the question
    who: String,
    /// Your answer
    text: String,
    /// Also type the answer into this pane of tmux, and press Enter
    #[arg(long, value_name = "PANE")]
    tmux: Option<String>,
    /// The name to answer as
    #[arg(long, default_value = "supervisor")]
    from: AgentId,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn broker(here: &RepoContext, asked: Broker) -> Result<u8, CliError> {
    match asked {
        Broker::Publish(it) => publish(here, it),
        Broker::Inbox(it) => inbox(here, &it),
        Broker::Status => status(here),
        Broker::Log(it) => log(here, &it),
        Broker::Purge => purge(here),
        Broker::Skill => out::text_as_is(SKILL).map(|()| DONE),
        Broker::BootBlock(it) => boot_block(here, &it),
    }
}

fn publish(here: &RepoContext, asked: Publish) -> Result<u8, CliError> {
    let bad = |why: String| CliError::of("the message is no JSON").because(why).with_code(USAGE);
    let text = match asked.message.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).map_err(|err| bad(err.to_string()))?;
            text
        }
        text => text.to_owned(),
    };
    let message: Value = serde_json::from_str(&text).map_err(|err| bad(err.to_string()))?;
    let published = wait_for(async {
        let client = asked.identity.daemon(here).await?;
        Ok(client.publish_post(&wire::PublishPost { message }).await?)
    })?;
    if here.json {
        return out::json(&published).map(|()| DONE);
    }
    out::line(format!("published as {}", published.seq)).map(|()| DONE)
}

fn show(here: &RepoContext, posts: &wire::Posts) -> Result<u8, CliError> {
    if here.json {
        return out::json(posts).map(|()| DONE);
    }
    for post in &posts.posts {
        // In git-paw's line only the number of feedback items is shown; here their texts are.
        let errors = post.message["payload"]["errors"].as_array().filter(|_| post.kind == "feedback");
        let words: Vec<&str> = errors.into_iter().flatten().filter_map(Value::as_str).collect();
        let words = if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
        let text = out::one_line(&format!("{}{words}", post.text), out::width().max(60) - 20);
        out::line(format!("{:>6}  {}  {text}", post.seq, short_time(&post.at)))?;
    }
    if posts.posts.is_empty() {
        out::note(format!("nothing after {}", posts.last_seq));
    }
    Ok(DONE)
}

fn inbox(here: &RepoContext, asked: &Inbox) -> Result<u8, CliError> {
    let query = wire::PostsQuery {
        inbox: Some(asked.agent.clone()),
        since: Some(asked.since),
        wait_ms: asked.wait.map(|it| u64::from(it.as_millis())),
        ..wire::PostsQuery::default()
    };
    let posts = wait_for(async { Ok(here.daemon(None).await?.posts(&query).await?) })?;
    show(here, &posts)
}

fn log(here: &RepoContext, asked: &Log) -> Result<u8, CliError> {
    let query = wire::PostsQuery { since: asked.since, ..wire::PostsQuery::default() };
    let posts = wait_for(async { Ok(here.daemon(None).await?.posts(&query).await?) })?;
    show(here, &posts)
}

fn status(here: &RepoContext) -> Result<u8, CliError> {
    let rows = wait_for(async { Ok(here.daemon(None).await?.roster().await?) })?;
    if here.json {
        return out::json(&rows).map(|()| DONE);
    }
    if rows.is_empty() {
        return out::line("No agent has reported its status; `provost broker log` shows all messages.")
            .map(|()| DONE);
    }
    let mut table = vec![["agent", "cli", "status", "phase", "last word"].map(str::to_owned)];
    table.extend(rows.iter().map(|row| {
        let phase = row.phase.as_deref().unwrap_or_default();
        [&row.agent, &row.cli, &row.status, phase, &short_time(&row.last_seen)]
            .map(|it| out::one_line(it, 60))
    }));
    out::text_as_is(&out::table(&table)).map(|()| DONE)
}

fn purge(here: &RepoContext) -> Result<u8, CliError> {
    let begun = wait_for(async { Ok(here.daemon(None).await?.purge_posts().await?) })?;
    if here.json {
        return out::json(&begun).map(|()| DONE);
    }
    out::line(format!("the log begins after message {}", begun.after)).map(|()| DONE)
}

/// Returns the address of the broker door.
async fn address(client: &Client) -> Result<String, CliError> {
    let doors = client.about().await?.doors;
    let at = doors.into_iter().find(|it| it.door == "broker").map(|it| it.address);
    at.ok_or_else(|| {
        CliError::of("the broker door is not open").next(
            "set `enabled = true` in `[broker]` of the configuration, then `provost down` and `provost up`",
        )
    })
}

fn boot_block(here: &RepoContext, asked: &BootBlock) -> Result<u8, CliError> {
    let agent = dashed(&asked.agent).ok_or_else(|| {
        CliError::of(format!(
            "`{}` has neither a letter from a to z nor a digit",
            out::one_line(&asked.agent, 100)
        ))
        .because("the broker's clients make names of these characters alone")
        .next("the same for a branch with a name in such letters: provost broker boot-block feat-1")
    })?;
    // Where git cannot be asked, none of its hooks reports commits.
    let told = git::standings(here).unwrap_or_default().iter().any(|it| it.tells_commits());
    let (url, tellers) = wait_for(async {
        let client = here.daemon(None).await?;
        Ok((address(&client).await?, git::tellers(here, &client, &agent).await?))
    })?;
    let commits = commits(&agent, told, &tellers);
    let text = block(&url, &agent, &commits);
    if here.json {
        let all = json!({
            "agent": agent, "url": url, "text": text, "commits_are_told": told, "branch": tellers.own,
        });
        return out::json(&all).map(|()| DONE);
    }
    out::text_as_is(&text)?;
    if !told {
        out::note("no hook reports commits here; run provost git install, then print this text again");
    }
    Ok(DONE)
}

/// Returns a branch's name as the broker writes it; `None` if no letter is left, since that is no agent's name.
pub(super) fn dashed(name: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().map(plain).collect();
    let parts: Vec<&str> = text.split('-').filter(|it| !it.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("-"))
}

/// The message about an agent's commit: the hooks identify the agent by the work tree and its branch, and not by the
/// committer.
fn commits(agent: &str, are_told: bool, tellers: &git::Tellers) -> String {
    let says =
        "tells the others by itself of your commit and its files;\nit does not tell them that you are done.";
    match (&tellers.own, &tellers.here) {
        _ if !are_told => "A commit is not reported to other agents here.".into(),
        (Some(branch), _) => {
            let branch = out::one_line(branch, 200);
            format!("A commit in the work tree of the branch `{branch}`, which is yours, {says}")
        }
        (None, teller) => {
            let here = match teller {
                Some(other) => {
                    let other = out::one_line(other, 200);
                    format!("A commit in this work tree is reported as {other}'s, and not as yours.")
                }
                None => "A commit in this work tree is not reported to other agents at present.".into(),
            };
            format!("A commit on a branch with your name, {agent}, {says}\n{here}")
        }
    }
}

fn block(url: &str, agent: &str, commits: &str) -> String {
    let say = |kind: &str, payload: &str| {
        format!(
            "curl -s -X POST {url}/publish -H 'Content-Type: application/json' \\\n  \
             -d '{{\"type\":\"{kind}\",\"agent_id\":\"{agent}\",\"payload\":{payload}}}'"
        )
    };
    let register = say("agent.status", r#"{"status":"working","message":"booting"}"#);
    let done = say("agent.artifact", r#"{"status":"done","exports":[],"modified_files":[]}"#);
    let blocked =
        say("agent.blocked", r#"{"needs":"<describe what you need>","from":"<agent-id or resource>"}"#);
    let question = say("agent.question", r#"{"question":"<your specific question>"}"#);
    let wait = format!("curl -s '{url}/messages/{agent}?since=0&wait=60'");
    format!(
        "You are {agent}, and others work beside you. Tell them, with these commands as they stand; what is in angle\n\
         brackets is yours to fill in, and is refused as it is.\n\n\
         First of all, that you are there:\n\n```sh\n{register}\n```\n\n\
         {commits} When you are done:\n\n```sh\n{done}\n```\n\n\
         When you cannot go on:\n\n```sh\n{blocked}\n```\n\n\
         When you do not know:\n\n```sh\n{question}\n```\n\n\
         Then wait for the answer. Ask again with the `last_seq` that you got for `since`, until there is an\n\
         `agent.answer` or `agent.feedback` for you:\n\n```sh\n{wait}\n```\n\n\
         How to work with others: `provost broker skill`.\n"
    )
}

pub(super) fn question(here: &RepoContext, asked: &Questions) -> Result<u8, CliError> {
    let Questions::Answer(asked) = asked;
    let told = wait_for(async {
        let client = asked.identity.daemon(here).await?;
        let open = client.questions().await?;
        let by_number = asked.who.parse::<u64>().ok();
        let question = match by_number {
            Some(seq) => Some(open.iter().find(|it| it.seq == seq).ok_or_else(|| {
                CliError::of(format!("no question {seq} is open"))
                    .because("it was answered, or never existed")
                    .next("provost, which shows the open ones")
            })?),
            None => open.iter().rev().find(|it| Some(&it.agent) == dashed(&asked.who).as_ref()),
        };
        let agent = question.map_or_else(|| asked.who.clone(), |it| it.agent.clone());
        let seq = client.answer_agent((asked.from.as_str(), &agent), &asked.text, question).await?;
        Ok(json!({ "agent": agent, "seq": seq, "question": question.map(|it| it.seq) }))
    })?;
    if let Some(pane) = &asked.tmux {
        type_into(pane, &asked.text)?;
    }
    if here.json {
        return out::json(&told).map(|()| DONE);
    }
    let agent = out::one_line(told["agent"].as_str().unwrap_or_default(), 100);
    if told["question"].is_null() {
        let seq = &told["seq"];
        return out::line(format!(
            "no question of {agent} is open; the answer is sent nevertheless, as message {seq}"
        ))
        .map(|()| DONE);
    }
    out::line(format!("answered {agent}")).map(|()| DONE)
}

/// Types a text into a pane, unchanged, and ends the line. A line break in the text would end a line too.
fn type_into(pane: &str, text: &str) -> Result<(), CliError> {
    let failed = |why: String| {
        CliError::of(format!("the answer is published, and could not be typed into pane {pane}"))
            .because(why)
            .next("tmux list-panes -a, for the existing panes")
    };
    if pane.starts_with('-') {
        return Err(failed("this is not the name of a pane".into()));
    }
    let text = text.replace(|c: char| c.is_control(), " ");
    for keys in [vec!["-l", "--", text.as_str()], vec!["Enter"]] {
        let said = Command::new("tmux").args(["send-keys", "-t", pane]).args(&keys).output();
        let said = said.map_err(|err| failed(err.to_string()))?;
        if !said.status.success() {
            return Err(failed(String::from_utf8_lossy(&said.stderr).trim().to_owned()));
        }
    }
    Ok(())
}

/// Formats questions for people.
pub(super) fn questions(open: &[wire::Question]) -> String {
    let line = |it: &wire::Question| {
        let text = out::one_line(&it.text, out::width().max(80) - 30);
        format!("  {}  {}: {text}\n", it.seq, out::one_line(&it.agent, 60))
    };
    open.iter().map(line).collect()
}

//! Decisions, the rules behind them, and the state of the journal. This view only shows; people change rules in their files.

use provost_api::wire::{About, Hit, RuleOutcome, RuleTold, Rules, RulesQuery};
use provost_base::{visible, visible_name};

use super::block::Empty;
use super::{Block, Cell, Command, Fact, Line, Row, Rows, Shown, Tone, Word};

/// Reads a request as it is typed: `worker:shell dir:src`, with a value of several words in quotation marks.
///
/// # Errors
/// Says in words which part is no member of a request.
pub fn request(typed: &str) -> Result<RulesQuery, String> {
    let mut asked = RulesQuery::default();
    for part in parts(typed)? {
        let (name, value) = part
            .split_once(':')
            .ok_or_else(|| format!("'{}' has no name: type worker:shell dir:src", visible_name(&part, 40)))?;
        let member = match name {
            "worker" => &mut asked.worker,
            "dir" => &mut asked.dir,
            "client" => &mut asked.client,
            "door" => &mut asked.door,
            "proof" => &mut asked.proof,
            "action" => &mut asked.action,
            "tool" => &mut asked.tool,
            "command" => &mut asked.command,
            "path" => &mut asked.path,
            other => {
                let known = "worker, dir, client, door, proof, action, tool, command, path";
                return Err(format!("a request has no '{}': it has {known}", visible_name(other, 40)));
            }
        };
        *member = Some(value.to_owned());
    }
    if asked.worker.is_none() && asked != RulesQuery::default() {
        return Err("a request names its worker: type worker:shell as well".into());
    }
    Ok(asked)
}

/// Splits a text into words; a word may have a part in quotation marks.
fn parts(typed: &str) -> Result<Vec<String>, String> {
    let (mut all, mut part, mut is_open) = (Vec::new(), String::new(), false);
    for c in typed.chars() {
        match c {
            '"' => is_open = !is_open,
            c if c.is_whitespace() && !is_open => {
                all.extend(Some(std::mem::take(&mut part)).filter(|it| !it.is_empty()));
            }
            c => part.push(c),
        }
    }
    if is_open {
        return Err("a quotation mark is not closed".into());
    }
    all.extend(Some(part).filter(|it| !it.is_empty()));
    Ok(all)
}

/// Shows the journal, decisions, newest first, and the rules in force; with their answer to a request, where one is typed.
pub fn audit(about: &About, rules: &Rules, decisions: &[Hit], wrong: Option<&str>) -> Shown {
    let mut blocks = Vec::new();
    if let Some(why) = wrong {
        blocks.push(Block::Notice(Line { text: visible(why), tone: Tone::Waiting }));
    }
    blocks.extend(rules.outcome.as_ref().map(outcome));
    if rules.outcome.is_none() {
        let text = "Type a request to see what the rules would say to it, such as worker:shell dir:src client:ann or \
                    worker:shell action:permission tool:Bash command:\"git status\".";
        blocks.push(Block::Notice(Line { text: text.into(), tone: Tone::Quiet }));
    }
    blocks.push(Block::Facts { title: "Journal and rules".into(), facts: facts(about, rules) });
    blocks.push(Block::JournalCheck {});
    blocks.push(list(
        "Decided last",
        &["What", "No.", "Who", "In short", "When"],
        decisions.iter().map(decision).collect(),
        Empty::new("Nothing was decided yet.", None),
    ));
    blocks.push(list(
        "Rules in force",
        &["Says", "Rule", "Reason", "Who may answer", "For this request", "Where"],
        rules.rules.iter().map(rule).collect(),
        Empty::new("There is no rule, so that everything is denied.", None),
    ));
    blocks.push(super::replay::form());
    blocks.push(Block::Commands {
        title: "At a terminal".into(),
        commands: vec![
            Command::new("Verify the whole journal", "provost journal verify"),
            Command::new("Keep the end of it elsewhere", "provost journal head"),
            Command::new("Check the rule files", "provost policy check"),
            Command::new("Compare with other rules", "provost policy diff new.toml"),
        ],
    });
    Shown::new("Audit", blocks)
}

fn list(title: &str, columns: &[&'static str], rows: Vec<Row>, empty: Empty) -> Block {
    let title = format!("{title} ({})", rows.len());
    Block::List(Rows { title, columns: columns.to_vec(), rows, more: 0, empty })
}

fn facts(about: &About, rules: &Rules) -> Vec<Fact> {
    vec![
        Fact::text("events in the journal", &about.journal_seq.to_string()),
        Fact::new("anchor of its end", Cell::Code { text: about.journal_anchor.clone() }),
        Fact::text("rules of", &rules.sources.join(", ")),
        Fact::new("digest of the rules", Cell::Code { text: rules.digest.clone() }),
    ]
}

pub(super) fn says(decision: &str) -> Word {
    match decision {
        "allow" => Word::new("allow", Tone::Good),
        "approve" => Word::new("ask for approval", Tone::Waiting),
        "deny" => Word::new("deny", Tone::Bad),
        other => Word::new(visible(other), Tone::Quiet),
    }
}

fn outcome(it: &RuleOutcome) -> Block {
    let mut facts = vec![
        Fact::new("the rules say", Cell::State(says(&it.decision))),
        Fact::new("because of rule", Cell::code(&it.rule)),
        Fact::text("reason", &it.reason),
    ];
    if !it.by.is_empty() {
        facts.push(Fact::text("who may answer", &it.by.join(", ")));
    }
    facts.extend(it.wait_s.map(|s| Fact::text("an answer is waited for", &format!("{s} s"))));
    Block::Facts { title: "To this request".into(), facts }
}

fn rule(it: &RuleTold) -> Row {
    let match_ = match (it.matched, &it.unmet) {
        (None, _) => Cell::None,
        (Some(true), _) => Cell::State(Word::new("matches", Tone::Good)),
        (Some(false), Some(unmet)) => Cell::text(unmet),
        (Some(false), None) => Cell::text("does not match"),
    };
    Row {
        key: format!("{}:{}:{}", it.file, it.line, it.id),
        to: None,
        cells: vec![
            Cell::State(says(&it.decision)),
            Cell::code(&it.id),
            Cell::text(&it.reason),
            Cell::text(&it.by.join(", ")),
            match_,
            Cell::code(&format!("{}:{}", it.file, it.line)),
        ],
        commands: Vec::new(),
    }
}

fn decision(it: &Hit) -> Row {
    let word = match it.what.as_str() {
        "approval_answered" => Word::new("answered", Tone::Good),
        "approval_expired" => Word::new("expired", Tone::Waiting),
        "denied" => Word::new("denied by a rule", Tone::Bad),
        other => Word::new(visible(other), Tone::Quiet),
    };
    let seq = it.seq.unwrap_or_default();
    Row {
        key: seq.to_string(),
        to: Some(format!("/e?before={}", seq.saturating_add(1))),
        cells: vec![
            Cell::State(word),
            Cell::text(&seq.to_string()),
            Cell::code(&it.actor),
            Cell::said(&it.excerpt),
            Cell::time(Some(&it.at)),
        ],
        commands: Vec::new(),
    }
}

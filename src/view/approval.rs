//! An approval: facts of the daemon first, words of agents last.

use provost_api::wire::{Approval, Passkeys};
use provost_base::limits::SIGNED_NOTE_BYTES_MAX;

use super::block::Empty;
use super::passkeys::signers;
use super::word::is_a_person;
use super::{Answering, Block, Cell, Command, Fact, Here, Line, Row, Shown, Tone, Word, diff_files, of_risk};

/// Returns the path of the view about an approval.
pub(crate) fn path(id: u64) -> String {
    format!("/a/{id}")
}

/// Checks whether a person may answer, given the approvers that a rule accepts.
pub fn takes_a_person(by: &str) -> bool {
    by.split(", ").any(|it| it == "human" || it.starts_with("passkey"))
}

/// Says why a person's answer at a terminal does not count; `None` where it may count.
pub fn no_terminal(by: &str) -> Option<String> {
    match by.split(", ").any(|it| matches!(it, "human" | "passkey-if-enrolled")) {
        true => None,
        false if takes_a_person(by) => Some(
            "only an answer that is signed with a passkey counts; the page takes one: provost web".into(),
        ),
        false => Some(format!("only {by} may answer")),
    }
}

/// Returns the commands that answer an approval, each with the reason where a person cannot use it.
pub(crate) fn commands(approval: &Approval) -> Vec<Command> {
    commands_for(&approval.id.to_string(), &approval.by)
}

/// Does the same for the approval with this number and these approvers.
pub(crate) fn commands_for(id: &str, by: &str) -> Vec<Command> {
    let (id, not_yours) = (provost_base::shell_word(id), no_terminal(by));
    [
        Command::new("Deny", format!("provost deny {id} --reason WHY")),
        Command::new("Approve", format!("provost approve {id}")),
    ]
    .map(|it| Command { not_yours: not_yours.clone(), ..it })
    .into()
}

/// Returns the commands for a row: an approval of low risk can be approved there, once the row shows the whole of it.
pub(crate) fn commands_of_a_row(approval: &Approval) -> Vec<Command> {
    let mut commands = commands(approval);
    if approval.risk == "low" && is_for_a_person(approval) {
        let here = Some(Here::Answer { approval: approval.id });
        commands.iter_mut().filter(|it| it.does == "Approve").for_each(|it| it.here.clone_from(&here));
    }
    commands
}

/// Checks whether a person may answer the approval.
pub(crate) fn is_for_a_person(approval: &Approval) -> bool {
    takes_a_person(&approval.by)
}

/// Returns the text about a waiting approval that a person reads, and that a passkey signs with the answer: everything that is known of
/// the approval, and no fact about its reader. `facts` are the daemon's findings, `words` are the asker's; both are in order, with
/// hidden characters shown. A text of `words` that is a difference stands under a heading that says so; the texts after it are folded.
pub fn signed(
    approval: &Approval,
    facts: Vec<(&'static str, String)>,
    words: Vec<(&'static str, String)>,
) -> Shown {
    let facts = facts.into_iter().map(|(name, text)| {
        let value = match name {
            "until" => Cell::Until { at: approval.expires_at.clone(), from: None },
            "asked" => Cell::Time { at: approval.asked_at.clone() },
            "risk" => Cell::State(of_risk(&approval.risk)),
            "task" => Cell::link(&text, super::task::path(&text)),
            "digest" | "directory" => Cell::Code { text },
            _ => Cell::Text { text },
        };
        Fact::new(name, value)
    });
    let mut facts: Vec<Fact> = facts.collect();
    facts.push(Fact::text("at the end", &at_the_end(approval)));
    let mut blocks = vec![Block::Facts { title: "What the daemon knows".into(), facts }];
    let mut has_difference = false;
    blocks.extend(words.into_iter().map(|(says, text)| match says.contains("difference") {
        true => {
            has_difference = true;
            Block::Diff { title: "What it would change".into(), files: diff_files(&text) }
        }
        false => Block::Words {
            title: sentence(says),
            text,
            folded: has_difference,
            by_person: is_a_person(&approval.asked_by),
        },
    }));
    let mut shown = Shown::new(format!("Approval {}", approval.id), blocks);
    shown.state = Some(of_risk(&approval.risk));
    shown.until = Some(approval.expires_at.clone());
    shown
}

/// Says how the approval ends without an answer.
fn at_the_end(approval: &Approval) -> String {
    match approval.asks_left {
        0 => "without an answer the request is denied".into(),
        1 => "without an answer it is asked again, once; then the request is denied".into(),
        left => {
            format!("without an answer it is asked again, up to {left} times; then the request is denied")
        }
    }
}

/// Returns the same with the commands that answer it, between the facts and the asker's words, for readers without a page.
pub fn approval(
    approval: &Approval,
    facts: Vec<(&'static str, String)>,
    words: Vec<(&'static str, String)>,
) -> Shown {
    let mut shown = signed(approval, facts, words);
    let at = 1.min(shown.blocks.len());
    shown.blocks.insert(at, at_a_terminal(approval));
    if let Some(notice) = not_for_a_person(approval) {
        shown.blocks.insert(0, notice);
    }
    shown
}

fn not_for_a_person(approval: &Approval) -> Option<Block> {
    let text = format!("This one is not for a person: only {} may answer it.", approval.by);
    (!takes_a_person(&approval.by)).then_some(Block::Notice(Line { text, tone: Tone::Quiet }))
}

fn at_a_terminal(approval: &Approval) -> Block {
    Block::Commands { title: "Answer at a terminal".into(), commands: commands(approval) }
}

/// Returns the blocks for a page where passkeys sign answers: whether an answer would count, and if not, why, and the command that helps.
pub fn answering(approval: &Approval, known: &Passkeys) -> Vec<Block> {
    let (why_not, next) = match why_not(approval, known) {
        Some((why_not, next)) => (Some(why_not), next),
        None => (None, None),
    };
    let answer = Block::Answer(Answering {
        approval: approval.id,
        why_not,
        next,
        daemon: known.daemon.clone(),
        signers: signers(known),
        note_bytes_max: SIGNED_NOTE_BYTES_MAX,
    });
    not_for_a_person(approval).into_iter().chain([answer, at_a_terminal(approval)]).collect()
}

/// Says why no passkey could answer this approval now, and returns the command that helps.
fn why_not(approval: &Approval, known: &Passkeys) -> Option<(String, Option<Command>)> {
    let only = approval.by.split(", ").all(|it| it == "passkey");
    if !takes_a_person(&approval.by) {
        let why = format!("Rule {} lets only {} answer, so no passkey does.", approval.rule, approval.by);
        return Some((why, None));
    }
    if let Some((why, next)) = super::passkeys::none_counts(known) {
        return Some((why, Some(next)));
    }
    if !signers(known).is_empty() {
        return None;
    }
    let and_so = match only {
        true => "Nothing else answers it, so that it would be denied when its time is over.",
        false => "Until one is, a person answers at a terminal.",
    };
    let why = format!(
        "No passkey is enrolled. {and_so} Have a code printed at a terminal, and enrol one under Passkeys."
    );
    Some((why, Some(Command::new("Print a code", "provost passkey add"))))
}

/// Makes a heading from the words that stand before a text in a list.
fn sentence(says: &str) -> String {
    let says = says.trim_end_matches(':');
    let mut chars = says.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The word for the first event of an approval: an agent has asked.
pub const ASKED: &str = "asked";

/// Shows an approval that does not wait any more by the events about it, newest last; each is a moment, the agent
/// that caused it, and its name.
pub fn gone(id: u64, said: &[(String, String, String)]) -> Shown {
    let answered = said.iter().find(|(_, _, what)| what != ASKED);
    let text = match (answered, said.is_empty()) {
        (Some((_, who, what)), _) => {
            format!("It does not wait any more: {what}, by {}.", provost_base::visible(who))
        }
        (None, false) => {
            "It does not wait any more: its asker has taken the request back, its task has ended, or nothing is left to write."
                .into()
        }
        (None, true) => {
            "Nothing waits under this number: it has gone before the newest events, or never was.".into()
        }
    };
    let rows = said.iter().enumerate().map(|(n, (at, who, what))| Row {
        key: n.to_string(),
        to: None,
        cells: vec![Cell::time(Some(at)), Cell::code(who), Cell::text(what)],
        commands: Vec::new(),
    });
    let list = super::Rows {
        title: "What became of it".into(),
        columns: vec!["When", "Who", "What"],
        rows: rows.collect(),
        more: 0,
        empty: Empty::new("No event of the newest thousands is about it.", Some("provost journal show")),
    };
    let notice = Block::Notice(Line { text, tone: Tone::Quiet });
    let mut shown = Shown::new(format!("Approval {id}"), vec![notice, Block::List(list)]);
    shown.state = Some(Word::new("gone", Tone::Quiet));
    shown
}

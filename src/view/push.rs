//! The browsers that their push services tell, and the place where this browser subscribes.

use provost_api::wire::{Passkeys, Push, PushBrowser};
use provost_base::visible;

use super::block::Empty;
use super::passkeys::{none_counts, signers};
use super::{Block, Cell, Command, Here, Row, Rows, Subscribing, Tone, Word};

/// Shows the list of browsers, and the place where the reader's browser can subscribe as well.
pub fn browsers(push: &Push, known: &Passkeys) -> Vec<Block> {
    let rows = Rows {
        title: "Browsers that get messages".into(),
        columns: vec!["Browser", "By", "Page", "Since", "Owed", "Last"],
        rows: push.browsers.iter().map(row).collect(),
        more: 0,
        empty: Empty::new(
            "No browser gets a message when something needs you while its page is closed.",
            None,
        ),
    };
    let signers = signers(known);
    let full = push.browsers.len() >= push.most;
    let why_not = match none_counts(known) {
        Some((why, _)) => Some(why),
        None if signers.is_empty() => Some("A passkey signs for each browser, and none is enrolled.".into()),
        None if full => {
            Some(format!("{} browsers are told, as many as may be. Remove one first.", push.most))
        }
        None => push.problem.as_ref().map(|it| format!("No browser can be told: {}.", visible(it))),
    };
    let told = push.browsers.iter().map(|it| (it.id.clone(), visible(&it.name))).collect();
    let subscribing = Subscribing { why_not, daemon: known.daemon.clone(), signers, told };
    vec![Block::List(rows), Block::Push(subscribing)]
}

fn row(it: &PushBrowser) -> Row {
    let failed = it.last.as_ref().is_some_and(|last| !last.delivered);
    let tone = if failed { Tone::Waiting } else { Tone::Good };
    let last = it.last.as_ref().map_or("nothing sent yet", |last| last.says.as_str());
    let remove = Here::verb("remove-push", serde_json::json!({ "id": it.id }));
    Row {
        key: format!("push:{}", it.id),
        to: None,
        cells: vec![
            Cell::State(Word::new(visible(&it.name), tone)),
            Cell::code(&it.host),
            Cell::code(&it.origin),
            Cell::time(Some(&it.added_at)),
            Cell::text(&it.owed.to_string()),
            Cell::text(last),
        ],
        commands: vec![
            Command::new("Send a sample", format!("provost push test {}", it.id)),
            Command::new("Remove", format!("provost push remove {}", it.id)).or_here(remove),
        ],
    }
}

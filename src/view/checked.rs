//! A check of the whole journal: its progress, and its findings.

use provost_api::wire::{JournalCheck, JournalFound};
use provost_base::visible;

use super::{Block, Cell, Command, Fact, Line, Shown, Tone};

/// Shows a check as blocks alone, for readers without a page. The page has a part of its own for it.
pub fn journal_checked(it: &JournalCheck) -> Shown {
    let mut blocks = match &it.found {
        None => {
            let last = it.last.max(it.checked);
            let text = format!("Checked {} of {last} events. The check ends when it is left.", it.checked);
            vec![Block::Notice(Line { text, tone: Tone::Moving })]
        }
        Some(found) => found_blocks(found),
    };
    blocks.push(Block::Commands {
        title: "At a terminal".into(),
        commands: vec![
            Command::new("The same without the daemon", "provost journal verify"),
            Command::new("Keep the end of it elsewhere", "provost journal head"),
        ],
    });
    Shown::new("Check of the journal", blocks)
}

fn found_blocks(it: &JournalFound) -> Vec<Block> {
    let tone = if it.ok { Tone::Good } else { Tone::Bad };
    let mut facts = vec![Fact::new("checked", Cell::time(Some(&it.at)))];
    let mut count = |name: &str, count: u64| {
        if count > 0 {
            facts.push(Fact::text(name, &count.to_string()));
        }
    };
    count("events checked", it.events);
    count("signatures of passkeys that hold", it.signed);
    count("signatures whose passkey was pruned", it.without_key);
    count("passkeys that no known one has signed for", it.unvouched);
    count("first event that is wrong", it.first_bad.unwrap_or_default());
    facts
        .extend(it.anchor.as_ref().map(|it| Fact::new("anchor of its end", Cell::Code { text: it.clone() })));
    vec![
        Block::Notice(Line { text: visible(&it.says), tone }),
        Block::Facts { title: "What was found".into(), facts },
    ]
}

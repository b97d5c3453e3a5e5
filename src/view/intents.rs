//! Announced changes of agents, places where two agents meet, and contracts that wait for an answer.

use provost_api::wire::{Contract, Intent, Meeting, MeetingSide, Overlap};
use provost_base::{shell_word, visible, visible_name};

use super::block::Empty;
use super::{Block, Cell, Command, Filter, Here, Row, Rows, Shown, Tone, Word};

/// Shows the rows that pass a filter: meetings by severity, pairs that only the changed files show, waiting
/// contracts, and intents; at most `most` of each.
pub fn intents(
    meetings: &[Meeting],
    overlaps: &[Overlap],
    contracts: &[Contract],
    intents: &[Intent],
    filter: &Filter,
    most: usize,
) -> Shown {
    let mut met: Vec<Row> = meetings.iter().filter(|it| meets(it, filter)).map(meeting).collect();
    // A pair that a meeting shows with the words of both agents is not shown again without them.
    let is_told = |it: &Overlap| {
        meetings
            .iter()
            .any(|met| met.file == it.file && met.sides.iter().all(|side| it.agents.contains(&side.agent)))
    };
    let bare = overlaps.iter().filter(|it| !is_told(it));
    met.extend(bare.filter(|it| filter.takes(&[&it.file, &it.agents[0], &it.agents[1]])).map(overlap));
    let waiting = contracts.iter().filter(|it| it.status == "proposed");
    let waiting = waiting.filter(|it| filter.takes(&[&it.symbol, &it.proposer, &it.signature])).map(contract);
    let announced = intents.iter().filter(|it| {
        let files: Vec<&str> = it.files.iter().map(|it| it.path.as_str()).collect();
        filter.takes(&[&it.agent, &it.description, &files.join(" "), &it.symbols.join(" ")])
    });
    let empty = |says: &str, command: Option<&str>| match filter.is_empty() {
        true => Empty::new(says, command),
        false => Empty::new("Nothing passes the filter.", None),
    };
    let blocks = vec![
        list(
            "In each other's way, the gravest first",
            &["Where they meet", "Place", "One", "Has", "Other", "Has"],
            met,
            most,
            empty("No two agents are in the same place.", None),
        ),
        list(
            "Contracts that wait for an answer",
            &["State", "Symbol", "Offered by", "Signature", "Since"],
            waiting.collect(),
            most,
            empty("No contract waits.", Some("provost contract propose src/auth.ts:login --as agent-a")),
        ),
        list(
            "Intents",
            &["State", "Agent", "Change", "Where", "Declared", "Until"],
            announced.map(intent).collect(),
            most,
            empty(
                "No agent has announced a change.",
                Some("provost intent declare \"new parser\" --file src/parse.py"),
            ),
        ),
    ];
    Shown::new("Intents", blocks)
}

fn list(title: &str, columns: &[&'static str], mut rows: Vec<Row>, most: usize, empty: Empty) -> Block {
    let (title, more) = (format!("{title} ({})", rows.len()), rows.len().saturating_sub(most));
    rows.truncate(most);
    Block::List(Rows { title, columns: columns.to_vec(), rows, more, empty })
}

fn meets(it: &Meeting, filter: &Filter) -> bool {
    let words: Vec<String> =
        it.sides.iter().map(|side| format!("{} {} {}", side.agent, side.kind, side.asked)).collect();
    filter.takes(&[&it.file, &it.severity, &words.join(" ")])
}

fn meeting(it: &Meeting) -> Row {
    let state = match it.severity.as_str() {
        "symbol" => Word::new("same symbol", Tone::Bad),
        "caller" => Word::new("calls a symbol that the other changes", Tone::Waiting),
        _ => Word::new("same file", Tone::Waiting),
    };
    let mut cells = vec![Cell::State(state), Cell::code(&it.file)];
    let mut key = it.file.clone();
    for side in it.sides.iter().take(2) {
        key.push_str(&format!(":{}:{}", side.agent, side.kind));
        cells.extend([Cell::code(&side.agent), has(side)]);
    }
    let mut both: Vec<&str> = it.sides.iter().map(|side| side.agent.as_str()).collect();
    both.dedup();
    let commands = vec![
        super::messages::write("Message both", &both),
        Command::new("Look who holds it", format!("provost lock list --file {}", shell_word(&it.file))),
    ];
    let to = match &it.sides[..] {
        // The two sides of a `caller` may be in different files.
        [one, other] if one.agent != other.agent && it.severity != "caller" => {
            Some(super::both::path(&it.file, &one.agent, &other.agent))
        }
        _ => None,
    };
    Row { key, to, cells, commands }
}

/// Says which symbols and lines one side has, in its own words.
fn has(it: &MeetingSide) -> Cell {
    let lines: Vec<String> = it.lines.iter().map(|(from, to)| format!("lines {from} to {to}")).collect();
    let part = it.symbols.iter().map(|it| visible_name(it, 60)).chain(lines).collect::<Vec<_>>().join(", ");
    let part = if part.is_empty() { String::new() } else { format!(" ({part})") };
    Cell::Said { text: format!("{}{part}: {}", visible(&it.kind), visible_name(&it.asked, 200)) }
}

fn overlap(it: &Overlap) -> Row {
    let side = || Cell::text("has changed it");
    Row {
        key: format!("{}:{}", it.file, it.agents.join(":")),
        to: Some(super::both::path(&it.file, &it.agents[0], &it.agents[1])),
        cells: vec![
            Cell::State(Word::new("same file", Tone::Waiting)),
            Cell::code(&it.file),
            Cell::code(&it.agents[0]),
            side(),
            Cell::code(&it.agents[1]),
            side(),
        ],
        commands: vec![super::messages::write("Message both", &[&it.agents[0], &it.agents[1]])],
    }
}

fn contract(it: &Contract) -> Row {
    let id = shell_word(&it.id);
    Row {
        key: it.id.clone(),
        to: None,
        cells: vec![
            Cell::State(Word::new("proposed", Tone::Waiting)),
            Cell::code(&it.symbol),
            Cell::code(&it.proposer),
            Cell::Said { text: visible(&it.signature) },
            Cell::time(Some(&it.proposed_at)),
        ],
        commands: vec![
            Command::new("Accept, as another agent", format!("provost contract accept {id} --as AGENT")),
            Command::new("Reject, as another agent", format!("provost contract reject {id} --as AGENT")),
        ],
    }
}

fn intent(it: &Intent) -> Row {
    let mut places: Vec<String> = match it.symbols.is_empty() {
        true => it.files.iter().map(|it| it.path.clone()).collect(),
        false => it.symbols.clone(),
    };
    let more = places.len().saturating_sub(4);
    places.truncate(4);
    if more > 0 {
        places.push(format!("{more} more"));
    }
    let tone = if it.status == "active" { Tone::Moving } else { Tone::Quiet };
    Row {
        key: it.id.clone(),
        to: None,
        cells: vec![
            Cell::State(Word::new(visible(&it.status), tone)),
            Cell::code(&it.agent),
            Cell::said(&it.description),
            Cell::code(&places.join(", ")),
            Cell::time(Some(&it.declared_at)),
            Cell::Until { at: it.expires_at.clone(), from: None },
        ],
        commands: commands(it),
    }
}

/// Returns the commands about an intent.
pub(super) fn commands(it: &Intent) -> Vec<Command> {
    let line = format!("provost intent update {} abandoned --force", shell_word(&it.id));
    vec![
        Command::new("End by force", line).or_here(Here::end_intent(&it.id)),
        super::messages::write("Message", &[&it.agent]),
    ]
}

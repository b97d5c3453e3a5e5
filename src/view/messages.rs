//! Messages between agents: unanswered questions first, then the messages between each two agents.

use std::collections::BTreeMap;

use provost_api::wire::{Agent, MESSAGED_AT_ONCE_MAX, Post, Question};
use provost_base::{shell_word, visible, visible_name};

use super::block::Empty;
use super::word::is_a_person;
use super::{Block, Cell, Command, Filter, Here, Row, Rows, Shown, Tone, Word};

/// The path of the view that begins with a message.
pub(crate) fn path(n: u64) -> String {
    format!("/messages?before={}", n.saturating_add(1))
}

/// Returns the command that writes the same text to each of these agents, as the person.
pub(crate) fn write(does: &str, to: &[&str]) -> Command {
    let first = match *to {
        [one] => one,
        _ => return Command::new(does, to_each(to)).or_here(Here::message(to)),
    };
    let message = serde_json::json!({
        "type": "agent.feedback", "agent_id": first, "payload": { "from": "user", "errors": ["TEXT"] },
    });
    let line = format!("provost broker publish {}", shell_word(&message.to_string()));
    Command::new(does, line).or_here(Here::message(to))
}

/// Returns the command that answers a question, as the person.
pub(crate) fn answer(question: u64) -> Command {
    Command::new("Answer", format!("provost answer {question} TEXT")).or_here(Here::answer(question))
}

/// The two agents of a thread, by name; the second is empty where a message is for all.
type Pair = (String, String);

/// Shows open questions and a page of messages, newest first, that pass a filter. `limit` is the length of a full page.
pub fn messages(questions: &[Question], posts: &[Post], filter: &Filter, limit: usize, older: bool) -> Shown {
    let mut blocks = Vec::new();
    if !older {
        let asked = questions.iter().filter(|it| filter.takes(&[&it.agent, &it.text]));
        blocks.push(Block::List(Rows {
            title: format!("Questions without an answer ({})", questions.len()),
            columns: vec!["No.", "From", "Question", "When"],
            rows: asked.map(question).collect(),
            more: 0,
            empty: Empty::new("No agent waits for an answer.", None),
        }));
    }
    let mut threads: Vec<(Pair, Vec<Row>)> = Vec::new();
    let mut places: BTreeMap<Pair, usize> = BTreeMap::new();
    // A status tells the state of its agent, which the view of agents shows.
    let said = posts.iter().filter(|it| it.kind != "status");
    for post in
        said.filter(|it| filter.takes(&[&it.from, it.to.as_deref().unwrap_or_default(), &it.said, &it.kind]))
    {
        let pair = pair(post);
        let place = *places.entry(pair.clone()).or_insert_with(|| {
            threads.push((pair, Vec::new()));
            threads.len() - 1
        });
        threads[place].1.push(row(post));
    }
    if threads.is_empty() {
        blocks.push(list("Messages", Vec::new(), filter));
    }
    for ((one, other), rows) in threads {
        let [one, other] = [one, other].map(|it| visible_name(&it, 80));
        let title = if other.is_empty() { format!("{one} to all") } else { format!("{one} and {other}") };
        blocks.push(list(&format!("{title} ({})", rows.len()), rows, filter));
    }
    let mut shown = Shown::new("Messages", blocks);
    let last = posts.last().filter(|_| posts.len() >= limit).map(|it| it.seq);
    shown.next = last.filter(|it| *it > 1).map(|it| format!("/messages?before={it}"));
    shown
}

/// Shows a form to write to all agents that give a sign of life; `None` where there are fewer than two. Where there
/// are many, one signature covers a part of them.
pub fn to_all(agents: &[Agent]) -> Option<Block> {
    let mut there: Vec<&str> =
        agents.iter().filter(|it| it.alive && !is_a_person(&it.id)).map(|it| it.id.as_str()).collect();
    there.sort_unstable();
    let count = there.len();
    if count < 2 {
        return None;
    }
    let part = |(n, part): (usize, &[&str])| {
        let first = n * MESSAGED_AT_ONCE_MAX + 1;
        let does = match count > MESSAGED_AT_ONCE_MAX {
            true => format!("Message agents {first} to {} of {count}", first + part.len() - 1),
            false => format!("Message all {count}"),
        };
        write(&does, part)
    };
    let commands = there.chunks(MESSAGED_AT_ONCE_MAX).enumerate().map(part).collect();
    Some(Block::Commands { title: "To all agents that give a sign of life".into(), commands })
}

/// The text before each command within a loop of a shell.
pub(super) const IN_A_LOOP: &str = "; do provost ";

/// Returns the shell's line that writes the same to each of these agents.
fn to_each(agents: &[&str]) -> String {
    let named = |it: &&str| {
        // The name stands in a string of JSON.
        let quoted = serde_json::Value::from(*it).to_string();
        shell_word(&quoted[1..quoted.len() - 1])
    };
    let names: Vec<String> = agents.iter().map(named).collect();
    let message =
        r#"'{"type":"agent.feedback","agent_id":"'"$agent"'","payload":{"from":"user","errors":["TEXT"]}}'"#;
    format!("for agent in {}{IN_A_LOOP}broker publish {message}; done", names.join(" "))
}

/// Returns the two agents of a thread, in the same order for both directions.
fn pair(post: &Post) -> Pair {
    match &post.to {
        None => (post.from.clone(), String::new()),
        Some(to) if *to < post.from => (to.clone(), post.from.clone()),
        Some(to) => (post.from.clone(), to.clone()),
    }
}

fn list(title: &str, rows: Vec<Row>, filter: &Filter) -> Block {
    let empty = match filter.is_empty() {
        true => Empty::new("No agent has written to another one.", None),
        false => Empty::new("No message of this page passes the filter.", None),
    };
    let columns = vec!["Sender", "No.", "From", "To", "Kind", "Said", "When"];
    Block::List(Rows { title: title.into(), columns, rows, more: 0, empty })
}

fn question(it: &Question) -> Row {
    Row {
        key: format!("question:{}", it.seq),
        to: None,
        cells: vec![
            Cell::text(&it.seq.to_string()),
            Cell::code(&it.agent),
            Cell::Said { text: visible(&it.text) },
            Cell::time(Some(&it.at)),
        ],
        commands: vec![answer(it.seq)],
    }
}

/// Says how sure the sender's identity is: by a word, and never by colour alone.
fn sender(post: &Post) -> Word {
    match post.proof.as_deref() {
        None => Word::new("claims to be", Tone::Waiting),
        Some("own_key") => Word::new("verified by key", Tone::Good),
        Some("token") => Word::new("verified by token", Tone::Good),
        Some("jailed") => Word::new("verified by its jail", Tone::Good),
        Some("terminal" | "desktop" | "passkey") => Word::new("a person", Tone::Good),
        Some("internal") => Word::new("the daemon", Tone::Quiet),
        // A word that only a newer daemon knows proves nothing here.
        Some(other) => Word::new(format!("claims to be ({})", visible_name(other, 20)), Tone::Waiting),
    }
}

/// Returns the command by which a person answers the sender. People have no inbox here, nor has the daemon.
fn replies(post: &Post) -> Vec<Command> {
    match post.proof.as_deref() {
        Some("terminal" | "desktop" | "passkey" | "internal") => Vec::new(),
        _ => vec![write("Reply", &[&post.from])],
    }
}

fn row(post: &Post) -> Row {
    Row {
        key: format!("message:{}", post.seq),
        to: None,
        cells: vec![
            Cell::State(sender(post)),
            Cell::text(&post.seq.to_string()),
            Cell::code(&post.from),
            Cell::code(post.to.as_deref().unwrap_or("all")),
            Cell::text(&post.kind),
            // The text keeps its lines.
            Cell::Said { text: visible(&post.said) },
            Cell::time(Some(&post.at)),
        ],
        commands: replies(post),
    }
}

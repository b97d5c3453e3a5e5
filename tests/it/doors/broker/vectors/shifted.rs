//! Numbers behind a listed difference: a message that only one of the two takes moves all that come after it. What is
//! recorded is moved along, and then has to hold like everything else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{fits, parsed};

/// Anything at all.
pub(super) const ANY: &str = "<ANY>";

/// Messages that ours refuses, by their exchanges.
const REFUSED: [(&str, &[u64]); 3] =
    [("http-surface", &[10, 58, 59]), ("agent-id", &[38]), ("variants", &[63])];

/// A message that ours takes and git-paw's broker does not.
struct Taken {
    exchange: u64,
    /// As it is delivered.
    message: Value,
    /// To whose inboxes.
    to: &'static [&'static str],
    /// Its line in the log, without the number.
    line: &'static str,
}

fn taken(group: &str) -> Vec<Taken> {
    let working = |agent: &str| {
        json!({ "type": "agent.status", "agent_id": agent,
            "payload": { "status": "working", "modified_files": [], "message": null } })
    };
    match group {
        "http-surface" => vec![Taken {
            exchange: 11,
            message: working("feat-aa"),
            to: &[],
            line: "<TS> [feat-aa] [feat-aa] status: working (0 files modified)",
        }],
        "agent-id" => vec![Taken {
            exchange: 18,
            message: working("feat-my_feature"),
            to: &[],
            line: "<TS> [feat-my_feature] [feat-my_feature] status: working (0 files modified)",
        }],
        "variants" => vec![
            Taken {
                exchange: 106,
                message: json!({ "type": "agent.intent", "agent_id": "feat-aa",
                    "payload": { "files": ["src/a.rs"], "summary": "s", "valid_for_seconds": 900 } }),
                to: &["feat-bb", "supervisor"],
                line: "<TS> [feat-aa] [feat-aa] intent: 1 files for 900s \u{2014} s",
            },
            Taken {
                exchange: 138,
                message: json!({ "type": "agent.learning", "payload": { "id": ANY, "agent_id": "feat-aa",
                    "category": "permission_pattern", "title": ANY, "timestamp": ANY,
                    "body": "cross-worktree contamination: commit abc landed on 'x' instead of expected 'y'" } }),
                to: &["supervisor"],
                line: "<TS> [feat-aa] [feat-aa] learning (permission_pattern/*): \
                       cross-worktree contamination: commit abc landed on 'x' instead of expected 'y'",
            },
        ],
        _ => Vec::new(),
    }
}

/// The recording of a group, with Provost's numbers.
pub(super) struct Shifted {
    /// Recorded numbers, and which they are here.
    numbers: BTreeMap<u64, u64>,
    /// Messages of ours alone, by their numbers.
    taken: BTreeMap<u64, Taken>,
    /// The recorded log, by our numbers.
    entries: BTreeMap<u64, Value>,
}

impl Shifted {
    /// None where nothing is moved.
    pub(super) fn of(group: &str, exchanges: &[Value]) -> Option<Self> {
        let (_, refused) = REFUSED.iter().find(|(it, _)| *it == group)?;
        let mut more: BTreeMap<u64, Taken> = taken(group).into_iter().map(|it| (it.exchange, it)).collect();
        let (mut theirs, mut ours) = (0, 0);
        let (mut numbers, mut taken) = (BTreeMap::new(), BTreeMap::new());
        for it in exchanges.iter().filter(|it| it["path"] == "/publish") {
            let k = it["k"].as_u64().unwrap();
            let was_taken = it["status"] == 202;
            theirs += u64::from(was_taken);
            if was_taken && !refused.contains(&k) {
                ours += 1;
                numbers.insert(theirs, ours);
            } else if let Some(it) = more.remove(&k) {
                ours += 1;
                taken.insert(ours, it);
            }
        }
        let log = exchanges.iter().rfind(|it| it["path"] == "/log?since=0");
        let log = log.and_then(|it| parsed(it["answer"].as_str()?)).unwrap_or_default();
        let entries = log["entries"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| Some((*numbers.get(&it["seq"].as_u64()?)?, it["message"].clone())));
        Some(Self { entries: entries.collect(), numbers, taken })
    }

    /// Whether an answer is the recorded one with our numbers.
    pub(super) fn explains(&self, it: &Value, status: u16, body: &[u8]) -> bool {
        let path = it["path"].as_str().unwrap_or_default();
        let recorded = it["answer"].as_str().and_then(parsed);
        let (Some(recorded), Ok(got)) = (recorded, serde_json::from_slice::<Value>(body)) else {
            return false;
        };
        let expected = match path.strip_prefix("/messages/").and_then(|it| it.split_once("?since=0")) {
            Some((agent, "")) => self.inbox(agent, &recorded),
            _ if path == "/log?since=0" => self.log(),
            _ => return false,
        };
        status == 200 && fits(&expected, &got)
    }

    /// An inbox: the recorded messages, which are all in the log, without those that are refused here, and with those
    /// that are taken here.
    fn inbox(&self, agent: &str, recorded: &Value) -> Value {
        let mut found: BTreeMap<u64, Value> = BTreeMap::new();
        let mut after = 0;
        for message in recorded["messages"].as_array().into_iter().flatten() {
            let next = self.entries.range(after + 1..).find(|(_, it)| *it == message);
            if let Some((n, it)) = next {
                found.insert(*n, it.clone());
                after = *n;
            }
        }
        let mine = self.taken.iter().filter(|(_, it)| it.to.contains(&agent));
        found.extend(mine.map(|(n, it)| (*n, it.message.clone())));
        let last = found.last_key_value().map_or(0, |(n, _)| *n);
        json!({ "messages": found.into_values().collect::<Vec<_>>(), "last_seq": last })
    }

    fn log(&self) -> Value {
        let mine = self.taken.iter().map(|(n, it)| (*n, it.message.clone()));
        let all: BTreeMap<u64, Value> = self.entries.clone().into_iter().chain(mine).collect();
        let last = all.last_key_value().map_or(0, |(n, _)| *n);
        let entries: Vec<Value> = all
            .into_iter()
            .map(|(n, message)| json!({ "seq": n, "timestamp_unix_secs": "<TS>", "message": message }))
            .collect();
        json!({ "entries": entries, "last_seq": last })
    }

    /// The lines of the log. A line break in a message is escaped here, and makes no line of its own.
    pub(super) fn lines(&self, recorded: &[String]) -> Vec<String> {
        let mut whole: Vec<String> = Vec::new();
        for line in recorded {
            let number = line.strip_prefix('[').and_then(|it| it.split_once("] <TS> "));
            match (number.and_then(|(n, _)| n.parse::<u64>().ok()), whole.last_mut()) {
                (None, Some(begun)) => *begun += &format!("\\n{line}"),
                _ => whole.push(line.clone()),
            }
        }
        let ours = |line: &String| {
            let (n, rest) = line.strip_prefix('[')?.split_once("] ")?;
            Some((*self.numbers.get(&n.parse().ok()?)?, rest.to_owned()))
        };
        let mut lines: BTreeMap<u64, String> = whole.iter().filter_map(ours).collect();
        lines.extend(self.taken.iter().map(|(n, it)| (*n, it.line.to_owned())));
        lines.into_iter().map(|(n, rest)| format!("[{n}] {rest}")).collect()
    }
}

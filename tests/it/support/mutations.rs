//! Recorded messages of the Agent Client Protocol, changed at random, and in the same way in each run.

use serde_json::Value;

/// Messages of real agents and clients, as recorded; `$REPO` stands for the repository.
const RECORDED: &str = include_str!("../vectors/acp/recorded.jsonl");

/// How many at each side; `PROVOST_ACP_MUTATED` says another number.
const MUTATED: usize = 10_000;

/// How many messages a test changes at its side.
pub(crate) fn count() -> usize {
    std::env::var("PROVOST_ACP_MUTATED").ok().and_then(|it| it.parse().ok()).unwrap_or(MUTATED)
}

/// Numbers that are the same in each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }
}

/// A value with something else in the place of one of its parts.
fn changed(value: &mut Value, dice: &mut Dice, others: &[Value]) {
    let inner = match value {
        Value::Object(members) if !members.is_empty() => {
            let at = dice.below(members.len());
            let name = members.keys().nth(at).unwrap().clone();
            match dice.below(8) {
                0 => return drop(members.remove(&name)),
                1 => {
                    let it = members.remove(&name).unwrap();
                    return drop(members.insert(format!("{name}x"), it));
                }
                _ => members.get_mut(&name).unwrap(),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            &mut items[at]
        }
        it => {
            let odd = [
                Value::Null,
                Value::Bool(true),
                serde_json::json!(-1),
                serde_json::json!(1.5e300),
                serde_json::json!("\u{0}\u{202e}../../etc/passwd"),
                serde_json::json!([[[]]]),
                serde_json::json!({}),
            ];
            let at = dice.below(odd.len() + 1);
            *it = odd.get(at).cloned().unwrap_or_else(|| others[dice.below(others.len())].clone());
            return;
        }
    };
    changed(inner, dice, others);
}

/// A message that is still a value, and says something else.
pub(crate) fn changed_somewhere(mut message: Value, dice: &mut Dice, others: &[Value]) -> Value {
    for _ in 0..=dice.below(3) {
        changed(&mut message, dice, others);
    }
    message
}

/// One of these messages.
pub(crate) fn one_of(messages: &[Value], dice: &mut Dice) -> Value {
    messages[dice.below(messages.len())].clone()
}

/// A line that was changed as a value, or byte by byte.
pub(crate) fn mutated(messages: &[Value], dice: &mut Dice) -> Vec<u8> {
    let message = one_of(messages, dice);
    if dice.below(4) > 0 {
        return changed_somewhere(message, dice, messages).to_string().into_bytes();
    }
    let mut line = message.to_string().into_bytes();
    for _ in 0..=dice.below(4) {
        let at = dice.below(line.len());
        match dice.below(4) {
            0 => line[at] = u8::try_from(dice.below(256)).unwrap(),
            1 => line.truncate(at),
            2 => drop(line.remove(at)),
            _ => line.insert(at, b"{}[]\",:\\0-"[dice.below(10)]),
        }
        if line.is_empty() {
            line.push(b'x');
        }
    }
    line.retain(|it| *it != b'\n');
    line
}

/// Returns the recorded messages of one side: `c2a` is the client, `a2c` the agent.
pub(crate) fn messages(repo: &str, dir: &str) -> Vec<Value> {
    let lines = RECORDED.lines().map(|it| it.replace("$REPO", repo));
    let all = lines.map(|it| serde_json::from_str::<Value>(&it).unwrap());
    all.filter(|it| it["dir"] == dir).map(|it| it["msg"].clone()).collect()
}

//! A filter of lists as a person types it: words that each row must contain, `state:`, `worker:`, `by:` and `since:`
//! before a value among tasks, and `way:` before a file or a symbol among locks.

use provost_api::wire::{Task, TaskPageQuery};

/// A filter. All of its parts have to hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    words: Vec<String>,
    fields: Vec<(Field, String)>,
    /// A file or a symbol; the answer lists the agents that would be in the way there.
    way: Option<String>,
    /// The time within which a task must have changed, in milliseconds.
    within_ms: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    State,
    Worker,
    By,
}

/// Reads a time such as `90s`, `30m`, `2h` or `7d` as milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

impl Filter {
    /// Reads a filter. Every text is a filter: a field with an unknown name is a word like any other.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self::default();
        for part in text.split_whitespace() {
            if let Some(place) = part.strip_prefix("way:").filter(|it| !it.is_empty()) {
                filter.way = Some(place.to_owned());
                continue;
            }
            if let Some(within) = part.strip_prefix("since:").and_then(milliseconds) {
                filter.within_ms = Some(within);
                continue;
            }
            let part = part.to_lowercase();
            let field = part.split_once(':').and_then(|(name, value)| {
                let field = match name {
                    "state" => Field::State,
                    "worker" => Field::Worker,
                    "by" => Field::By,
                    _ => return None,
                };
                Some((field, value.to_owned()))
            });
            match field {
                Some(field) => filter.fields.push(field),
                None => filter.words.push(part),
            }
        }
        filter
    }

    /// Checks whether it lets everything pass.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.fields.is_empty() && self.way.is_none() && self.within_ms.is_none()
    }

    /// Returns the file or symbol of `way:`; the answer lists the agents that would be in the way of a change there.
    pub fn way(&self) -> Option<&str> {
        self.way.as_deref()
    }

    /// Returns the same as a query for a page of tasks. A state may be typed in part; an unknown state matches no task.
    pub fn task_query(&self) -> TaskPageQuery {
        let field =
            |wanted: Field| self.fields.iter().find(|(it, _)| *it == wanted).map(|(_, value)| value.clone());
        let state = field(Field::State).map(|typed| {
            let known = [
                "awaiting",
                "running",
                "assigned",
                "queued",
                "retrying",
                "waiting",
                "completed",
                "failed",
                "cancelled",
            ];
            known.iter().find(|it| it.contains(typed.as_str())).map_or(typed, |it| (*it).to_owned())
        });
        TaskPageQuery {
            state,
            worker: field(Field::Worker),
            by: field(Field::By),
            text: Some(self.words.join(" ")),
            within_ms: self.within_ms,
            ..TaskPageQuery::default()
        }
    }

    /// Checks whether a task passes.
    pub fn takes_task(&self, task: &Task) -> bool {
        self.fields.iter().all(|(field, value)| {
            let has = match field {
                Field::State => &task.state,
                Field::Worker => &task.worker,
                Field::By => &task.asked_by,
            };
            has.to_lowercase().contains(value.as_str())
        }) && self.takes(&[&task.id, &task.goal, &task.worker, &task.asked_by, &task.state])
    }

    /// Checks whether a row with these texts passes: each word stands in one of them. Fields are for tasks alone, and are words here.
    pub fn takes(&self, texts: &[&str]) -> bool {
        let texts: Vec<String> = texts.iter().map(|it| it.to_lowercase()).collect();
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }
}

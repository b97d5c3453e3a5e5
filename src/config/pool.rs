//! The entries of `[pool.<name>]`: workers that share places.
//!
//! A pool is a bound, so a wrong entry is an error and is not left out. A repository's file may have none.

use std::collections::BTreeMap;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::load::{Broken, File, Loading, Severity, join};
use super::table::{key, section};
use super::value::{Context, Mark, Row, Value, checked, lists, quoted, text};
use super::worker::{WorkerKind, unknown};
use provost_base::AgentId;
use provost_base::limits::{LABEL_LEN_MAX, POOL_WAITING_MAX, POOLS_MAX};

section! {
    /// One `[pool.<name>]` entry: workers that the daemon starts and that share places. `provost delegate --pool NAME` gives a task to the one of them that has the least to do.
    PoolEntry {
        /// The workers and agents that are in the pool; each is in one pool at the most.
        workers: Vec<AgentId> = Vec::new(), "ident", Required, Strict;
        /// How many of their tasks run at once, on all hosts together; further tasks wait their turn.
        concurrent: u32 = 1, "tasks" within 1..=256, Strict;
        /// How many of their tasks may wait for a place; further ones are refused.
        waiting: u32 = 1_000, "tasks" within 1..=POOL_WAITING_MAX, Strict;
    }
}

/// A word that describes a host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct HostLabel(pub String);

lists! { HostLabel => "list of labels" }

impl FromStr for HostLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |it: u8| it.is_ascii_alphanumeric() || b"._-".contains(&it);
        match (1..=LABEL_LEN_MAX).contains(&text.len()) && text.bytes().all(plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "{text:?} is no label: use at most {LABEL_LEN_MAX} letters, digits, `-`, `_` and `.`"
            )),
        }
    }
}

impl Value for HostLabel {
    const NAME: &'static str = "label";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        text(value)?.parse()
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

/// A pool as it is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The workers of the pool.
    pub workers: Vec<AgentId>,
    /// The number of their tasks that may run at once.
    pub concurrent: u32,
    /// The number of their tasks that may wait.
    pub waiting: u32,
}

impl Loading {
    /// Reads the entries of `[pool]`; each replaces the entry of an earlier file with the same name.
    pub(super) fn pools(&mut self, file: &File<'_>, entries: &DeTable<'_>) -> Result<(), Broken> {
        for (name, entry) in entries {
            let (name, at) = (name.get_ref().to_string(), name.span().start);
            let full = join("pool", &name);
            if file.foreign {
                let message = "is ignored: a repository may not set it; put it into your own configuration";
                self.note(file, at, &full, message.into(), Severity::Warning);
                continue;
            }
            let is_full =
                self.done.config.pools.len() >= POOLS_MAX && !self.done.config.pools.contains_key(&name);
            let read = match entry.get_ref() {
                _ if is_full => Err(format!("there may be at most {POOLS_MAX} pools")),
                _ if !super::notify::is_name(&name) => {
                    Err("the name has other characters than letters, digits, `-` and `_`, or more than 64"
                        .into())
                }
                DeValue::Table(table) => pool(file, table),
                other => Err(format!("expected a table, found {}", other.type_str())),
            };
            match read {
                Ok(pool) => {
                    self.done.config.pools.insert(name, pool);
                    self.done.origins.insert(full, file.name.into());
                }
                Err(why) => return Err(self.broken_at(file, at, &full, why)),
            }
        }
        Ok(())
    }

    /// Checks pools against the workers, which may come from other files.
    ///
    /// # Errors
    /// [`Broken`] for a worker that is in two pools, or that starts by itself.
    pub(super) fn check_pools(&mut self) -> Result<(), Broken> {
        let config = &self.done.config;
        let mut of: BTreeMap<&AgentId, &str> = BTreeMap::new();
        let mut wrong = None;
        let mut absent = Vec::new();
        for (name, pool) in &config.pools {
            for worker in &pool.workers {
                if let Some(other) = of.insert(worker, name) {
                    wrong = Some((
                        name,
                        format!(
                            "{worker} is in the pool {other} already; a worker is in one pool at the most"
                        ),
                    ));
                }
                let kind = config.workers.get(worker).map(|it| it.kind);
                if kind == Some(WorkerKind::Polling) {
                    let why = format!(
                        "{worker} is of type `polling` and begins by itself, so that no pool can hold it back; take it out"
                    );
                    wrong = Some((name, why));
                }
                if kind.is_none() && !config.refused_workers.contains_key(worker.as_str()) {
                    absent.push((
                        name.clone(),
                        format!("names {worker}, which is no worker and no agent of the configuration"),
                    ));
                }
            }
        }
        let named = |name: &String| {
            (self.done.origins.get(&join("pool", name)).cloned().unwrap_or_default(), join("pool", name))
        };
        if let Some((name, message)) = wrong {
            let (file, key) = named(name);
            return Err(self.broken_of(&file, &key, message));
        }
        let notes: Vec<_> = absent.into_iter().map(|(name, message)| (named(&name), message)).collect();
        for ((file, key), message) in notes {
            self.note_of(&file, &key, message, Severity::Warning);
        }
        Ok(())
    }
}

fn pool(file: &File<'_>, table: &DeTable<'_>) -> Result<Pool, String> {
    let (mut entry, rows) = (PoolEntry::default(), PoolEntry::rows());
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        match entry.set(name, value.get_ref(), &file.context) {
            Some(result) => result.map_err(|why| format!("`{name}`: {why}"))?,
            None => return Err(format!("`{name}` {}", unknown(name, &rows, "a pool")?)),
        }
    }
    let mut workers = entry.workers;
    workers.sort();
    workers.dedup();
    if workers.is_empty() {
        return Err("`workers` is missing: name the workers that are in the pool".into());
    }
    Ok(Pool { workers, concurrent: entry.concurrent, waiting: entry.waiting })
}

//! Pending and due requests: each is sent once at a time, and after a change at most four times a second.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::UiRequest;

/// The least time between two requests that changes have caused, in milliseconds.
const REST_MS: i64 = 250;

type Key = (usize, UiRequest);

/// The action after an answer that has not come yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    AskSoon,
    AskAtOnce,
}

/// The requests.
#[derive(Default)]
pub(crate) struct Loads {
    /// Sent, and not answered yet.
    asked: BTreeMap<Key, Then>,
    /// To be sent at a moment.
    later: BTreeMap<Key, i64>,
    /// To be sent at once.
    now: BTreeSet<Key>,
    /// The moment at which each was last sent; old ones are left out.
    last: BTreeMap<Key, i64>,
}

impl Loads {
    /// Sends a request at once, or as soon as the pending answer to the same request has come.
    pub(crate) fn ask(&mut self, repository: usize, asked: UiRequest) {
        let key = (repository, asked);
        self.later.remove(&key);
        match self.asked.get_mut(&key) {
            Some(then) => *then = Then::AskAtOnce,
            None => {
                self.now.insert(key);
            }
        }
    }

    /// Sends a request now, or after a rest where it was sent just before: more may change until then.
    pub(crate) fn ask_soon(&mut self, repository: usize, asked: UiRequest, now_ms: i64) {
        let key = (repository, asked);
        match self.asked.get_mut(&key) {
            Some(then) if *then == Then::Nothing => *then = Then::AskSoon,
            Some(_) => {}
            None => self.put(key, now_ms),
        }
    }

    fn put(&mut self, key: Key, now_ms: i64) {
        let at = self.last.get(&key).map_or(now_ms, |at| at.saturating_add(REST_MS).max(now_ms));
        if !self.now.contains(&key) {
            self.later.entry(key).or_insert(at);
        }
    }

    /// Records that an answer has come.
    pub(crate) fn done(&mut self, repository: usize, asked: &UiRequest, now_ms: i64) {
        let key = (repository, asked.clone());
        match self.asked.remove(&key) {
            Some(Then::AskAtOnce) => {
                self.now.insert(key);
            }
            Some(Then::AskSoon) => self.put(key, now_ms),
            _ => {}
        }
    }

    /// Drops the requests to a daemon that has gone.
    pub(crate) fn forget(&mut self, repository: usize) {
        self.later.retain(|key, _| key.0 != repository);
        self.now.retain(|key| key.0 != repository);
        self.asked
            .iter_mut()
            .filter(|(key, _)| key.0 == repository)
            .for_each(|(_, then)| *then = Then::Nothing);
    }

    /// Returns the requests that are due.
    pub(crate) fn due(&mut self, now_ms: i64) -> Vec<Key> {
        let later: Vec<Key> =
            self.later.iter().filter(|(_, at)| **at <= now_ms).map(|(key, _)| key.clone()).collect();
        for key in later {
            self.later.remove(&key);
            self.now.insert(key);
        }
        let due: Vec<Key> = std::mem::take(&mut self.now).into_iter().collect();
        self.last.retain(|_, at| at.saturating_add(REST_MS) > now_ms);
        self.last.extend(due.iter().map(|key| (key.clone(), now_ms)));
        self.asked.extend(due.iter().map(|key| (key.clone(), Then::Nothing)));
        due
    }

    /// Returns the next moment at which a request is due.
    pub(crate) fn next(&self) -> Option<i64> {
        self.later.values().min().copied()
    }
}

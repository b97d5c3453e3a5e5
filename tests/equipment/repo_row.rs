//! The seal of a repository's row in PostgreSQL, made outside of the product: from the journal's key, by the documented text.

use std::io;

use provost_base::Digest;
use ring::hmac;
use serde_json::Value;

/// The columns of a row as text, in the order of [`RepoRow::parse`].
pub const COLUMNS: &str = "id, n, encode(mac, 'hex'), event, encode(event_mac, 'hex'), pruned_to, finished, searched_to, checkpoint, at, system, \
                           timeline, counters::text";

/// What the seal is over.
#[derive(Clone)]
pub struct RepoRow {
    /// The repository's number.
    pub id: i32,
    /// The last entry of the log, with its link.
    pub entry: (u64, Digest),
    /// The last event of the journal, with its link.
    pub event: (u64, Digest),
    /// The last event whose text may be missing.
    pub pruned_to: u64,
    /// The place of the last finished task.
    pub finished: i64,
    /// The last event in the index of words.
    pub searched_to: u64,
    /// The event of the last checkpoint.
    pub checkpoint: u64,
    /// The newest time, in milliseconds.
    pub at: i64,
    /// The server.
    pub system: String,
    /// The branch of the server's history.
    pub timeline: u64,
    /// The numbers that were given last, as JSON.
    pub counters: String,
}

impl RepoRow {
    /// Reads a row of [`COLUMNS`], with a `|` between two of them.
    ///
    /// # Errors
    /// When it is no such row.
    pub fn parse(row: &str) -> io::Result<Self> {
        let columns: Vec<&str> = row.splitn(13, '|').collect();
        let [
            id,
            n,
            mac,
            event,
            event_mac,
            pruned_to,
            finished,
            searched_to,
            checkpoint,
            at,
            system,
            timeline,
            counters,
        ] = columns[..]
        else {
            return Err(io::Error::other(format!("no row of a repository: {row}")));
        };
        Ok(Self {
            id: number(id)?,
            entry: (number(n)?, digest(mac)?),
            event: (number(event)?, digest(event_mac)?),
            pruned_to: number(pruned_to)?,
            finished: number(finished)?,
            searched_to: number(searched_to)?,
            checkpoint: number(checkpoint)?,
            at: number(at)?,
            system: system.to_owned(),
            timeline: number(timeline)?,
            counters: counters.to_owned(),
        })
    }

    /// What an SQL statement sets for a row to be this one, with its seal.
    ///
    /// # Errors
    /// As for [`RepoRow::seal`].
    pub fn sets(&self, journal_key: &[u8]) -> io::Result<String> {
        Ok(format!(
            "n = {}, mac = '\\x{}', event = {}, event_mac = '\\x{}', pruned_to = {}, finished = {}, searched_to = {}, checkpoint = {}, at = {},
             system = '{}', timeline = {}, counters = '{}', seal = '\\x{}'",
            self.entry.0,
            self.entry.1,
            self.event.0,
            self.event.1,
            self.pruned_to,
            self.finished,
            self.searched_to,
            self.checkpoint,
            self.at,
            self.system,
            self.timeline,
            self.counters,
            self.seal(journal_key)?,
        ))
    }

    /// The seal with a journal's key, in hexadecimal digits. docs/hosts.md.
    ///
    /// # Errors
    /// When the counters are no JSON.
    pub fn seal(&self, journal_key: &[u8]) -> io::Result<String> {
        let told: Value = serde_json::from_str(&self.counters)?;
        let mut counters: Vec<String> =
            told.as_object().into_iter().flatten().map(|(name, it)| format!("\"{name}\":{it}")).collect();
        counters.sort();
        let counters = format!("{{{}}}", counters.join(","));
        let number = |it: u64| it.to_le_bytes();
        let text = Digest::of_fields([
            &self.id.to_le_bytes()[..],
            &number(self.entry.0),
            self.entry.1.as_bytes(),
            &number(self.event.0),
            self.event.1.as_bytes(),
            &number(self.pruned_to),
            counters.as_bytes(),
            &self.finished.to_le_bytes(),
            &number(self.searched_to),
            &number(self.checkpoint),
            &self.at.to_le_bytes(),
            self.system.as_bytes(),
            &number(self.timeline),
        ]);
        let key = hmac::Key::new(hmac::HMAC_SHA256, journal_key);
        let seal = hmac::sign(&key, &[b"provost-repository-v1".as_slice(), text.as_bytes()].concat());
        Ok(seal.as_ref().iter().map(|it| format!("{it:02x}")).collect())
    }
}

fn number<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(text: &str) -> io::Result<T> {
    text.parse().map_err(io::Error::other)
}

fn digest(hex: &str) -> io::Result<Digest> {
    Digest::try_from(hex.to_owned()).map_err(|_| io::Error::other("no digest"))
}

//! A machine that has turned: it has the journal's key, a login to the database and its own key, and writes what no daemon has decided.

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use provost::base::{DaemonId, Digest, EntryNo, EventSeq, HostId, Json, Secret, Timestamp};
use provost::domain::{Change, Event, EventKind, Outbox, provost};
use provost::store::journal::Key;
use provost::store::{Anchor, ENTRY_FORMAT, Head, StoredEvent};
pub(crate) use provost_test_equipment::host_signature::{Own, to_sign};
use serde_json::Value;
use sha2::Sha256;

use super::World;
use super::machines::{Machines, state_dir};
use super::waits::until_some;

/// An event that says nothing.
pub(crate) fn recorded() -> EventKind {
    let details = Json::parse("{}").expect("JSON");
    EventKind::Recorded { what: "forged".into(), subject: "forged".into(), details }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits")).collect()
}

pub(crate) fn digest(hex: &str) -> Digest {
    Digest::from_bytes(bytes(hex).try_into().expect("a digest"))
}

/// The own key of a world's machine.
pub(crate) fn own(world: &World) -> Own {
    Own::of(&state_dir(world)).expect("it has a key")
}

/// The signature of a world's machine under parts that it leaves for others, sealed with this journal's key. docs/hosts.md.
pub(crate) fn signed(by: &World, journal_key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut seal = Hmac::<Sha256>::new_from_slice(journal_key).expect("any key");
    parts.iter().for_each(|it| seal.update(it));
    let text = [b"provost-host-seal-v1".as_slice(), &seal.finalize().into_bytes()].concat();
    own(by).pair.sign(&text).as_ref().to_vec()
}

/// A forger that has the journal's key and the database, in the place of a daemon.
pub(crate) struct Forger<'a> {
    machines: &'a Machines,
    secret: Secret,
    key: Key,
    print: Digest,
}

/// The end of log and journal before an entry, so that it can be taken out again.
pub(crate) struct Before {
    pub(crate) n: u64,
    mac: Digest,
    event: Anchor,
    counters: String,
}

impl<'a> Forger<'a> {
    pub(crate) fn with_key_of(machines: &'a Machines, world: &World) -> Self {
        let secret = std::fs::read(state_dir(world).join("journal.key")).expect("the journal's key");
        let secret = Secret::new(secret);
        let print = digest(&machines.sql("select key_print from provost.repo"));
        Self { machines, key: Key::new(&secret), secret, print }
    }

    /// Adds the row which says that a host was removed with the first entry, sealed with the journal's key; signed by `by`, or by none.
    pub(crate) fn removal(&self, gone: HostId, by: Option<&Own>) {
        let (n, event, host) = (1_u64.to_le_bytes(), 1_u64.to_le_bytes(), gone.to_string());
        let mut seal = self.secret.mac();
        seal.update(b"provost-host-key-v1");
        let fields: [&[u8]; 5] = [&n, &event, host.as_bytes(), b"gone", b"null"];
        seal.update(Digest::of_fields(fields).as_bytes());
        let seal = hex(&seal.finalize().into_bytes());
        let mut body = serde_json::json!({ "seal": seal });
        if let Some(by) = by {
            let text =
                [b"provost-host-removes-v1", self.print.as_bytes().as_slice(), host.as_bytes(), &n, &event]
                    .concat();
            body["removed"] = serde_json::json!([by.host, hex(by.pair.sign(&text).as_ref())]);
        }
        self.machines.sql(&format!(
            "insert into provost.host_key (repo, host, what, n, event, body) select id, '{host}', 'gone', 1, 1, '{body}' from provost.repo"
        ));
    }

    fn before(&self) -> Before {
        let sql =
            "select n, encode(mac, 'hex'), event, encode(event_mac, 'hex'), counters::text from provost.repo";
        let row = self.machines.sql(sql);
        let columns: Vec<&str> = row.splitn(5, '|').collect();
        Before {
            n: columns[0].parse().expect("a number"),
            mac: digest(columns[1]),
            event: Anchor { seq: EventSeq(columns[2].parse().expect("a number")), mac: digest(columns[3]) },
            counters: columns[4].to_owned(),
        }
    }

    /// Writes an entry that names this host, whose chain holds, with what `sign` makes of the text that a host signs. The daemons are
    /// kept from the row meanwhile.
    pub(crate) fn write(
        &self,
        named: HostId,
        kinds: Vec<EventKind>,
        changes: Vec<Change>,
        sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Before {
        let before = until_some("no daemon writes", || {
            let before = self.before();
            // Nothing but two looks tells it.
            std::thread::sleep(Duration::from_millis(300));
            (self.before().n == before.n).then_some(before)
        });
        let mut events = Vec::new();
        let mut seq = before.event.seq;
        for kind in kinds {
            seq = seq.next();
            events.push(Event { seq, at: Timestamp(1_795_000_000_000), actor: provost(), kind, host: named });
        }
        let linked = self.key.extend(&before.event, &events).expect("a chain");
        let mut batch = Outbox::default();
        (batch.events, batch.changes) = (events, changes);
        let by = DaemonId { host: named, incarnation: 1 };
        let head = Head { n: EntryNo(before.n), mac: before.mac };
        let entry = self
            .key
            .entry(&head, (by, 900_000 + before.n), (Timestamp(1), ENTRY_FORMAT), &batch)
            .expect("an entry");
        let last = linked.last().expect("an event");
        let (n, seq) = (entry.n.0, last.seq.0);
        let text = to_sign(&self.print, (n, &entry.mac), (seq, &last.mac));
        let signed = sign(&text).map_or("null".to_owned(), |it| format!("decode('{}', 'hex')", hex(&it)));
        let kept = match &*signed {
            "null" => "select 1".to_owned(),
            signed => format!(
                "insert into provost.signature select id, {seq}, {n}, '{named}', decode('{}', 'hex'), {signed} from provost.repo",
                hex(entry.mac.as_bytes())
            ),
        };
        let rows = rows_of(&linked);
        self.machines.sql(&format!(
            "begin; select 1 from provost.repo for update; {rows}
             insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig)
                 select id, {n}, '{named}', 1, {}, 1, 1, '{}', decode('{}', 'hex'), {signed} from provost.repo;
             {kept};
             update provost.repo set n = {n}, mac = decode('{}', 'hex'), event = {seq}, event_mac = decode('{}', 'hex'),
                 counters = jsonb_set(counters, '{{event}}', '{seq}') where n = {};
             commit",
            entry.own_n,
            entry.body.replace('\'', "''"),
            hex(entry.mac.as_bytes()),
            hex(entry.mac.as_bytes()),
            hex(last.mac.as_bytes()),
            before.n,
        ));
        before
    }

    /// Takes what came after that out again, as the administrator who has a copy could.
    pub(crate) fn take_out(&self, before: &Before) {
        let (n, seq) = (before.n, before.event.seq.0);
        self.machines.sql(&format!(
            "begin; select 1 from provost.repo for update; delete from provost.signature where event > {seq};
             delete from provost.entry where n > {n}; delete from provost.event where seq > {seq};
             update provost.repo set n = {n}, mac = decode('{}', 'hex'), event = {seq}, event_mac = decode('{}', 'hex'),
                 counters = '{}'::jsonb; commit",
            hex(before.mac.as_bytes()),
            hex(before.event.mac.as_bytes()),
            before.counters,
        ));
    }
}

/// The statements that put these events into the journal.
fn rows_of(events: &[StoredEvent]) -> String {
    let mut rows = String::new();
    for it in events {
        rows.push_str(&format!(
            "insert into provost.event (repo, seq, at, kind, actor, task, body, hash, mac)
                 select id, {}, {}, '{}', '{}', {}, '{}', decode('{}', 'hex'), decode('{}', 'hex') from provost.repo;",
            it.seq.0,
            it.at.0,
            it.kind,
            it.actor.as_str(),
            it.task.as_ref().map_or("null".to_owned(), |task| format!("'{}'", task.as_str())),
            it.body.as_deref().expect("a body").replace('\'', "''"),
            hex(it.hash.as_bytes()),
            hex(it.mac.as_bytes()),
        ));
    }
    rows
}

/// Has a machine forget the entry that it refuses, as no command does.
pub(crate) fn forget(world: &World) {
    let hosts = state_dir(world).join("hosts.json");
    let known = std::fs::read_to_string(&hosts).expect("what it knows");
    let mut known: Value = serde_json::from_str(&known).expect("its form");
    known.as_object_mut().expect("an object").remove("refused").expect("it is remembered");
    std::fs::write(&hosts, known.to_string()).expect("it is written");
}

//! A machine that has turned: it has the journal's key, a login to the database and its own key, and writes what no daemon has decided.

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use provost::base::{DaemonId, Digest, EntryNo, EventSeq, HostId, Json, Secret, Timestamp};
use provost::domain::{Change, Event, EventKind, Outbox, provost};
use provost::store::journal::Key;
use provost::store::{Anchor, ENTRY_FORMAT, Head, StoredEvent, migrate};
pub(crate) use provost_test_equipment::host_signature::{Own, to_sign};
use provost_test_equipment::repo_row::{COLUMNS, RepoRow};
use ring::signature::KeyPair as _;
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
    /// What it does, it does with the rights of this role; without one, with the owner's.
    login: Option<&'static str>,
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
    row: RepoRow,
}

/// Seals the repository's row again as it is now, as a host that has the journal's key could.
pub(crate) fn seal_row(journal_key: &[u8], sql: impl Fn(&str) -> String) {
    let row = RepoRow::parse(&sql(&format!("select {COLUMNS} from provost.repo"))).expect("a row");
    let sets = row.sets(journal_key).expect("a row");
    sql(&format!("update provost.repo set {sets} where n = {}", row.entry.0));
}

impl<'a> Forger<'a> {
    pub(crate) fn with_key_of(machines: &'a Machines, world: &World) -> Self {
        let secret = std::fs::read(state_dir(world).join("journal.key")).expect("the journal's key");
        let secret = Secret::new(secret);
        let print = digest(&machines.sql("select key_print from provost.repo"));
        Self { machines, login: None, key: Key::new(&secret), secret, print }
    }

    /// The same with nothing but the login of a host.
    pub(crate) fn with_login_of(machines: &'a Machines, world: &World) -> Self {
        const LOGIN: &str = "turned";
        assert!(
            migrate(machines.server.dir(), &machines.database, true).expect("roles").missing_roles.is_empty()
        );
        machines.server.sql("postgres", &format!("create role {LOGIN} login in role provost_host"));
        Self { login: Some(LOGIN), ..Self::with_key_of(machines, world) }
    }

    /// What a statement answers, with the forger's rights.
    pub(crate) fn sql(&self, text: &str) -> String {
        let role = self.login.map_or_else(String::new, |it| format!("set role {it}; "));
        self.machines.sql(&format!("{role}{text}"))
    }

    /// The seal of a row that says who a host is, or is no more, for the place of the first entry.
    fn seal(&self, host: &str, what: &str, enrolled: &str) -> String {
        let (n, event) = (1_u64.to_le_bytes(), 1_u64.to_le_bytes());
        let mut seal = self.secret.mac();
        seal.update(b"provost-host-key-v1");
        let fields: [&[u8]; 5] = [&n, &event, host.as_bytes(), what.as_bytes(), enrolled.as_bytes()];
        seal.update(Digest::of_fields(fields).as_bytes());
        hex(&seal.finalize().into_bytes())
    }

    fn host_key(&self, host: &str, what: &str, body: &str) {
        self.sql(&format!(
            "insert into provost.host_key (repo, host, what, n, event, body) select id, '{host}', '{what}', 1, 1, '{body}' from provost.repo"
        ));
    }

    /// Enrols a host with a key of its own, back-dated to the first entry, by an invitation that `by` makes now.
    pub(crate) fn enrol(&self, new: &Own, by: &Own) {
        let host = new.host.to_string();
        let key = |it: &Own| it.pair.public_key().as_ref().to_vec();
        let text = |label: &[u8], host: &str, key: &[u8], more: &[u8]| {
            [label, self.print.as_bytes().as_slice(), host.as_bytes(), key, more].concat()
        };
        let sign = |by: &Own, text: &[u8]| hex(by.pair.sign(text).as_ref());
        // The new host's key is the invitation's as well.
        let (new_key, most) = (key(new), 1_u32.to_le_bytes());
        let invited = text(b"provost-host-invitation-v1", &by.host.to_string(), &new_key, &most);
        let owns = text(b"provost-host-owns-key-v1", &host, &new_key, b"");
        let joins = text(b"provost-host-joins-v1", &host, &new_key, b"");
        let enrolled = format!(
            "{{\"key\":\"{key}\",\"owns\":\"{}\",\"invited\":[{{\"by\":\"{}\",\"key\":\"{key}\",\"most\":1,\"signed\":\"{}\"}},\"{}\"]}}",
            sign(new, &owns),
            by.host,
            sign(by, &invited),
            sign(new, &joins),
            key = hex(&new_key),
        );
        let seal = self.seal(&host, "invited", &enrolled);
        self.host_key(&host, "invited", &format!("{{\"enrolled\":{enrolled},\"seal\":\"{seal}\"}}"));
    }

    /// Adds the row which says that a host was removed with the first entry, sealed with the journal's key; signed by `by`, or by none.
    pub(crate) fn removal(&self, gone: HostId, by: Option<&Own>) {
        let (n, event, host) = (1_u64.to_le_bytes(), 1_u64.to_le_bytes(), gone.to_string());
        let seal = self.seal(&host, "gone", "null");
        let mut body = serde_json::json!({ "seal": seal });
        if let Some(by) = by {
            let text =
                [b"provost-host-removes-v1", self.print.as_bytes().as_slice(), host.as_bytes(), &n, &event]
                    .concat();
            body["removed"] = serde_json::json!([by.host, hex(by.pair.sign(&text).as_ref())]);
        }
        self.host_key(&host, "gone", &body.to_string());
    }

    /// Writes events into the journal, and no entry: signed by this host for an entry of this number. Returns what was before.
    pub(crate) fn write_behind(&self, by: &Own, n: u64) -> Before {
        let before = self.at_rest();
        let event = Event {
            seq: before.event.seq.next(),
            at: Timestamp(1_795_000_000_000),
            actor: provost(),
            kind: recorded(),
            host: by.host,
        };
        let linked = self.key.extend(&before.event, &[event]).expect("a chain");
        let last = linked.last().expect("an event");
        let (seq, link) = (last.seq.0, Digest::default());
        let signed = by.pair.sign(&to_sign(&self.print, (n, &link), (seq, &last.mac)));
        let rows = rows_of(&linked);
        self.sql(&format!(
            "begin; select 1 from provost.repo for update; {rows}
             insert into provost.signature select id, {seq}, {n}, '{}', decode('{}', 'hex'), decode('{}', 'hex') from provost.repo;
             {} commit",
            by.host,
            hex(link.as_bytes()),
            hex(signed.as_ref()),
            self.moves(&before, before.row.entry, (seq, last.mac)),
        ));
        before
    }

    fn before(&self) -> Before {
        let row = self.machines.sql(&format!("select {COLUMNS} from provost.repo"));
        let row = RepoRow::parse(&row).expect("a row");
        Before {
            n: row.entry.0,
            mac: row.entry.1,
            event: Anchor { seq: EventSeq(row.event.0), mac: row.event.1 },
            counters: row.counters.clone(),
            row,
        }
    }

    /// The same once no daemon writes entries.
    fn at_rest(&self) -> Before {
        until_some("no daemon writes", || {
            let before = self.before();
            // tidy: sleeps because nothing but two looks tells that no daemon writes
            std::thread::sleep(Duration::from_millis(300));
            (self.before().n == before.n).then_some(before)
        })
    }

    /// The statement that moves the row on from what it was, sealed.
    fn moves(&self, before: &Before, entry: (u64, Digest), event: (u64, Digest)) -> String {
        let mut counters: Value = serde_json::from_str(&before.counters).expect("counters");
        counters["event"] = event.0.into();
        let row = RepoRow { entry, event, counters: counters.to_string(), ..before.row.clone() };
        let sets = row.sets(self.secret.expose()).expect("a row");
        format!("update provost.repo set {sets} where n = {};", before.n)
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
        self.write_and((named, kinds, changes), sign, |_| String::new())
    }

    /// The same, with more statements before the commit, which may name the end of the journal then.
    pub(crate) fn write_and(
        &self,
        (named, kinds, changes): (HostId, Vec<EventKind>, Vec<Change>),
        sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
        more: impl FnOnce(&Anchor) -> String,
    ) -> Before {
        let before = self.at_rest();
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
        let more = more(&Anchor { seq: last.seq, mac: last.mac });
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
        self.sql(&format!(
            "begin; select 1 from provost.repo for update; {rows}
             insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig)
                 select id, {n}, '{named}', 1, {}, 1, 1, '{}', decode('{}', 'hex'), {signed} from provost.repo;
             {kept};
             {} {more} commit",
            entry.own_n,
            entry.body.replace('\'', "''"),
            hex(entry.mac.as_bytes()),
            self.moves(&before, (n, entry.mac), (seq, last.mac)),
        ));
        before
    }

    /// Writes so many entries without a change, and then one with these changes and no event: all of them signed by this host, while no daemon
    /// looks. Returns what was before.
    pub(crate) fn write_many(&self, by: &Own, count: u64, changes: Vec<Change>) -> Before {
        let before = self.at_rest();
        let daemon = DaemonId { host: by.host, incarnation: 1 };
        let mut head = Head { n: EntryNo(before.n), mac: before.mac };
        let (mut rows, none, mut last) = (Vec::new(), Outbox::default(), Outbox::default());
        last.changes = changes;
        for n in 1..=count + 1 {
            let (batch, own_n) = (if n <= count { &none } else { &last }, 900_000 + before.n + n);
            let entry = self
                .key
                .entry(&head, (daemon, own_n), (Timestamp(1), ENTRY_FORMAT), batch)
                .expect("an entry");
            head = entry.head();
            let text = to_sign(&self.print, (head.n.0, &head.mac), (before.event.seq.0, &before.event.mac));
            rows.push(format!(
                "({}, {own_n}, '{}', '\\x{}'::bytea, '\\x{}'::bytea)",
                head.n.0,
                entry.body.replace('\'', "''"),
                head.mac,
                hex(by.pair.sign(&text).as_ref()),
            ));
        }
        // A statement is an argument of a command, whose length is limited.
        for rows in rows.chunks(200) {
            self.sql(&format!(
                "insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig)
                     select repo.id, it.n, '{}', 1, it.own_n, 1, 1, it.body, it.mac, it.sig
                     from provost.repo, (values {}) as it (n, own_n, body, mac, sig)",
                by.host,
                rows.join(", "),
            ));
        }
        self.sql(&self.moves(&before, (head.n.0, head.mac), (before.event.seq.0, before.event.mac)));
        before
    }

    /// The statement that says under the journal's seal that all events up to this one were pruned.
    pub(crate) fn pruned(&self, end: &Anchor) -> String {
        let (seq, counters) = (end.seq.0, self.before().counters);
        let mut seal = self.secret.mac();
        let number = seq.to_le_bytes();
        let fields: [&[u8]; 5] =
            [b"provost-checkpoint-v1", &number, end.mac.as_bytes(), &number, counters.as_bytes()];
        fields.iter().for_each(|it| seal.update(it));
        format!(
            "insert into provost.checkpoint select id, {seq}, decode('{}', 'hex'), {seq}, '{counters}', decode('{}', 'hex') from provost.repo;",
            hex(end.mac.as_bytes()),
            hex(&seal.finalize().into_bytes()),
        )
    }

    /// Takes what came after that out again, as the administrator who has a copy could.
    pub(crate) fn take_out(&self, before: &Before) {
        let (n, seq) = (before.n, before.event.seq.0);
        self.machines.sql(&format!(
            "begin; select 1 from provost.repo for update; delete from provost.signature where event > {seq};
             delete from provost.entry where n > {n}; delete from provost.event where seq > {seq};
             update provost.repo set {}; commit",
            before.row.sets(self.secret.expose()).expect("a row"),
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

//! The start of a daemon at the database: it registers its host while it holds the repository's row, and reads rows
//! and head in the same transaction. A reload reads the same.

use std::cmp::Ordering;
use std::path::Path;
use std::time::Instant;

use super::bounds::in_row;
use super::load;
use super::loss::missing;
use super::repo_row::{self, REPO_ROW, RepoRow};
use super::session::{Place, Session, Step};
use super::{PostgresStore, Stage, Written, roots, unreadable};
use crate::codec::{int, nat, text};
use crate::host_keys::At;
use crate::journal::Key;
use crate::marks::As;
use crate::sqlite::must_have_grown;
use crate::{ENTRY_FORMAT, ENTRY_FORMAT_OLDEST, HostState, JournalHead, Loaded, StoreError, codec, files};
use provost_base::limits::{HOSTS_MAX, LONG_STATEMENT_MS_MAX, NUMBERS_SKIPPED, POSTGRES_NUMBER_MAX};
use provost_base::{Digest, EventSeq, Timestamp};
use provost_domain::{Counters, Settings};

/// The journal's key. It is made with the journal and never again, and the database has its print alone.
///
/// # Errors
/// [`StoreError::Key`] when it is missing or another one.
pub(super) fn journal_key(session: &mut Session, dir: &Path, name: &str) -> Result<Key, StoreError> {
    let rows = session
        .rows(Step::new("select key_print from provost.repo where name = $1").with(name.to_owned()))?;
    let known: Option<String> = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
    let secret = match (files::journal_key(dir)?, &known) {
        (Some(secret), _) => secret,
        (None, None) => files::make_journal_key(dir)?,
        (None, Some(_)) => {
            return Err(StoreError::Key(
                format!(
                    "the database has a repository {name:?}, and {} is missing, without which its journal cannot be continued. If this is one \
                     more machine, type `provost host invite` on a machine of that repository, and `provost host join` here; if the file was \
                     lost, bring it back; if that is another repository of the same name, write a name of its own: `[store] name`",
                    dir.join(crate::JOURNAL_KEY).display()
                )
                .into(),
            ));
        }
    };
    let key = Key::new(&secret);
    match known {
        Some(print) if print != key.fingerprint().to_string() => Err(StoreError::Key(
            format!(
                "{} is not the key that the journal of {name:?} in the database was begun with: bring that one back; \
                    if that is another \
                 repository of the same name, write a name of its own: `[store] name`",
                dir.join(crate::JOURNAL_KEY).display()
            )
            .into(),
        )),
        _ => Ok(key),
    }
}

impl PostgresStore {
    /// A start, or a reload after a commit has failed.
    ///
    /// # Errors
    /// Any; then nothing is registered, and a later call may succeed.
    pub(super) fn start_or_reload(&mut self, settings: Settings) -> Result<Loaded, StoreError> {
        if self.stage == Stage::Closed {
            return Err(StoreError::NotRunning);
        }
        self.roll_back();
        if self.stage == Stage::Running {
            self.note_awake(self.written.entry)?;
        }
        let place = self.connect()?;
        // Before the database knows of it, or a kill in between would leave a host behind that no daemon is.
        self.remembered.keep()?;
        let loaded = self.load_in_turn(settings, &place);
        if loaded.is_err() {
            self.session.drop_link();
        }
        let loaded = loaded?;
        self.remembered.see(place)?;
        if self.stage == Stage::Opened {
            self.stage = Stage::Running;
            self.marks.write(&self.key, &self.written.head, &self.written.counters, As::Durable);
            self.publish();
        }
        Ok(loaded)
    }

    fn load_in_turn(&mut self, settings: Settings, place: &Place) -> Result<Loaded, StoreError> {
        let is_start = self.stage == Stage::Opened;
        if is_start {
            self.make_repo(place)?;
        }
        let row = self.take_row()?;
        must_be_readable(&row)?;
        let is_true = self.is_true(&row)?;
        if is_true {
            self.take_part(&row.state)?;
        }
        let sealed_at = is_true.then_some(row.state.checkpoint);
        let (head, last) = load::tail(&mut self.session, self.repo, &self.key, sealed_at)?;
        let mut remade = None;
        if is_true && !is_earlier(&row.state.head, &head) {
            self.must_have_numbers_in_reach(&row, &head, last.as_ref())?;
        } else {
            let it = self.remade(&row, (&head, last.as_ref()), place)?;
            if !is_true {
                self.take_part(&it.row.state)?;
            }
            remade = Some(it);
        }
        let row = remade.as_ref().map_or(&row, |it| &it.row);
        let (end, counters) = (row.state.entry.n, row.state.counters);
        if head != row.state.head || counters.event != head.seq {
            return Err(StoreError::EndMissing { head: head.seq });
        }
        if let Some(last) = &last {
            must_have_grown(codec::parse(&last.counters)?, counters)?;
        }
        self.must_have_reached(row, &head)?;
        let since = self.check_signatures(end, &head)?;
        self.must_know_all_changes(end, since)?;
        let pruned_to = last.as_ref().map(|it| it.pruned_to).unwrap_or_default();
        // What a daemon that is awake has not read is too young to be pruned, also where it loads the rows.
        let may_miss = is_start || self.has_slept_at(row.clock);
        self.must_have_texts(since, if may_miss { pruned_to } else { EventSeq::default() })?;
        let mut written = Written { own_n: self.own_entries()?, pruned_to, ..row.state.clone() };
        if let Some(remade) = &remade {
            self.take_remade(remade, since)?;
            written.counters = remade.given;
        } else if row.place != *place {
            if counters != Counters::default() {
                written.counters = counters.skipped(NUMBERS_SKIPPED);
            }
            self.note_place(place, &written, row)?;
        }
        let (state, mut owed) = load::live(&mut self.session, self.repo, settings, written.counters)?;
        owed.retain(|it| it.by.host == self.host());
        self.check_answers((&state, &owed), since)?;
        self.keys.keep()?;
        let until = load::event_time(&mut self.session, self.repo, head.seq)?;
        let broke_off = super::gaps::broke_off(&mut self.session, self.repo, &self.key)?;
        self.session.ask(&[Step::new("commit")])?;
        self.written = written;
        self.looked = Some(row.clock);
        Ok(Loaded {
            state,
            owed,
            head: self.written.entry,
            daemon: self.daemon(),
            clean: self.clean,
            until,
            broke_off,
            received: Vec::new(),
            intake: None,
        })
    }

    /// Registers this host at a start; at a reload checks that it still is the one.
    fn take_part(&mut self, state: &Written) -> Result<(), StoreError> {
        if self.stage != Stage::Opened {
            return self.must_be_the_one(state);
        }
        self.must_not_be_moved()?;
        self.register(At { n: state.entry.n, event: state.head.seq })
    }

    /// Makes the repository's row if it is not there.
    fn make_repo(&mut self, place: &Place) -> Result<(), StoreError> {
        let sql =
            "insert into provost.repo (name, format, n, mac, event, event_mac, pruned_to, log_from, system,
            timeline, key_print,
                       counters, finished, searched_to, at)
                   select $1, $2, 0, $3, 0, $3, 0, 1, $4, $5, $6, $7::text::jsonb, 0, 0, 0
                   where not exists (select from provost.repo where name = $1) on conflict (name) do nothing";
        let make = Step::new(sql)
            .with(self.database.name.clone())
            .with(i32::try_from(ENTRY_FORMAT).map_err(StoreError::damaged)?)
            .with(Digest::default().as_bytes().to_vec())
            .with(place.system.clone())
            .with(int(place.timeline)?)
            .with(self.key.fingerprint().to_string())
            .with(text(&Counters::default())?);
        let find = || {
            let sql = "select id, key_print from provost.repo where name = $1";
            Step::new(sql).with(self.database.name.clone())
        };
        let (find, again) = (find(), find());
        let mut found = self.session.rows(find)?;
        let is_new = found.is_empty();
        // A login of a machine that only works may not make one.
        if is_new {
            found = self.session.ask(&[Step::new("begin"), make, again])?.pop().unwrap_or_default();
        }
        let taken = self.take_repo(&found, is_new);
        match &taken {
            Ok(()) if is_new => {
                let seals = (Timestamp::default(), place);
                let seal = repo_row::moves((self.repo, &self.key), (0, 0), &Written::default(), seals)?;
                self.session.ask(&[seal, Step::new("commit")])?;
            }
            Ok(()) => {}
            // Nothing of the new repository stays.
            Err(_) => self.session.drop_link(),
        }
        taken
    }

    /// Takes the number of the repository that was found, or that was made in this transaction.
    fn take_repo(&mut self, found: &[tokio_postgres::Row], is_new: bool) -> Result<(), StoreError> {
        let row = found.first().ok_or_else(|| StoreError::damaged("the repository's row is not there"))?;
        let print: String = row.try_get(1).map_err(unreadable)?;
        if print != self.key.fingerprint().to_string() {
            return Err(StoreError::Key(
                "another host has made a repository of this name just now: try again".into(),
            ));
        }
        self.repo = row.try_get(0).map_err(unreadable)?;
        if is_new { self.must_be_empty() } else { Ok(()) }
    }

    /// Refuses a new repository whose number has rows already: a login of another repository of this database has written them.
    fn must_be_empty(&mut self) -> Result<(), StoreError> {
        let sql = "select exists (select from provost.host_key where repo = $1) or exists (select from provost.host where repo = $1)
                   or exists (select from provost.event where repo = $1) or exists (select from provost.entry where repo = $1)";
        let rows = self.session.rows(Step::new(sql).with(self.repo))?;
        if rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)? != Some(false) {
            return Err(StoreError::damaged(format!(
                "the new repository has the number {}, and tables have rows with that number already, which another login has written: start again \
                 for another number, and have the database's administrator take these rows out",
                self.repo
            )));
        }
        Ok(())
    }

    /// Begins a transaction that has the repository's row, for as long as a start may take.
    fn take_row(&mut self) -> Result<RepoRow, StoreError> {
        let steps = [
            Step::new("begin"),
            Step::new(format!("set local statement_timeout = {LONG_STATEMENT_MS_MAX}")),
            Step::new(format!("set local idle_in_transaction_session_timeout = {LONG_STATEMENT_MS_MAX}")),
            Step::new("select 1 from provost.repo where id = $1 for update").with(self.repo),
            Step::new(REPO_ROW).with(self.repo),
        ];
        let rows = self.session.ask(&steps)?.pop().unwrap_or_default();
        RepoRow::read(rows.first().ok_or_else(|| StoreError::damaged("the repository's row is gone"))?)
    }

    /// Notes this host with its next incarnation.
    fn register(&mut self, at: At) -> Result<(), StoreError> {
        let told = self.must_be_welcome()?;
        let drains = self.enrol(at, told)?;
        let sql = "insert into provost.host (repo, id, inc, name, version, formats, state, clean, beat, head)
                   values ($1, $2, 1, $3, $4, int4range($5, $6, '[]'), $8, false, clock_timestamp(), 0)
                   on conflict (repo, id) do update set inc = least(host.inc, $7) + 1, name = excluded.name, version = excluded.version,
                   formats = excluded.formats, state = excluded.state,
                   clean = false, beat = excluded.beat returning inc";
        // A login of a machine that only works may not write there, also where nothing would be written.
        if self.session.rows(Step::new(IS_SIGNED_FOR).with(self.repo))?.is_empty() {
            self.session.rows(Step::new(SIGNED_FOR).with(self.repo).with(text(&self.host().to_string())?))?;
        }
        let before = Step::new("select clean from provost.host where repo = $1 and id = $2")
            .with(self.repo)
            .with(self.host().to_string());
        let now = Step::new(sql)
            .with(self.repo)
            .with(self.host().to_string())
            .with(machine())
            .with(env!("CARGO_PKG_VERSION"))
            .with(i32::try_from(ENTRY_FORMAT_OLDEST).map_err(StoreError::damaged)?)
            .with(i32::try_from(ENTRY_FORMAT).map_err(StoreError::damaged)?)
            .with(POSTGRES_NUMBER_MAX)
            .with(if drains { HostState::Draining } else { HostState::Live }.as_str());
        let mut answers = self.session.ask(&[before, now])?;
        let (now, before) = (answers.pop().unwrap_or_default(), answers.pop().unwrap_or_default());
        self.clean = before.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?.unwrap_or(true);
        let row = now.first().ok_or_else(|| StoreError::damaged("the host's row is not there"))?;
        self.incarnation = in_row("host", self.host(), || {
            let it: i64 = row.try_get(0).map_err(unreadable)?;
            let is_given = (1..=POSTGRES_NUMBER_MAX).contains(&it);
            if is_given {
                nat(it)
            } else {
                Err(StoreError::damaged("its number of starts is one that no host reaches"))
            }
        })?;
        self.beat = Some(Instant::now());
        Ok(())
    }

    /// A new host has to be of the same repository. Returns what the table of hosts says of this one, with the request for it.
    fn must_be_welcome(&mut self) -> Result<Option<(HostState, Option<String>)>, StoreError> {
        let known = "select left(state, 64), (select body from provost.meta m
                where m.repo = host.repo and m.id = 'out:' || host.id and length(m.body) <= 1024)
            from provost.host where repo = $1 and id = $2";
        let roots = "select roots from provost.repo where id = $1";
        let many = "select count(*) from provost.host where repo = $1 and state <> 'removed'";
        let answers = self.session.ask(&[
            Step::new(known).with(self.repo).with(self.host().to_string()),
            Step::new(roots).with(self.repo),
            Step::new(many).with(self.repo),
        ])?;
        let cell = |at: usize| answers.get(at).and_then(|it| it.first());
        let told = |row: &tokio_postgres::Row| -> Result<(HostState, Option<String>), StoreError> {
            let state =
                in_row("host", self.host(), || HostState::parse(row.try_get(0).map_err(unreadable)?))?;
            Ok((state, row.try_get(1).map_err(unreadable)?))
        };
        let told = cell(0).map(told).transpose()?;
        let roots: Option<&str> = cell(1).map(|it| it.try_get(0)).transpose().map_err(unreadable)?.flatten();
        let many: i64 = cell(2).map(|it| it.try_get(0)).transpose().map_err(unreadable)?.unwrap_or(0);
        match told {
            Some(_) => {}
            None if many >= HOSTS_MAX as i64 => {
                let why = format!(
                    "{:?} has {HOSTS_MAX} hosts already: remove one with `provost host remove ID`",
                    self.database.name
                );
                return Err(StoreError::Database(why.into()));
            }
            None => roots::must_share_one(&self.database.name, &self.roots, roots)?,
        }
        if let (None, Ok(ours)) = (roots, &self.roots)
            && !ours.is_empty()
        {
            let sql = "update provost.repo set roots = $2 where id = $1";
            self.session.rows(Step::new(sql).with(self.repo).with(ours.join(" ")))?;
        }
        Ok(told)
    }

    /// Refuses to go on where another daemon has started with this host's state folder, or with a copy of it.
    fn must_be_the_one(&mut self, state: &Written) -> Result<(), StoreError> {
        let sql = "select inc from provost.host where repo = $1 and id = $2";
        let rows = self.session.rows(Step::new(sql).with(self.repo).with(self.host().to_string()))?;
        let inc: i64 = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?.unwrap_or(0);
        match nat(inc)?.cmp(&self.incarnation) {
            Ordering::Equal => Ok(()),
            Ordering::Greater => Err(replaced()),
            Ordering::Less => Err(StoreError::WentBack { was: self.written.head.seq, is: state.head.seq }),
        }
    }

    /// How many entries this daemon has written: of a commit whose answer was lost, the database knows it alone.
    fn own_entries(&mut self) -> Result<u64, StoreError> {
        let sql = "select coalesce(max(own_n), 0) from provost.entry where repo = $1 and host = $2 and inc = $3 and own_n between 0 and $4";
        let step = Step::new(sql).with(self.repo).with(self.host().to_string()).with(int(self.incarnation)?);
        let rows = self.session.rows(step.with(POSTGRES_NUMBER_MAX))?;
        nat(rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?.unwrap_or(0))
    }

    /// The database has to have what this state folder knows that it had.
    fn must_have_reached(&mut self, row: &RepoRow, head: &crate::Anchor) -> Result<(), StoreError> {
        let behind = |was: EventSeq| StoreError::WentBack { was, is: head.seq };
        if let Some(was) = missing(&mut self.session, self.repo, &self.known, (row, head))? {
            return Err(behind(was));
        }
        // A reload knows more than the start has found.
        if self.stage == Stage::Running {
            let ours = self.written.head;
            let there = load::event_mac(&mut self.session, self.repo, ours.seq)?;
            if ours.seq > head.seq || there.is_some_and(|mac| mac != ours.mac) {
                return Err(behind(ours.seq));
            }
        }
        Ok(())
    }

    /// Notes where numbers are given from now on: on another timeline, above all that may have been given and lost.
    fn note_place(&mut self, place: &Place, next: &Written, row: &RepoRow) -> Result<(), StoreError> {
        self.session.rows(row.moves(&self.key, next, (row.at, place))?)?;
        tracing::warn!(
            timeline = place.timeline,
            "the database writes another history: numbers go on above those that may be lost"
        );
        Ok(())
    }
}

/// The format in which the log is written; refuses one that this release does not know.
pub(super) fn must_be_readable(row: &RepoRow) -> Result<u32, StoreError> {
    let found = u32::try_from(row.format).unwrap_or(0);
    if (ENTRY_FORMAT_OLDEST..=ENTRY_FORMAT).contains(&found) {
        Ok(found)
    } else {
        Err(StoreError::NewerFormat { found, known: ENTRY_FORMAT })
    }
}

/// Checks whether an end of the journal in a row is one from before the journal's true end.
pub(super) fn is_earlier(told: &JournalHead, end: &JournalHead) -> bool {
    told.seq <= end.seq && told != end
}

/// A row if the repository has the id that passkeys sign for, or a passkey that was enrolled without it.
const IS_SIGNED_FOR: &str =
    "select from provost.daemon where repo = $1 union all select from provost.passkey where repo = $1";

/// Sets the repository's id, for which passkeys sign: the first host gives it, unless a passkey has signed without one already.
const SIGNED_FOR: &str = "insert into provost.daemon (repo, id, body) select $1, '1', $2
    where not exists (select from provost.daemon where repo = $1) and not exists (select from provost.passkey where repo = $1)";

/// Why a host that was removed does not start.
pub(super) const REMOVED: &str = "this host was removed from the repository (`provost host remove`): to join again as a new one, move its state \
                       folder away and run `provost host join`";

/// The sentence for a daemon whose host has a later incarnation.
pub(super) const REPLACED: &str = "another daemon has started with this host's state folder, or with a copy of it, so this one writes nothing \
                                   more: stop one of them; a copied folder is no second host";

pub(super) fn replaced() -> StoreError {
    StoreError::Database(REPLACED.into())
}

/// The machine's name, for people who look at the table of hosts.
fn machine() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|it| it.trim().to_owned());
    let told = || ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|it| std::env::var(it).ok());
    named.filter(|it| !it.is_empty()).or_else(told).unwrap_or_else(|| "a machine without a name".into())
}

/// A link of the chain, from its column.
pub(super) fn mac_of(bytes: &[u8]) -> Result<Digest, StoreError> {
    Ok(Digest::from_bytes(bytes.try_into().map_err(StoreError::damaged)?))
}

//! Texts of events that are pruned while a host of a shared store is asleep, or that were taken away without that. Against real servers, whose
//! clocks the tests set.

use std::time::Duration;

use provost::base::Timestamp;
use provost::store::{Behind, Database, Head, Retention, Store, join};
use tempfile::TempDir;

use super::daemons_of_hosts::signal;
use super::store_postgres::{batch, folder, sealed, sentence, started};
use crate::support::World;
use crate::support::commands::said;
use crate::support::machines::Machines;
use crate::support::postgres::{Server, name_of};
use crate::support::storm::{Storm, settings};
use crate::support::waits::within;

const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * MINUTE;

const ONE_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The sentence about a text that is missing without having been pruned.
const TAKEN: &str = "its text was taken away before all hosts had read it";

fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

fn lock(world: &World, n: usize) -> bool {
    let args = ["lock", "acquire", &format!("src/a.rs:f{n}")];
    said(&world.by("ada", &args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs")).0 == 0
}

/// Two stores of one repository at a server with a clock of its own: the first one writes, and the second one has read all of it.
pub(super) struct Two {
    pub(super) server: Server,
    pub(super) database: Database,
    pub(super) first: Box<dyn Store>,
    pub(super) storm: Storm,
    pub(super) second: Box<dyn Store>,
    /// How far the second one has read.
    pub(super) head: Head,
    pub(super) folders: [TempDir; 2],
}

impl Two {
    pub(super) fn start() -> Self {
        let (server, folders) = (Server::with_clocks(), [folder(), folder()]);
        let database = server.database();
        let (first, loaded) = started(folders[0].path(), &database);
        let key = sealed(folders[0].path());
        join(folders[1].path(), &database, &key.text, &key.code).expect("it joins");
        let (second, late) = started(folders[1].path(), &database);
        let storm = Storm::new(5, loaded.state);
        let mut two = Self { server, database, first, storm, second, head: late.head, folders };
        // The first one learns that the second one takes part.
        two.first.begin(loaded.head).expect("the turn");
        two.first.let_go().expect("it lets go");
        two.reads();
        two
    }

    /// The second one reads what there is.
    pub(super) fn reads(&mut self) {
        match self.second.begin(self.head).expect("the turn").behind {
            Behind::Nothing => {}
            Behind::Entries(entries) => {
                let last = entries.last().expect("an entry");
                self.head = Head { n: last.n, mac: last.mac };
            }
            Behind::TooFar => panic!("it has read all before"),
        }
        self.second.let_go().expect("it lets go");
    }

    /// The first one writes a batch, whose events have the times of the storm.
    pub(super) fn writes(&mut self) {
        let batch = batch(&mut self.storm);
        assert!(!batch.events.is_empty());
        self.first.commit(&batch).expect("the commit");
    }

    /// The first one prunes all events that have this age at a time.
    fn prunes(&mut self, now: Timestamp, age: Duration) {
        let keep = Retention { tasks: Duration::from_secs(1 << 30), tasks_most: 1_000_000, events: age };
        while self.first.prune(now, &keep, 50).expect("a bite").more {}
    }

    pub(super) fn sql(&self, text: &str) -> String {
        self.server.sql(&name_of(&self.database), text)
    }

    /// The server's clock.
    fn clock(&self) -> i64 {
        self.sql("select (extract(epoch from clock_timestamp()) * 1000)::bigint").parse().expect("a time")
    }

    fn texts(&self) -> u64 {
        self.sql("select count(*) from provost.event where body is not null").parse().expect("a number")
    }

    /// The second one is told to load the rows.
    pub(super) fn has_to_load(&mut self) {
        let begun = self.second.begin(self.head).expect("the turn");
        assert!(matches!(begun.behind, Behind::TooFar), "{:?}", begun.behind);
        self.second.let_go().expect("it lets go");
    }

    /// What the second one says when it is to read on, twice, while a login keeps the repository's row.
    fn refused_the_row(&mut self) -> [String; 2] {
        let Self { server, database, second, head, .. } = self;
        let name = name_of(database);
        let kept = "from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
        let begun = std::thread::scope(|scope| {
            let keeps = "begin; select 1 from provost.repo for update; select pg_sleep(20); commit";
            scope.spawn(|| server.says(&name, keeps));
            until("the row is kept", || server.sql(&name, &format!("select 1 {kept}")) == "1");
            let begun = [second.begin(*head), second.begin(*head)];
            server.sql(&name, &format!("select pg_terminate_backend(pid) {kept}"));
            begun
        });
        begun.map(sentence)
    }

    /// What the second one says when it is to read on, after which its turn has ended.
    pub(super) fn refused(&mut self) -> String {
        let begun = self.second.begin(self.head).map(|it| it.behind);
        let text = match begun {
            Err(err) => err.to_string(),
            Ok(behind) => panic!("it is not refused: {behind:?}"),
        };
        self.second.let_go().expect("it lets go");
        text
    }
}

#[test]
fn a_daemon_that_slept_while_what_it_had_not_read_was_pruned_goes_on_by_itself() {
    let machines = Machines::joined_at(Server::with_clocks(), 2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    for (n, world) in [a, b].into_iter().enumerate() {
        until("it has a lock", || lock(world, n));
    }
    let pid = daemons[1].pid();
    signal(&daemons[1], "-STOP");
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    let burial = machines.sql("select max(seq) from provost.event");
    // The newest entry of a log stays until there is another one, and a start of a daemon may write one.
    machines.sql(
        "create or replace function provost.cut_log(of_repo int, before bigint, most bigint) returns bigint
         language sql as 'select 0::bigint'",
    );
    // More days than texts of events are kept by default. A daemon prunes when it has started.
    machines.server.set_clock(200 * DAY);
    daemons.remove(0).stop();
    daemons.insert(0, a.start());
    let bare = format!("select count(*) from provost.event where seq = {burial} and body is null");
    until("the texts are pruned", || machines.sql(&bare) == "1");
    signal(&daemons[1], "-CONT");
    until("it takes part again by itself", || lock(b, 5));
    until("and the other one goes on", || lock(a, 6));
    assert!(std::fs::read_dir(format!("/proc/{pid}")).is_ok(), "in its own process");
    assert!(!b.log().contains(TAKEN), "{}", b.log());
    assert!(b.log().contains("was asleep for longer than texts of events are kept"), "{}", b.log());
    machines.check();
}

#[test]
fn texts_that_are_pruned_under_a_host_that_is_awake_stop_it_and_do_not_stop_one_that_slept() {
    let mut two = Two::start();
    two.writes();
    // The events' times are years back, so that they can be pruned at once, as a host could have it that dates its events back.
    let now = two.storm.now;
    two.prunes(Timestamp(now.0 + 2 * DAY * 1_000), ONE_DAY);
    assert_eq!(two.texts(), 0);
    two.server.set_clock(50 * MINUTE);
    let says = two.refused();
    assert!(says.contains(TAKEN), "it has looked within the hour: {says}");
    // A time that a login writes into the repository's row makes it no host that slept: what it has not read is too young to be pruned.
    two.sql("create table public.sealed as select seal from provost.repo; update provost.repo set at = at + 7200000, seal = null");
    let says = two.refused();
    assert!(says.contains(TAKEN), "{says}");
    let says = sentence(two.second.load(settings()));
    assert!(says.contains("is missing, and was not pruned"), "{says}");
    two.sql("update provost.repo set at = at - 7200000, seal = (select seal from public.sealed)");

    two.server.set_clock(61 * MINUTE);
    two.has_to_load();
    let behind = two.second.catch_up(two.head).expect("an answer");
    assert!(matches!(behind, Behind::TooFar), "{behind:?}");
    let loaded = two.second.load(settings()).expect("the rows are read");
    two.head = loaded.head;
    two.reads();
    two.writes();
    two.reads();
}

#[test]
fn a_login_that_keeps_the_repositorys_row_makes_no_sleeper_of_a_host_that_is_awake() {
    let mut two = Two::start();
    two.server.set_clock(40 * MINUTE);
    let says = two.refused_the_row();
    assert!(says.iter().all(|it| it.contains("55P03")), "{says:?}");
    two.writes();
    let now = two.storm.now;
    two.prunes(Timestamp(now.0 + 2 * DAY * 1_000), ONE_DAY);
    assert_eq!(two.texts(), 0);
    two.server.set_clock(80 * MINUTE);
    let says = two.refused();
    assert!(says.contains(TAKEN), "it was awake 40 minutes ago, and had read everything then: {says}");
    // A look that is refused has not read what there is.
    two.server.set_clock(101 * MINUTE);
    two.has_to_load();
}

#[test]
fn a_host_that_slept_folds_and_loads_nothing_whose_texts_were_not_pruned() {
    let mut two = Two::start();
    two.writes();
    two.sql("update provost.event set body = null where seq = (select max(seq) from provost.event)");
    two.server.set_clock(2 * 60 * MINUTE);
    let says = two.refused();
    assert!(says.contains(TAKEN), "{says}");
    // Each login can write into the repository's row, and a checkpoint that the journal's key has not sealed.
    two.sql("create table public.sealed as select seal from provost.repo; update provost.repo set pruned_to = event, seal = null");
    let says = two.refused();
    assert!(says.contains(TAKEN), "{says}");
    two.sql("update provost.repo set pruned_to = 0, seal = (select seal from public.sealed)");
    two.sql(
        "insert into provost.checkpoint select id, event, event_mac, event, '{}', event_mac from provost.repo
         on conflict (repo, seq) do update set pruned_to = excluded.pruned_to",
    );
    let says = two.refused();
    assert!(says.contains(TAKEN), "{says}");
    two.sql("delete from provost.checkpoint");
    // Nor is the rest loaded.
    let says = sentence(two.second.load(settings()));
    assert!(says.contains("is missing, and was not pruned"), "{says}");
    two.writes();
    two.first.close().expect("it stops");
    assert_eq!(two.sql("select max(pruned_to) from provost.checkpoint"), "0");
    assert_eq!(two.sql("select pruned_to from provost.repo"), "0");
    // Behind a checkpoint, where a load does not walk along the chain.
    let says = sentence(two.second.load(settings()));
    assert!(
        says.contains("is missing, and was not pruned: have the database's administrator put it back"),
        "{says}"
    );
}

#[test]
fn texts_that_the_database_does_not_take_away_yet_are_pruned_once_its_clock_has_passed_them() {
    let mut two = Two::start();
    two.storm.now = Timestamp(two.clock() - 30 * MINUTE * 1_000);
    two.writes();
    let all = two.texts();
    assert!(all > 0);
    // The time of the daemons is ahead of the server's clock, as after a clock that was set back.
    let later = Timestamp(two.clock() + 3 * DAY * 1_000);
    two.prunes(later, Duration::ZERO);
    assert_eq!(two.texts(), all, "the database does not take them away");
    assert_eq!(two.sql("select pruned_to from provost.repo"), "0", "so they are not pruned");
    two.server.set_clock(2 * 60 * MINUTE);
    two.prunes(later, Duration::ZERO);
    assert_eq!(two.texts(), 0, "they are pruned now");
    assert_eq!(two.sql("select pruned_to = event from provost.repo"), "t");
}

#[test]
fn a_row_behind_the_end_of_the_journal_is_not_pruned_and_stops_no_pruning() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    two.sql(
        "insert into provost.event (repo, seq, at, kind, actor, body, hash, mac)
         select id, event + it, 0, 'recorded', 'x', '{}', '', '' from provost.repo, unnest(array[1000, 1000000000000000]) it",
    );
    let now = two.storm.now;
    two.prunes(Timestamp(now.0 + 2 * DAY * 1_000), ONE_DAY);
    assert_eq!(two.sql("select pruned_to = event from provost.repo"), "t");
    assert_eq!(two.texts(), 2, "the texts of the journal are pruned, and no others");
    two.writes();
    two.reads();
}

#[test]
fn a_time_that_a_login_writes_removes_no_history_early() {
    let mut two = Two::start();
    two.storm.now = Timestamp(two.clock() - 2 * 60 * MINUTE * 1_000);
    two.writes();
    let all = two.texts();
    two.sql("update provost.repo set at = at + 100 * 365 * 86400000::bigint, seal = null");
    let begun = two.first.begin(Head::default()).expect("the turn");
    let now = begun.now.expect("the time");
    two.first.let_go().expect("it lets go");
    assert!(now.0 < two.clock() + MINUTE * 1_000, "the daemons do not go by that time");
    two.first.load(settings()).expect("the rows");
    // A daemon's own time may be that far ahead, as after a server's clock was set back.
    two.prunes(Timestamp(now.0 + 100 * 365 * DAY * 1_000), ONE_DAY);
    assert_eq!(two.texts(), all);
}

#[test]
fn texts_that_a_login_prunes_early_are_missed_by_the_host_that_slept_and_put_back_they_are_read() {
    let mut two = Two::start();
    two.storm.now = Timestamp(two.clock() - 2 * 60 * MINUTE * 1_000);
    two.writes();
    two.sql("create table public.kept as select seq, body from provost.event");
    two.server.set_clock(2 * 60 * MINUTE);
    // By the function that each login can call.
    two.sql("select provost.prune_events(id, -1, event) from provost.repo");
    assert_eq!(two.texts(), 0);
    let says = two.refused();
    assert!(says.contains(TAKEN), "{says}");
    let says = sentence(two.second.load(settings()));
    assert!(says.contains("is missing, and was not pruned"), "{says}");
    two.writes();
    two.sql("update provost.event e set body = kept.body from public.kept where kept.seq = e.seq");
    two.reads();
}

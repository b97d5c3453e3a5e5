//! A clock that a person sets while leases run, through a daemon whose clock the test can set.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support;
use crate::support::broker_client::{publish, status};
use crate::support::loopback_client::Http;
use crate::support::{Daemon, UP, World, eventually};

const HOUR: i64 = 3_600;

const WORKER: &str = "[policy]\nfile = \"builtin:open\"\n\
    [workers.sh]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ntimeout = \"1m\"\n";

/// A world whose daemons have clocks that can be set.
struct Clocks(World, support::clocks::Clocks);

impl Clocks {
    fn new() -> Self {
        let world = World::new();
        world.configure(WORKER);
        world.write("src/a.ts", "export function f() {}\nexport function g() {}\n");
        let clocks = support::clocks::Clocks::in_folder(&world.path(""));
        Self(world, clocks)
    }

    /// Sets how far the daemon's clocks are ahead: the system's, and the one that counts from the machine's
    /// start.
    fn set(&self, wall_s: i64, boot_s: i64) {
        self.1.set(wall_s, boot_s);
    }

    /// A command whose clocks can be set.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args);
        self.1.give(&mut command);
        command
    }

    fn start(&self) -> Daemon {
        self.0.start_as(self.command(UP))
    }

    fn locks(&self) -> usize {
        self.0.done("anyone", &["lock", "list"])["locks"].as_array().unwrap().len()
    }

    fn doctor(&self) -> String {
        let output = self.command(&["doctor"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The events so far.
    fn journal(&self) -> Vec<Value> {
        let output = self.0.command(&["journal", "export"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Waits for a task's end.
fn delegate(world: &World, goal: &str) -> Command {
    let mut command = world.command(&["delegate", goal, "--worker", "sh", "--wait"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn begins(world: &World, path: &Path) {
    eventually("the worker begins", || {
        assert!(!world.log().contains("worker not started"), "{}", world.log());
        path.exists()
    });
}

#[test]
fn a_clock_that_is_set_back_ends_no_task_and_lets_leases_run_out() {
    let clocks = Clocks::new();
    let _daemon = clocks.start();
    clocks.set(-2 * HOUR, 0);
    let done = delegate(&clocks.0, "echo went well").output().unwrap();
    assert!(done.status.success(), "{done:?}");
    clocks.0.done("a", &["lock", "src/a.ts:f", "--ttl", "1s"]);
    eventually("the lease runs out", || clocks.locks() == 0);
}

#[test]
fn a_clock_that_is_set_ahead_ends_no_task_and_no_lease() {
    let clocks = Clocks::new();
    let _daemon = clocks.start();
    clocks.0.done("a", &["lock", "src/a.ts:f", "--ttl", "10m"]);
    let goal = "touch begun; until [ -e go ]; do sleep 0.05; done; echo went well";
    let waits = delegate(&clocks.0, goal).spawn().unwrap();
    begins(&clocks.0, &clocks.0.repo().join("begun"));
    clocks.set(24 * HOUR, 0);
    // Two looks at the clock, after which whatever was due would be over.
    eventually("the jump is noticed", || clocks.0.log().contains("clock was set"));
    assert_eq!(clocks.locks(), 1);
    fs::write(clocks.0.repo().join("go"), "").unwrap();
    let done = waits.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(clocks.locks(), 1);
}

#[test]
fn after_a_restart_in_the_past_a_lease_of_a_second_lasts_a_second_and_the_log_goes_on() {
    let clocks = Clocks::new();
    clocks.set(HOUR, 0);
    let mut daemon = clocks.start();
    clocks.0.done("a", &["lock", "src/a.ts:f", "--ttl", "1s"]);
    daemon.kill();
    clocks.set(0, 0);
    let daemon = clocks.start();
    eventually("the lease runs out", || clocks.locks() == 0);
    clocks.0.done("a", &["lock", "src/a.ts:g"]);
    let told = clocks.doctor();
    assert!(told.contains("ahead of the system's clock"), "{told}");
    daemon.stop();
    let times: Vec<String> =
        clocks.journal().iter().map(|it| it["at"].as_str().unwrap().to_owned()).collect();
    assert!(times.len() > 5 && times.is_sorted(), "{times:?}");
    let told = clocks.doctor();
    assert!(told.contains("ahead of the system's clock"), "without a daemon: {told}");
}

#[test]
fn a_clock_that_is_set_is_logged_put_on_record_and_told() {
    let clocks = Clocks::new();
    let _daemon = clocks.start();
    assert!(!clocks.doctor().contains("clock"), "nothing to tell");
    clocks.set(-HOUR, 0);
    let on_record = || clocks.journal().into_iter().find(|it| it["body"].to_string().contains("clock.set"));
    eventually("it is on record", || on_record().is_some());
    let says = on_record().unwrap()["body"].to_string();
    assert!(says.contains("-3600") || says.contains("-3599"), "by how much: {says}");
    assert!(clocks.0.log().contains("clock was set"), "{}", clocks.0.log());
    let told = clocks.doctor();
    assert!(told.contains("was set back by 1 h 0 min") || told.contains("was set back by 59 min"), "{told}");
}

#[test]
fn what_is_ahead_is_taken_up_when_nothing_is_measured() {
    let clocks = Clocks::new();
    let daemon = clocks.start();
    clocks.set(48 * HOUR, 0);
    eventually("the jump is noticed", || clocks.0.log().contains("clock was set"));
    clocks.0.done("a", &["lock", "src/a.ts:f", "--ttl", "10m"]);
    daemon.stop();
    let events = clocks.journal();
    let day = |it: &Value| it["at"].as_str().unwrap()[..10].to_owned();
    assert_ne!(day(events.first().unwrap()), day(events.last().unwrap()), "{events:?}");
}

#[test]
fn time_in_which_the_machine_sleeps_counts_for_a_lease() {
    let clocks = Clocks::new();
    let _daemon = clocks.start();
    clocks.0.done("a", &["lock", "src/a.ts:f", "--ttl", "30m"]);
    // Asleep: both clocks go on, and timers do not.
    clocks.set(HOUR, HOUR);
    eventually("the lease is over", || clocks.journal().iter().any(|it| it["kind"] == "lock_freed"));
    let told = clocks.doctor();
    assert!(!told.contains("was set"), "nobody has set a clock: {told}");
}

#[test]
fn a_clock_that_is_set_ahead_makes_no_agent_at_the_broker_door_look_silent() {
    let clocks = Clocks::new();
    let _daemon = clocks.start();
    let broker = Http::broker(&clocks.0);
    publish(broker, &status("feat-aa", "working", &[]));
    clocks.set(24 * HOUR, 0);
    let row = broker.get("/status").json()["agents"][0].clone();
    assert!(row["last_seen_seconds"].as_u64().unwrap() < 60, "{row}");
}

#[test]
fn a_clock_that_is_set_ahead_takes_nothing_away_of_what_runs_have_changed() {
    let clocks = Clocks::new();
    let config = WORKER.replace("timeout", "copy = \"kept\"\ntimeout");
    clocks.0.configure(&config);
    let daemon = clocks.start();
    let done = delegate(&clocks.0, "echo new > made.txt").output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let kept = clocks.0.state_dir().join("artifacts");
    let count =
        || fs::read_dir(&kept).unwrap().flatten().filter(|it| it.path().join("kept.json").exists()).count();
    assert_eq!(count(), 1);
    // While it runs, and over a start.
    clocks.set(30 * 24 * HOUR, 0);
    let done = delegate(&clocks.0, "echo more > made.txt").output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(count(), 2);
    daemon.stop();
    clocks.set(400 * 24 * HOUR, 0);
    let daemon = clocks.start();
    assert_eq!(count(), 2);
    daemon.stop();
    // Time that passes takes it away as ever.
    clocks.set(0, 8 * 24 * HOUR);
    let _daemon = clocks.start();
    assert_eq!(count(), 0);
}

//! Results of runs that go through the database: of a host that has left since, for several readers at once, and as a host or a login that has
//! turned would leave them.

use std::process::Stdio;

use provost::base::limits::CHANGED_FILES_MAX;
use serde_json::json;

use super::tasks_of_hosts::{ask, builder, delegate, host_of, is, machines, until};
use crate::support::forger::{hex, signed};
use crate::support::machines::{Machines, state_dir};
use crate::support::{Daemon, World};

fn diff(world: &World, id: &str) -> (bool, String) {
    let out = world.command(&["task", "diff", id]).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// More files than a result can have.
const FILES: usize = 2 * CHANGED_FILES_MAX + 100;

/// The most memory that a daemon has had, in KiB.
fn highest(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Two hosts; the second one has run these tasks.
fn with_results(ids: &[&str]) -> (Machines, Vec<Daemon>) {
    let (machines, daemons) = machines(["", &builder("")]);
    let a = &machines.all[0];
    for id in ids {
        // Until this daemon has read that the other one has the worker, it refuses the task.
        until("it is taken", || delegate(a, id, &format!("echo {id} >made.txt"), &[]).0 == 0);
        assert_eq!(is(a, id, "completed")["host"], host_of(&machines.all[1]));
    }
    until("all of it is left", || {
        machines.sql("select count(distinct task) from provost.artifact") == ids.len().to_string()
    });
    (machines, daemons)
}

#[test]
fn the_result_of_a_host_that_was_drained_is_to_be_had_still() {
    let (machines, mut daemons) = with_results(&["left"]);
    let [a, b] = &machines.all[..] else { panic!("two") };
    let (code, said) = ask(a, &["host", "drain", &host_of(b)]);
    assert_eq!(code, 0, "{said}");
    assert!(!daemons[1].ended().success());
    until("it is out", || {
        machines.sql("select count(*) from provost.event where kind = 'host_removed'") == "1"
    });
    let (is_shown, said) = diff(a, "left");
    assert!(is_shown && said.contains("+left"), "{said}");
    let (code, said) = ask(a, &["apply", "left"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(a.repo().join("made.txt")).unwrap(), "left\n");
    machines.check();
}

#[test]
fn who_asks_what_a_lost_run_has_changed_is_told_that_it_was_lost_and_with_which_host() {
    let (machines, mut daemons) = machines(["", &builder("")]);
    let [a, b] = &machines.all[..] else { panic!("two") };
    let (code, said) = delegate(a, "lost", "echo lost >made.txt; sleep 300", &["--timeout", "10m"]);
    assert_eq!(code, 0, "{said}");
    is(a, "lost", "running");
    daemons[1].kill();
    is(a, "lost", "failed");
    for command in [&["task", "diff", "lost"][..], &["apply", "lost"]] {
        let out = a.command(command).output().unwrap();
        let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        let why = format!("the run of task lost was lost with host {}", host_of(b));
        assert!(!out.status.success() && said.contains(&why), "{command:?}: {said}");
        assert!(said.contains("retry_lost") && said.contains("that machine's state folder"), "{said}");
    }
    // The machine itself says no more, once it is back.
    daemons[1] = b.start();
    let (is_shown, said) = diff(b, "lost");
    assert!(!is_shown && said.contains("the run of task lost was lost, so no daemon"), "{said}");
    machines.check();
}

#[test]
fn of_readers_that_want_a_result_at_once_each_gets_it() {
    let ids = ["one", "two", "three", "four"];
    let (machines, _daemons) = with_results(&ids);
    let a = &machines.all[0];
    for id in ids {
        let readers: Vec<_> = (0..6)
            .map(|_| {
                let mut command = a.command(&["task", "diff", id]);
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        for reader in readers {
            let out = reader.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
            assert!(out.status.success() && text.contains(&format!("+{id}")), "{text}");
        }
    }
    // Nothing half is left.
    let left = std::fs::read_dir(state_dir(a).join("artifacts")).unwrap().count();
    assert_eq!(left, ids.len());
}

#[test]
fn a_result_that_is_too_large_costs_its_reader_no_memory_and_is_refused() {
    let (machines, daemons) = with_results(&["pieces", "many", "signature", "files", "name"]);
    let [a, b] = &machines.all[..] else { panic!("two") };
    // What the daemon needs for a result at all is needed before.
    let _warm = diff(a, "name");
    let before = highest(&daemons[0]);
    let large = "decode(repeat('00', 300000000), 'hex')";
    machines.sql(&format!("update provost.artifact set bytes = {large} where task = 'pieces'"));
    machines.sql(&format!("update provost.artifact set seal = {large} where task = 'signature'"));
    machines.sql(
        "insert into provost.artifact (repo, shelf, n, task, host, seal, bytes)
         select repo, shelf, g, task, host, seal, decode(repeat('00', 500000), 'hex')
         from provost.artifact, generate_series(1, 600) g where task = 'many' and n = 0",
    );
    for id in ["pieces", "many", "signature"] {
        let (is_shown, said) = diff(a, id);
        assert!(!is_shown || !said.contains(&format!("+{id}")), "{id}: {said}");
    }
    // As the host that ran the task itself could leave it: files without end, and a name that leads out of the folder.
    let secret = std::fs::read(state_dir(a).join("journal.key")).unwrap();
    let leave = |id: &str, files: Vec<(String, &[u8])>| {
        let mut pack = b"provost-artifacts-1\n".to_vec();
        for (name, content) in files {
            pack.extend((name.len() as u64).to_be_bytes());
            pack.extend(name.as_bytes());
            pack.extend((content.len() as u64).to_be_bytes());
            pack.extend(content);
        }
        let shelf = machines.sql(&format!("select shelf from provost.artifact where task = '{id}' limit 1"));
        let signature = signed(b, &secret, &[b"provost-artifacts-v1", shelf.as_bytes(), &pack]);
        machines.sql(&format!(
            "update provost.artifact set seal = decode('{}', 'hex'), bytes = decode('{}', 'hex') where task = '{id}'",
            hex(&signature),
            hex(&pack)
        ));
    };
    let mut pack = b"provost-artifacts-1\n".to_vec();
    for n in 0..FILES {
        let name = format!("{n}.base");
        pack.extend([&(name.len() as u64).to_be_bytes(), name.as_bytes(), &[0; 8]].concat());
    }
    let shelf = machines.sql("select shelf from provost.artifact where task = 'files'");
    let signature = hex(&signed(b, &secret, &[b"provost-artifacts-v1", shelf.as_bytes(), &pack]));
    // It is too long for a command line.
    machines.sql(&format!(
        "update provost.artifact set seal = decode('{signature}', 'hex'), bytes = convert_to(E'provost-artifacts-1\\n', 'UTF8') || (
             select string_agg(int8send(length(n || '.base')) || convert_to(n || '.base', 'UTF8') || int8send(0), ''::bytea order by n)
             from generate_series(0, {FILES} - 1) n) where task = 'files'"
    ));
    assert_eq!(
        machines.sql("select length(bytes) from provost.artifact where task = 'files'"),
        pack.len().to_string()
    );
    let (is_shown, said) = diff(a, "files");
    assert!(!is_shown && said.contains("cannot be unpacked"), "{said}");
    for name in ["../../out.base", "/tmp/out", "..", "1.base/x", ""] {
        leave("name", vec![("kept.json".into(), b"{}"), (name.to_owned(), b"out")]);
        // Of a result with such a name nothing is written.
        let _warm_ones = std::fs::remove_dir_all(state_dir(a).join("artifacts"));
        let (is_shown, said) = diff(a, "name");
        assert!(!is_shown && said.contains("has a name that no file of a run has"), "{name}: {said}");
    }
    // Nor is the result of an attempt taken for that of another.
    let shelf = machines.sql("select shelf from provost.artifact where task = 'name' limit 1");
    for (attempt, is_taken) in [(2, false), (1, true)] {
        let list =
            json!({ "task": "name", "artifacts": [], "left_out": [], "incomplete": false, "answer": "" });
        let (list, number) = (list.to_string(), attempt.to_string());
        let files = [("kept.json", list.as_bytes()), ("output", b""), ("attempt", number.as_bytes())];
        leave("name", files.map(|(name, content)| (name.to_owned(), content)).into());
        let (is_shown, said) = diff(a, "name");
        assert!(!is_shown || !said.contains("+name"), "{said}");
        assert_eq!(
            state_dir(a).join("artifacts").join(&shelf).exists(),
            is_taken,
            "attempt {attempt}: {said}"
        );
    }
    let grown = highest(&daemons[0]) - before;
    assert!(grown < 64 << 10, "the daemon has grown by {grown} KiB");
    // The others are to be had still.
    assert_eq!(delegate(a, "last", "echo last >made.txt", &[]).0, 0);
    is(a, "last", "completed");
    let (is_shown, said) = diff(a, "last");
    assert!(is_shown && said.contains("+last"), "{said}");
}

//! Code waits for an event or a notice, and keeps a limit of time by a deadline. Each place that looks again
//! and again, or that pauses for a time, is in a table here, with the reason.

use crate::support::source::{Source, sources};

/// No notice exists of what is looked for.
const LOOKS: &[(&str, usize, &str)] = &[
    (
        "src/cli/adapt.rs",
        5,
        "edits of one file, by a program that would take one of the user's instances of inotify",
    ),
    ("src/cli/devitd.rs", 3, "the end of a daemon that another process has started"),
    ("src/cli/hook.rs", 3, "DevIt 1.9's marker, which a daemon of any maker puts into a folder"),
    ("src/cli/hooks/shown.rs", 3, "a mark between two hooks of a session, for the time of one question"),
    (
        "src/cli/hooks/waits.rs",
        1,
        "whether the daemon's process is stopped, five times at most: the system tells of it to its parent alone",
    ),
    ("src/cli/up.rs", 1, "the daemon that another start of this moment has begun"),
    (
        "src/daemon.rs",
        3,
        "the policy file and the repository's folder, on any file system, and the clock after a sleep",
    ),
    ("src/daemon/broker/log.rs", 3, "the folder of git-paw, which may come and go, and a write that failed"),
    (
        "src/daemon/committed.rs",
        3,
        "the commit of each work tree in which agents hold what they write; a read of one file for each",
    ),
    (
        "src/daemon/memory.rs",
        3,
        "the memory of the process, which the kernel tells of to no process of a user",
    ),
    (
        "src/daemon/wit_sockets.rs",
        2,
        "sockets in work trees that vanish, on network disks too, which tell of nothing",
    ),
    ("src/effects/cut_off.rs", 3, "silence of a shared store, which nothing tells"),
    (
        "src/effects/reaper.rs",
        3,
        "ends of processes: a descriptor for each could take all that the daemon has",
    ),
    (
        "src/jail/child/linux/daemon.rs",
        1,
        "processes that a killed supervisor has left and that are not ours to wait for",
    ),
    ("src/jail/child/linux/groups.rs", 1, "a control group that is empty once its processes have gone"),
    ("src/jail/child/linux/process_tree.rs", 1, "processes that fork as fast as they are killed"),
    ("src/jail/child/macos.rs", 3, "memory and processes of a worker, which macOS tells of to none"),
    (
        "src/jail/child/windows/keep.rs",
        6,
        "memory of a worker, and a job object whose processes take a moment to end",
    ),
    ("src/effects/keeper.rs", 2, "processes that are killed and may not be ours to wait for yet"),
    (
        "src/mcp/http/sessions.rs",
        3,
        "the library's sessions, which end without a notice, and ends of processes",
    ),
    (
        "src/mcp/changes.rs",
        3,
        "a transport of the library that closes without a notice, and a daemon that is away",
    ),
    (
        "src/protocols/own/ties.rs",
        3,
        "ends of processes: a descriptor for each could take all that the daemon has",
    ),
    ("src/syntax/cache.rs", 3, "a cancellation, which wakes no thread that waits for another one's parse"),
    (
        "src/transport/stream.rs",
        1,
        "a peer that has closed while nothing is read: the kernel tells nothing of it apart",
    ),
];

/// Repeated tries after a failure, or for something that is taken, with a pause that grows or a last try.
const TRIES: &[(&str, usize, &str)] = &[
    ("src/auth/keys.rs", 1, "a lock on a folder, with an end"),
    ("src/cli/adapt/file.rs", 3, "a lock on a file, which the standard library waits for without an end"),
    (
        "src/cli/follow.rs",
        2,
        "the last word of a run, for some seconds; and a sign of progress on a terminal",
    ),
    ("src/cli/hook/line_windows.rs", 1, "a pipe whose instances are all taken"),
    ("src/client/worker.rs", 1, "a lock on a file, with an end"),
    ("src/effects/ack.rs", 1, "a listener that is out of descriptors"),
    ("src/effects/desktop.rs", 1, "an answer with a name that no button has"),
    ("src/egress/mod.rs", 1, "a listener that is out of descriptors"),
    ("src/engine/wait.rs", 1, "an engine that is busy, with a pause that grows"),
    ("src/service/far_output.rs", 2, "a rest between two questions to another host"),
    ("src/service/mail.rs", 1, "an engine that is busy, with a pause that grows"),
    ("src/store/files.rs", 1, "a lock on a file, with an end"),
    ("src/store/postgres/waker.rs", 1, "words to other hosts: several are told as one"),
    ("src/store/sqlite/epoch.rs", 1, "a store that another process has locked, with an end"),
    ("src/transport/accept.rs", 1, "a listener that is out of descriptors, with a pause that grows"),
    ("src/transport/listen.rs", 1, "a lock on a folder, which any user may hold"),
    ("src/transport/pipe.rs", 1, "a pipe whose instances are all taken"),
    ("src/vault/renewal.rs", 1, "a lock on a file, with an end"),
];

/// A time passes, and nothing is looked for.
const TIMES: &[(&str, usize, &str)] = &[
    ("src/base/limits/store.rs", 1, "a number of writes"),
    ("src/store/postgres/turn.rs", 2, "a number of writes"),
    ("src/store/sqlite.rs", 2, "a number of writes"),
    ("src/cli/acp/program.rs", 1, "what an ended agent has left has a moment between two signals"),
    ("src/cli/locks.rs", 1, "a lock that comes at once is waited for without a word"),
    ("src/cli/out.rs", 1, "a sign of progress on a terminal"),
    ("src/cli/with.rs", 1, "locks are renewed before they lapse"),
    (
        "src/daemon/code_owners.rs",
        2,
        "a burst of changes is waited for; looks where the system does not tell",
    ),
    ("src/daemon/identities.rs", 1, "the rest of a second, at the start"),
    ("src/daemon/passkeys.rs", 3, "how long the daemon has run is noted, while a reset of passkeys waits"),
    ("src/daemon/supervisor.rs", 1, "a sign of life for a service manager"),
    ("src/daemon/telemetry.rs", 1, "what has come together is sent to a collector"),
    ("src/domain/mod.rs", 3, "what is over is forgotten, by the time that the rules are given"),
    ("src/effects/hook.rs", 1, "the limit of a hook"),
    ("src/effects/run.rs", 1, "output is kept for a while after a run"),
    ("src/effects/watcher.rs", 1, "a rest between two looks that a hint has called for"),
    ("src/engine/worker.rs", 6, "housekeeping, and whether a store that failed can be written again"),
    (
        "src/engine/worker/steps.rs",
        3,
        "how long its thread sleeps until then, and that notices put no look at the store off",
    ),
    ("src/mcp/dialog.rs", 1, "the limit of a question"),
    ("src/mcp/keepalive.rs", 3, "a sign of life for a host that would give up"),
    ("src/mcp/stdio.rs", 1, "a sign of life for the crew"),
    ("src/mcp/tools/tasks.rs", 1, "a sign of life for a host that would give up"),
    ("src/mcp/watch.rs", 2, "a daemon that is away is asked again"),
    ("src/protocols/devit/mod.rs", 1, "the limit of silence"),
    ("src/system/folder_watch/linux.rs", 1, "a worker may fill the queue as fast as it is read"),
    ("src/transport/sse.rs", 1, "a comment in a stream that is silent"),
    ("src/web/hub/follow.rs", 1, "the age of what a daemon shows, which grows by itself"),
    ("src/web/stream.rs", 1, "the age of what this daemon shows, which grows by itself"),
    ("src/transport/write_timeout.rs", 1, "the limit of a write"),
    ("src/workspace/change_hints.rs", 1, "looks where the system does not tell"),
];

/// The lines on which code pauses, or names an interval.
fn looks(source: &Source) -> Vec<usize> {
    let tokens = source.tokens();
    let pauses =
        tokens.windows(2).filter(|pair| ["sleep", "interval"].contains(&pair[0].1) && pair[1].1 == "(");
    let intervals = tokens.iter().filter(|token| token.1.ends_with("_EVERY"));
    pauses.map(|pair| pair[0].0).chain(intervals.map(|token| token.0)).collect()
}

/// Returns the differences between the sources and the tables.
fn differs(sources: &[Source], tables: &[&[(&str, usize, &str)]]) -> Vec<String> {
    let rows = || tables.iter().flat_map(|table| table.iter());
    let known = |path: &str| rows().filter(|row| row.0 == path).map(|row| row.1).sum::<usize>();
    let more = sources.iter().filter_map(|source| {
        let (lines, known) = (looks(source), known(&source.path));
        (lines.len() != known).then(|| {
            format!(
                "{}: lines {lines:?}, where the tables have {known}; wait for an event, and keep a limit by a deadline, \
                 or say why not",
                source.path
            )
        })
    });
    let is_there = |path: &str| sources.iter().any(|source| source.path == path);
    let gone = rows().filter(|row| !is_there(row.0)).map(|row| format!("{}: there is no such file", row.0));
    more.chain(gone).collect()
}

#[test]
fn code_waits_for_events_and_does_not_look_again_and_again() {
    let found = differs(&sources("src"), &[LOOKS, TRIES, TIMES]);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn one_more_look_is_caught() {
    let count = |text: &str| looks(&Source::new("src/engine/feed.rs", text)).len();
    assert_eq!(count("async fn f() { loop { look(); tokio::time::sleep(PAUSE).await; } }"), 1);
    assert_eq!(count("const LOOK_EVERY: Duration = SOON; fn f() { tick(LOOK_EVERY); }"), 2);
    assert_eq!(count("async fn f() { let mut tick = interval(SOON); sleep_until(end).await; }"), 1);
    assert_eq!(count("fn f() { let why = \"sleep(1)\"; } // sleep(1)"), 0);
    let two = Source::new("src/engine/feed.rs", "fn f() { sleep(A); sleep(B); }");
    let said = differs(&[two], &[&[("src/engine/feed.rs", 1, "its pause")]]);
    assert!(
        said.len() == 1 && said[0].starts_with("src/engine/feed.rs: lines [1, 1], where the tables have 1"),
        "{said:?}"
    );
    assert_eq!(
        differs(&[], &[&[("src/engine/feed.rs", 1, "its pause")]]),
        ["src/engine/feed.rs: there is no such file"]
    );
}

//! Where the folders of a tree may be listed, and where the system may be asked to watch some:
//! `provost_system::walk` walks and `provost_system::folder_watch` watches. Each other place is in a table
//! here, with the reason.

use crate::support::source::{Source, sources};

/// Files that list folders by other means, how often they do, and why. One folder at a time is no walk.
const LISTINGS: &[(&str, usize, &str)] = &[
    // The walk itself.
    ("src/system/listing.rs", 1, "lists a folder for the walk"),
    ("src/system/listing_elsewhere.rs", 1, "lists a folder for the walk"),
    // Walks of their own.
    (
        "src/jail/child/linux/growth.rs",
        2,
        "pauses between entries, keeps no folder open, and goes as deep as a path is long",
    ),
    (
        "src/jail/child/linux/landlock.rs",
        1,
        "goes down to what is hidden and no further, and lists what is not a worker's",
    ),
    (
        "src/jail/child/windows/watch.rs",
        1,
        "takes sizes from the list, and so opens no file that a worker writes",
    ),
    (
        "src/workspace/copy.rs",
        1,
        "opens folders of a copy that is removed, as deep as its worker has made them",
    ),
    // One folder.
    ("src/auth/keys/folder.rs", 1, "the keys"),
    ("src/auth/keys/folder_windows.rs", 1, "the keys"),
    ("src/auth/loopback.rs", 3, "processes and their descriptors, in /proc"),
    ("src/cli/hooks/index.rs", 1, "commands under way of a session"),
    ("src/cli/hooks/overwritten.rs", 2, "what was put aside for a command, and kept versions"),
    ("src/cli/hooks/shown.rs", 1, "what was asked of a person"),
    ("src/cli/screens.rs", 1, "open sessions of Codex"),
    ("src/cli/session.rs", 3, "notes of sessions"),
    ("src/config/daemons.rs", 1, "entries of the user's daemons"),
    ("src/config/load.rs", 1, "files of workflows"),
    ("src/config/pin.rs", 1, "files of workflows"),
    ("src/config/places.rs", 1, "work trees of the repository"),
    ("src/config/ports.rs", 1, "ports of other repositories"),
    ("src/effects/ack.rs", 1, "folders of hooks that an earlier daemon has left"),
    ("src/effects/capture_backend.rs", 1, "pictures that an earlier daemon has left"),
    ("src/effects/interrupted_runs.rs", 1, "notes of runs that an earlier daemon has left"),
    ("src/effects/kept_sessions.rs", 1, "homes of sessions"),
    ("src/effects/keeper.rs", 1, "processes, in /proc"),
    ("src/effects/other_trees.rs", 1, "work trees of the repository"),
    ("src/effects/outside/folders.rs", 1, "scripts in a folder that a line runs files of"),
    ("src/effects/read_only_paths.rs", 1, "the hooks of git"),
    ("src/effects/run_outside.rs", 1, "links in a folder that is named"),
    ("src/effects/screenshot_folder.rs", 1, "the pictures that were taken"),
    ("src/egress/own_ports.rs", 1, "our own descriptors, in /proc"),
    ("src/index/scip.rs", 1, "indexes at the root"),
    ("src/jail/conversations.rs", 1, "turns of editors' sessions, in their folders and no deeper"),
    ("src/jail/child/linux/counts.rs", 1, "counts of the kernel, in /proc"),
    ("src/jail/child/linux/groups.rs", 1, "control groups of supervisors that have gone"),
    ("src/jail/child/linux/process_tree.rs", 2, "processes, in /proc"),
    ("src/jail/child/linux/spare_stubs.rs", 2, "whether a stub is empty; the folders of stubs"),
    ("src/jail/repositories.rs", 1, "whether a folder is empty"),
    ("src/mcp/session.rs", 1, "records of hosts' sessions"),
    ("src/workspace/work_trees.rs", 2, "git's entries about work trees, and what is half removed of them"),
    ("src/workspace/work_trees/record.rs", 1, "records of work trees"),
    ("src/service/conflicts.rs", 1, "versions of files in conflict"),
    ("src/store/artifacts.rs", 2, "the changes of runs, and what is in the folder of one"),
    ("src/store/job_logs.rs", 1, "logs of jobs"),
    ("src/system/unix.rs", 1, "processes, in /proc"),
    ("src/system/ports.rs", 2, "processes and their descriptors, in /proc"),
    ("src/vault/renewal.rs", 1, "files beside a log-in that an earlier process has left"),
    ("src/workspace/apply_record.rs", 1, "records of applies"),
    ("src/workspace/orphaned_copies.rs", 1, "private copies, and the marks beside them"),
    ("src/workspace/versions.rs", 1, "kept versions"),
];

/// Files that ask the system to watch folders, how often, and why.
const WATCHES: &[(&str, usize, &str)] = &[
    ("src/system/folder_watch/elsewhere.rs", 1, "the one watcher, where the system is not Linux"),
    ("src/system/folder_watch/linux.rs", 1, "the one watcher, on Linux"),
    (
        "src/jail/child/linux/newcomers.rs",
        2,
        "the supervisor's process, which watches folders by their handles",
    ),
];

/// The lines on which folders are listed.
fn listings(source: &Source) -> Vec<usize> {
    let tokens = source.tokens();
    let is_one = |at: usize| {
        let token = |n: usize| tokens.get(at + n).map_or("", |(_, token)| *token);
        let before = |n: usize| at.checked_sub(n).map_or("", |at| tokens[at].1);
        match token(0) {
            "read_dir" => matches!(before(1), "::" | ".") && token(1) == "(",
            "entries" => before(1) == "." && (token(1), token(2)) == ("(", ")"),
            "read_from" | "new" => (before(2), before(1)) == ("Dir", "::"),
            "RawDir" | "WalkDir" | "WalkBuilder" | "getdents64" => before(1) != "use",
            _ => false,
        }
    };
    (0..tokens.len()).filter(|at| is_one(*at)).map(|at| tokens[at].0).collect()
}

/// The lines on which the system is asked to watch a folder, or a watcher of it is made.
fn watches(source: &Source) -> Vec<usize> {
    let tokens = source.tokens();
    let is_one = |at: usize| {
        let token = |n: usize| tokens.get(at + n).map_or("", |(_, token)| *token);
        match token(0) {
            "add_watch" | "inotify_add_watch" => token(1) == "(",
            "RecommendedWatcher" | "PollWatcher" | "INotifyWatcher" => token(1) == "::",
            "recommended_watcher" => token(1) == "(",
            _ => false,
        }
    };
    (0..tokens.len()).filter(|at| is_one(*at)).map(|at| tokens[at].0).collect()
}

/// Returns the differences between the sources and a table of them.
fn differs(
    sources: &[Source],
    found: impl Fn(&Source) -> Vec<usize>,
    table: &[(&str, usize, &str)],
    instead: &str,
) -> Vec<String> {
    let known = |path: &str| table.iter().find(|row| row.0 == path).map_or(0, |row| row.1);
    let more = sources.iter().filter_map(|source| {
        let (lines, known) = (found(source), known(&source.path));
        (lines.len() != known).then(|| {
            format!(
                "{}: lines {lines:?}, where the table has {known}; use {instead}, or say why not",
                source.path
            )
        })
    });
    let is_there = |path: &str| sources.iter().any(|source| source.path == path);
    let gone =
        table.iter().filter(|row| !is_there(row.0)).map(|row| format!("{}: there is no such file", row.0));
    more.chain(gone).collect()
}

#[test]
fn trees_are_walked_in_one_place() {
    let found = differs(&sources("src"), listings, LISTINGS, "provost_system::walk");
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn folders_are_watched_in_one_place() {
    let found = differs(&sources("src"), watches, WATCHES, "provost_system::folder_watch");
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn one_more_walk_is_caught() {
    let count = |text: &str| listings(&Source::new("src/engine/feed.rs", text)).len();
    assert_eq!(count("fn f() { for entry in std::fs::read_dir(path)? {} }"), 1);
    assert_eq!(count("fn f() { for entry in dir.entries()? {} for entry in dir.read_dir(\"a\")? {} }"), 2);
    assert_eq!(count("fn f() { Dir::read_from(&fd)?; found.and_then(rustix::fs::Dir::new); }"), 2);
    assert_eq!(count("fn f() { walkdir::WalkDir::new(path); }"), 1);
    assert_eq!(count("fn f() { let entries = map.entries; Self::new(); } // read_dir(path)"), 0);
    let two = Source::new("src/engine/feed.rs", "fn f() { fs::read_dir(a); fs::read_dir(b); }");
    let said = differs(&[two], listings, &[("src/engine/feed.rs", 1, "its folder")], "the walk");
    assert_eq!(
        said,
        ["src/engine/feed.rs: lines [1, 1], where the table has 1; use the walk, or say why not"]
    );
    let said = differs(&[], listings, &[("src/engine/feed.rs", 1, "its folder")], "the walk");
    assert_eq!(said, ["src/engine/feed.rs: there is no such file"]);
}

#[test]
fn one_more_watcher_is_caught() {
    let count = |text: &str| watches(&Source::new("src/engine/feed.rs", text)).len();
    assert_eq!(count("fn f() { let it = notify::RecommendedWatcher::new(hear, config)?; }"), 1);
    assert_eq!(
        count("fn f() { inotify::add_watch(&queue, path, flags)?; notify::recommended_watcher(hear)?; }"),
        2
    );
    assert_eq!(count("struct S { watcher: RecommendedWatcher }"), 0);
}

//! Attempts on files that have other names outside of the workspace. No layer holds them, since the file is
//! the same: the preparation of a run does, so these rows have a table of their own, and are tried as workers
//! of a real daemon and by `provost jail try`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::table;
use super::world::is_marked;
use crate::support::World;

/// The attempts on the file `f` and on the setting `.vscode/tasks.json`, both with a second name outside.
const ATTEMPTS: [(&str, &str); 8] = [
    ("shared.append", "echo x >> f"),
    ("shared.truncate", ": > f"),
    ("shared.map", "python3 -c \"import mmap; f = open('f', 'r+b'); mmap.mmap(f.fileno(), 0)[0] = 88\""),
    ("shared.mode", "chmod 4777 f"),
    ("shared.times", "touch -d @0 f"),
    ("shared.attributes", "python3 -c \"import os; os.setxattr('f', 'user.pwned', b'1')\""),
    ("shared.further_name", "ln f g && echo x >> g"),
    ("shared.setting_by_its_other_name", "echo x >> second"),
];

/// The commands in which each row is tried, by the table's words for them.
const WAYS: [&str; 3] = ["no jail", "ns", "jail try"];

/// All that an attempt may change of a file, its number of names excepted.
fn state(path: &Path) -> (Vec<u8>, u32, i64, bool) {
    let meta = fs::metadata(path).unwrap();
    (fs::read(path).unwrap(), meta.mode(), meta.mtime(), is_marked(path))
}

/// Whether the attempt has changed a file that a worker is not to change.
fn works(script: &str, way: &str) -> bool {
    let world = World::new();
    let (outside, setting) = (world.path("cache/file"), world.repo().join(".vscode/tasks.json"));
    for path in [&outside, &setting] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "theirs\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::hard_link(&outside, world.repo().join("f")).unwrap();
    fs::hard_link(&setting, world.repo().join("second")).unwrap();
    let before = [state(&outside), state(&setting)];
    let tried = format!("{script}; true");
    match way {
        "no jail" => {
            let mut sh = Command::new("sh");
            let done = sh.args(["-c", &tried]).current_dir(world.repo()).stdin(Stdio::null()).status();
            assert!(done.unwrap().success());
        }
        "ns" => {
            let daemon = world.start();
            let client = world.client(&daemon, "orch:a");
            let (task, reply) = client.delegate("shell", &tried, json!({}));
            reply.ack();
            let result = client.result_of(&task);
            assert_eq!(result["status"], "completed", "{result}");
        }
        _ => {
            let done = world.command(&["jail", "try", "--", "sh", "-c", &tried]).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
    }
    [state(&outside), state(&setting)] != before
}

#[test]
fn what_is_shared_with_files_outside_is_held_as_the_table_says() {
    let rows = table::shared_rows();
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ATTEMPTS.map(|(name, _)| name), "{} and what is tried", table::DOCUMENT);
    for (row, (name, script)) in rows.iter().zip(ATTEMPTS) {
        for (way, expected) in WAYS.iter().zip(&row[2..]) {
            let seen = if works(script, way) { "works" } else { "held" };
            assert_eq!(seen, expected, "{name}, {way}");
        }
    }
}

//! Attempts on files: read what is secret, change what is outside, and plant in the workspace what runs later.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::calls::{self, address, c, call, signed, text};
use super::intruder::{Attempt, Facts, Outcome, Own, by, leak, open, shut};

/// Opens of a race at most. Without a jail one of the first few hits.
const RACES_MAX: u32 = 20_000;

/// Exchanges two names at once.
const RENAME_EXCHANGE: usize = 2;

/// In the order in which they are tried.
pub(super) const ATTEMPTS: &[Attempt] = &[
    ("fs.read_home_secret", |f, _| read(&f.secret, "TOPSECRET")),
    ("fs.proc_self_root", |f, _| read(below("/proc/self/root", &f.secret), "TOPSECRET")),
    ("fs.proc_daemon_root", |f, _| read(below(&format!("/proc/{}/root", f.daemon), &f.secret), "TOPSECRET")),
    ("fs.proc_1_root", |f, _| read(below("/proc/1/root", &f.secret), "TOPSECRET")),
    ("fs.proc_ppid_root", |f, o| read(below(&format!("/proc/{}/root", o.parent), &f.secret), "TOPSECRET")),
    ("fs.proc_daemon_cwd", |f, _| read(format!("/proc/{}/cwd/home/.ssh/id_ed25519", f.daemon), "TOPSECRET")),
    ("fs.proc_daemon_fd", |f, _| descriptors_of(f.daemon)),
    ("fs.write_outside", |f, _| write(f.outside.join("canary"))),
    ("fs.create_outside", |f, _| write(f.outside.join("new"))),
    ("fs.delete_outside", |f, _| by(fs::remove_file(f.outside.join("deleteme")), "deleted")),
    ("fs.truncate_outside", |f, _| {
        by(call(libc::SYS_truncate, [text(&c(f.outside.join("canary"))), 0]), "emptied")
    }),
    ("fs.symlink_write", symlink_write),
    ("fs.symlink_swap_race", symlink_swap_race),
    ("fs.hardlink_in", hardlink_in),
    ("fs.rename_in", |f, _| by(fs::rename(f.outside.join("moveme"), f.workspace.join("moved")), "moved in")),
    ("fs.rename_out", rename_out),
    ("fs.chmod_outside", chmod_outside),
    ("fs.utimes_outside", |f, _| {
        by(
            call(libc::SYS_utimensat, [signed(libc::AT_FDCWD), text(&c(f.outside.join("canary"))), 0, 0]),
            "touched",
        )
    }),
    ("fs.xattr_outside", xattr_outside),
    ("fs.stat_secret", |f, _| match fs::metadata(&f.secret) {
        Ok(found) => leak(format!("{} bytes", found.len())),
        Err(error) => shut(error),
    }),
    ("fs.inotify_secret", inotify_secret),
    ("git.hook_write", |f, _| write(f.workspace.join(".git/hooks/pre-commit"))),
    ("git.config_write", |f, _| write(f.workspace.join(".git/config"))),
    ("git.hooks_dir_swap", |f, _| swap(&f.workspace, ".git/hooks", ".git/hooks/pre-commit")),
    ("git.dotgit_swap", |f, _| swap(&f.workspace, ".git", ".git/hooks/pre-commit")),
    ("git.index_write", |f, _| write_anew(&f.workspace.join(".git/index"))),
    ("git.exclude_write", |f, _| write_anew(&f.workspace.join(".git/info/exclude"))),
    ("git.replace_ref", |f, _| write_anew(&f.workspace.join(".git/refs/replace/0123"))),
    ("git.alternates_write", |f, _| write_anew(&f.workspace.join(".git/objects/info/alternates"))),
    ("git.ref_move", |f, _| write_anew(&f.workspace.join(".git/refs/heads/main"))),
    ("git.nested_config_write", |f, _| write_anew(&f.workspace.join("nested/.git/config"))),
    ("cfg.agent_settings_create", |f, _| {
        let _there = fs::create_dir_all(f.workspace.join(".claude"));
        write(f.workspace.join(".claude/settings.json"))
    }),
    ("fs.toolchain_write", |f, _| write(f.toolchain.join("tool"))),
    ("daemon.journal_write", |f, _| write(f.state.join("journal.jsonl"))),
    ("daemon.secret_read", |f, _| read(f.state.join("secret"), "HMACKEY")),
    ("daemon.policy_write", |f, _| write(f.state.join("policy.toml"))),
    ("fs.mknod_block", |f, _| {
        let mode = (libc::S_IFBLK | 0o600) as usize;
        by(
            call(
                libc::SYS_mknodat,
                [signed(libc::AT_FDCWD), text(&c(f.workspace.join("disk"))), mode, 254 << 8],
            ),
            "made",
        )
    }),
    ("fs.raw_disk", |_, _| by(File::open("/dev/vda"), "opened")),
    ("fs.dev_mem", |_, _| by(File::open("/dev/mem"), "opened")),
    ("fs.dev_kmsg", |_, _| by(File::open("/dev/kmsg"), "opened")),
    ("fs.handle_open", handle_open),
    ("fs.setuid_plant", setuid_plant),
    ("fs.setuid_plant_open", setuid_plant_open),
    // Not in the table of the first suite.
    ("fs.dotdot", |_, _| read("../home/.ssh/id_ed25519", "TOPSECRET")),
    ("fs.proc_cwd_dotdot", |_, _| read("/proc/self/cwd/../home/.ssh/id_ed25519", "TOPSECRET")),
    ("fs.fifo_for_the_daemon", |f, _| {
        // Allowed everywhere: the daemon opens nothing in a workspace without looking at what it is.
        let made =
            call(libc::SYS_mknodat, [signed(libc::AT_FDCWD), text(&c(f.state.join("fifo"))), 0o010_600, 0]);
        by(made, "made in the daemon's folder")
    }),
    ("fs.link_for_the_daemon", |f, _| {
        by(symlink(&f.secret, f.state.join("result")), "made in the daemon's folder")
    }),
    ("fs.second_name_of_protected", second_name_of_protected),
];

fn below(root: &str, path: &Path) -> String {
    format!("{root}{}", path.display())
}

pub(super) fn read(path: impl AsRef<Path>, wanted: &str) -> Outcome {
    match fs::read_to_string(path) {
        Ok(text) if text.contains(wanted) => open("read"),
        Ok(_) => shut("something else is there"),
        Err(error) => shut(error),
    }
}

pub(super) fn write(path: impl AsRef<Path>) -> Outcome {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    by(file.and_then(|mut file| file.write_all(b"PWNED")), "written")
}

/// The same in a folder that need not be there.
fn write_anew(path: &Path) -> Outcome {
    let _there = path.parent().map(fs::create_dir_all);
    write(path)
}

/// Only the numbers are a leak, what they lead to would be a way out.
fn descriptors_of(daemon: i32) -> Outcome {
    match fs::read_dir(format!("/proc/{daemon}/fd")) {
        Ok(entries) => match entries.flatten().filter(|entry| fs::read_link(entry.path()).is_ok()).count() {
            0 => leak("their numbers"),
            some => open(format!("{some} that can be opened again")),
        },
        Err(error) => shut(error),
    }
}

fn symlink_write(f: &Facts, _: &Own) -> Outcome {
    let link = f.workspace.join("link");
    let _there = symlink(&f.outside, &link);
    write(link.join("canary"))
}

/// One thread exchanges a directory and a link to the outside, the other opens a file through the one that is there.
fn symlink_swap_race(f: &Facts, _: &Own) -> Outcome {
    let [dir, link] = ["race", "race-link"].map(|name| f.workspace.join(name));
    let _there = (fs::create_dir(&dir), symlink(&f.outside, &link));
    let stop = AtomicBool::new(false);
    let hit = std::thread::scope(|threads| {
        threads.spawn(|| {
            let (a, b) = (c(&dir), c(&link));
            let here = signed(libc::AT_FDCWD);
            while !stop.load(Ordering::Relaxed) {
                let _raced = call(libc::SYS_renameat2, [here, text(&a), here, text(&b), RENAME_EXCHANGE]);
            }
        });
        let opened = |_| {
            OpenOptions::new().write(true).open(dir.join("canary")).and_then(|mut f| f.write_all(b"PWNED"))
        };
        let hit = (0..RACES_MAX).map(opened).any(|it| it.is_ok());
        stop.store(true, Ordering::Relaxed);
        hit
    });
    if hit { open("written through the link") } else { shut(format!("not once in {RACES_MAX} opens")) }
}

fn hardlink_in(f: &Facts, _: &Own) -> Outcome {
    let link = f.workspace.join("hard");
    match fs::hard_link(&f.secret, &link) {
        Ok(()) => read(link, "TOPSECRET"),
        Err(error) => shut(error),
    }
}

fn rename_out(f: &Facts, _: &Own) -> Outcome {
    let _written = fs::write(f.workspace.join("payload"), "x");
    by(fs::rename(f.workspace.join("payload"), f.outside.join("payload")), "moved out")
}

fn chmod_outside(f: &Facts, _: &Own) -> Outcome {
    by(fs::set_permissions(f.outside.join("canary"), fs::Permissions::from_mode(0o666)), "readable by all")
}

fn xattr_outside(f: &Facts, _: &Own) -> Outcome {
    let (path, name, value) = (c(f.outside.join("canary")), c("user.pwned"), c("1"));
    by(call(libc::SYS_setxattr, [text(&path), text(&name), text(&value), 1, 0]), "set")
}

fn inotify_secret(f: &Facts, _: &Own) -> Outcome {
    let watch = || -> io::Result<usize> {
        let watcher = call(libc::SYS_inotify_init1, [0])?;
        call(libc::SYS_inotify_add_watch, [watcher, text(&c(&f.secret)), libc::IN_ALL_EVENTS as usize])
    };
    match watch() {
        Ok(_) => leak("watched"),
        Err(error) => shut(error),
    }
}

/// Moves something protected aside, and puts one's own in its place.
fn swap(workspace: &Path, protected: &str, plant: &str) -> Outcome {
    let (protected, aside) = (workspace.join(protected), workspace.join(format!("{protected}-aside")));
    if let Err(error) = fs::rename(&protected, &aside) {
        return shut(error);
    }
    let plant = workspace.join(plant);
    let _there = plant.parent().map(fs::create_dir_all);
    let planted = write(plant);
    // For those that come after this one.
    let _removed = fs::remove_dir_all(&protected);
    let _back = fs::rename(aside, protected);
    planted
}

/// A protected file by a second name is the same file.
fn second_name_of_protected(f: &Facts, _: &Own) -> Outcome {
    let second = f.workspace.join("second");
    match fs::hard_link(f.workspace.join(".git/config"), &second) {
        Ok(()) => write(second),
        Err(error) => shut(error),
    }
}

fn handle_open(f: &Facts, _: &Own) -> Outcome {
    let mut handle = [0_u8; 136];
    handle[0] = 128;
    let mut mount = 0_i32;
    let (here, path) = (signed(libc::AT_FDCWD), c(&f.secret));
    let named =
        call(libc::SYS_name_to_handle_at, [here, text(&path), address(&mut handle), address(&mut mount), 0]);
    match named {
        Ok(_) => by(call(libc::SYS_open_by_handle_at, [here, address(&mut handle), 0]), "opened"),
        Err(error) => shut(format!("no handle: {error}")),
    }
}

fn setuid_plant(f: &Facts, _: &Own) -> Outcome {
    let path = f.workspace.join("setuid");
    let _written = fs::write(&path, "#!/bin/sh\n");
    by(fs::set_permissions(path, fs::Permissions::from_mode(0o4755)), "planted")
}

fn setuid_plant_open(f: &Facts, _: &Own) -> Outcome {
    let path: CString = c(f.workspace.join("setuid-at-once"));
    let flags = (libc::O_CREAT | libc::O_WRONLY) as usize;
    match call(libc::SYS_openat, [signed(libc::AT_FDCWD), text(&path), flags, 0o4755]) {
        Ok(file) => match calls::file(file).metadata().map(|meta| meta.permissions().mode() & 0o4000) {
            Ok(0) | Err(_) => shut("made without the bit"),
            Ok(_) => open("planted"),
        },
        Err(error) => shut(error),
    }
}

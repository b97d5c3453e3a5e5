//! The files that an intruder is after, how it is let loose among them, and what is left of them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use provost::jail::Tier;
use rustix::fs::FlockOperation;

use super::calls::{address, c, call, text};
use super::intruder::Saw;
use super::stand_in::{BY_THE_KERNEL, Jail, MARK, Order, Report, TO_ALL};
use super::{provost, roles, table};

/// The files at the beginning.
const FILES: [(&str, &str); 12] = [
    ("workspace/.git/HEAD", "ref: refs/heads/main\n"),
    ("workspace/.git/config", "[core]\n"),
    ("workspace/nested/.git/HEAD", "ref: refs/heads/main\n"),
    ("workspace/nested/.git/config", "[core]\n"),
    ("home/.ssh/id_ed25519", "TOPSECRET"),
    ("outside/canary", "INTACT"),
    ("outside/deleteme", "INTACT"),
    ("outside/moveme", "INTACT"),
    ("state/secret", "HMACKEY"),
    ("state/journal.jsonl", "{}\n"),
    ("state/policy.toml", "version = 1\n"),
    ("toolchain/tool", "#!/bin/sh\n"),
];

/// A folder with everything.
pub(super) struct World {
    path: PathBuf,
    before: BTreeMap<PathBuf, String>,
    _dir: tempfile::TempDir,
}

/// The result of an intrusion.
pub(super) struct Seen {
    pub(super) report: Report,
    /// How each attempt has ended, with what was seen.
    pub(super) attempts: BTreeMap<String, (Saw, String)>,
    /// Files that are not as they were.
    pub(super) files: Vec<String>,
}

impl World {
    pub(super) fn new() -> Self {
        assert!(
            !rustix::process::geteuid().is_root(),
            "jails are tried as an ordinary user: run scripts/test"
        );
        // Not among the temporary files of the host: a jail that lacks its root may write those.
        let temporary = std::env::temp_dir();
        let place = if temporary.starts_with("/tmp") { "/var/tmp".into() } else { temporary };
        let dir = tempfile::tempdir_in(place).unwrap();
        let path = dir.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("workspace/.git/hooks")).unwrap();
        for (file, text) in FILES {
            let file = path.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let mut world = Self { path, before: BTreeMap::new(), _dir: dir };
        world.before = world.files();
        world
    }

    /// Lets the intruder loose without a jail.
    pub(super) fn at_large(self) -> Seen {
        self.intruded(None)
    }

    /// In a jail of the product's own.
    pub(super) fn in_jail(self, tier: Tier) -> Seen {
        self.intruded(Some(Jail { tier, without: vec![], supervisor: provost() }))
    }

    /// In a jail that lacks something.
    #[cfg(debug_assertions)]
    pub(super) fn in_less_of_a_jail(self, tier: Tier, without: &[provost::jail::Layer]) -> Seen {
        let supervisor = std::env::current_exe().unwrap();
        self.intruded(Some(Jail { tier, without: without.to_vec(), supervisor }))
    }

    fn intruded(self, jail: Option<Jail>) -> Seen {
        let order = Order { mark: MARK.into(), world: self.path.clone(), jail, only: vec![] };
        let turn = Turn::take(order.jail.as_ref());
        let said = Command::new(std::env::current_exe().unwrap())
            .args([roles::STAND_IN, &serde_json::to_string(&order).unwrap()])
            .env("PROVOST_SECRET", "DAEMONSECRET")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        drop(turn);
        assert!(said.status.success(), "{said:?}");
        let report: Report = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(report.end, "Some(0) ", "the intruder has not ended by itself");
        assert_eq!(survivors(&self.path), 0, "somebody has stayed");
        let mut attempts = outcomes(&report.lines);
        // Of these two, only the daemon knows.
        for (name, signal) in [("sig.fsetown_sigio", BY_THE_KERNEL), ("sig.kill_all", TO_ALL)] {
            if let Some((saw, _)) = attempts.get_mut(name) {
                *saw = if report.signals.contains(&signal) { Saw::Open } else { Saw::Shut };
            }
        }
        let after = self.files();
        let names: std::collections::BTreeSet<_> = self.before.keys().chain(after.keys()).collect();
        let changed = names.into_iter().filter(|name| self.before.get(*name) != after.get(*name));
        let files = changed.map(|name| name.to_str().unwrap().to_owned()).collect();
        Seen { report, attempts, files }
    }

    /// Everything that the intruder should leave as it is: content, mode, time of change and attributes.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut open: Vec<PathBuf> = [
            "home",
            "outside",
            "state",
            "toolchain",
            "workspace/.git",
            "workspace/nested",
            "workspace/.claude",
        ]
        .map(Into::into)
        .into();
        while let Some(path) = open.pop() {
            let full = self.path.join(&path);
            let Ok(meta) = fs::symlink_metadata(&full) else { continue };
            let kind = meta.file_type();
            let what = if kind.is_dir() {
                let names = fs::read_dir(&full).unwrap().flatten().map(|entry| path.join(entry.file_name()));
                open.extend(names);
                String::new()
            } else if kind.is_file() {
                let content = fs::read(&full).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                format!("{content:?} {}.{} {}", meta.mtime(), meta.mtime_nsec(), is_marked(&full))
            } else if std::os::unix::fs::FileTypeExt::is_socket(&kind) {
                continue;
            } else {
                format!("{kind:?}")
            };
            found.insert(path, format!("{:o} {what}", meta.mode()));
        }
        found
    }
}

/// An intruder that can signal everybody must not meet another's daemon, in whatever process that is.
struct Turn(#[expect(dead_code, reason = "held, not used")] File);

impl Turn {
    fn take(jail: Option<&Jail>) -> Self {
        let path = format!("/tmp/provost-escapes-{}.lock", rustix::process::geteuid().as_raw());
        let nofollow = libc::O_NOFOLLOW;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(nofollow)
            .open(path)
            .unwrap();
        let everybody = |row: &table::Row| row.name == "sig.kill_all";
        let alone = jail.is_none_or(|jail| {
            let row = table::rows().into_iter().find(everybody).unwrap();
            row.allows(jail.tier, &jail.without, Saw::Open)
        });
        let how = if alone { FlockOperation::LockExclusive } else { FlockOperation::LockShared };
        rustix::fs::flock(&file, how).unwrap();
        Self(file)
    }
}

/// Whether the intruder's extended attribute is there.
pub(super) fn is_marked(path: &Path) -> bool {
    let (path, name, mut value) = (c(path), c("user.pwned"), [0_u8; 8]);
    call(libc::SYS_getxattr, [text(&path), text(&name), address(&mut value), value.len()]).is_ok()
}

/// The lines that an intruder has said.
pub(super) fn outcomes(lines: &str) -> BTreeMap<String, (Saw, String)> {
    let outcome = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (name, saw, what) = (parts.next()?, parts.next()?, parts.next()?);
        let saw = match saw {
            "Open" => Saw::Open,
            "Leak" => Saw::Leak,
            "Shut" => Saw::Shut,
            other => panic!("{other}: {line}"),
        };
        Some((name.to_owned(), (saw, what.to_owned())))
    };
    lines.lines().map(|line| outcome(line).unwrap_or_else(|| panic!("not an outcome: {line}"))).collect()
}

/// Processes of the host that have the world in their command line.
fn survivors(world: &Path) -> usize {
    let word = world.to_str().unwrap().as_bytes();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| line.windows(word.len()).any(|part| part == word)).count()
}

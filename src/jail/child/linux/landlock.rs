//! Landlock: which files the worker may use and how, and which processes it may signal.
//!
//! The rules handle every right that the running kernel's version of Landlock knows, and a part that cannot be
//! enforced is an error. The kernel is asked for its version once; there is no best effort.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use super::confined::JailPaths;
use super::{about, sys, terminals};
use crate::layer::Layer;
use crate::plan::{Plan, Tier};

/// The first version that restricts signals to the jail.
pub(super) const ABI_OF_SCOPES: i32 = 6;

/// The first version that handles TCP.
const ABI_OF_NET: i32 = 4;

/// The paths that every worker may read: the system's programs and settings, and its view of `/proc`.
const READABLE: [&str; 9] = ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc"];

/// Proof that the rules are in force, in full.
pub(super) struct Fenced(());

pub(super) fn other(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Returns the names of the layers that both tiers have, for the report.
pub(super) fn layers() -> Vec<String> {
    let landlock = format!("Landlock {}", sys::landlock_abi());
    let rest = ["system call filter", "resource limits", "no new privileges", "no capabilities"];
    [landlock].into_iter().chain(rest.map(String::from)).collect()
}

/// Puts this process and all its children into a domain from which no signal leaves, and proves it: the parent
/// could be signalled before, and cannot be now. Only then may every process in reach be killed.
pub(super) fn scope_signals() -> io::Result<()> {
    if sys::landlock_abi() < ABI_OF_SCOPES {
        return Err(other(format!("Landlock is version {}, {ABI_OF_SCOPES} is needed", sys::landlock_abi())));
    }
    let parent = rustix::process::getppid().ok_or_else(|| other("the daemon is out of sight"))?;
    let parent = parent.as_raw_nonzero().get();
    sys::signal(parent, 0)?;
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal);
    in_force(ruleset.map_err(other)?.create().map_err(other)?.restrict_self().map_err(other)?)?;
    match sys::signal(parent, 0) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        _ => Err(other("a signal has left the scope")),
    }
}

pub(super) fn in_force(status: RestrictionStatus) -> io::Result<Fenced> {
    match (status.ruleset, status.no_new_privs) {
        (RulesetStatus::FullyEnforced, true) => Ok(Fenced(())),
        (how, _) => Err(other(format!("only in part: {how:?}"))),
    }
}

/// Restricts this process to the plan, irrevocably.
pub(super) fn fence(plan: &Plan, inside: &JailPaths<'_>) -> io::Result<Fenced> {
    if plan.lacks(Layer::Landlock) {
        return Ok(Fenced(()));
    }
    let version = sys::landlock_abi();
    if version == 0 {
        return Err(other("this kernel does not offer it"));
    }
    let abi = ABI::from(version);
    let all = AccessFs::from_all(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)
        .map_err(other)?;
    // In its own network namespace a worker may serve and connect, since only its own processes are there.
    if version >= ABI_OF_NET && plan.tier == Tier::Ll {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi)).map_err(other)?;
    }
    if version >= ABI_OF_SCOPES {
        ruleset = ruleset.scope(Scope::from_all(abi)).map_err(other)?;
    }
    let mut rules = Rules { ruleset: ruleset.create().map_err(other)?, abi };
    rules.add(plan, inside)?;
    in_force(rules.ruleset.restrict_self().map_err(other)?)
}

struct Rules {
    ruleset: RulesetCreated,
    abi: ABI,
}

impl Rules {
    fn add(&mut self, plan: &Plan, inside: &JailPaths<'_>) -> io::Result<()> {
        let all = AccessFs::from_all(self.abi);
        let read = AccessFs::from_read(self.abi);
        // If the kernel can keep a worker from local sockets that other programs have made, it reaches only its own,
        // which no rule has to name: another program that listens takes the worker for the user, and may begin to listen
        // while the worker runs.
        let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
        let write = all & !never;
        for place in &plan.writable {
            let found = open_strictly(place.path())?;
            let stat = rustix::fs::fstat(&found)?;
            if (stat.st_dev, stat.st_ino) != (place.dev(), place.ino()) {
                return Err(about(place.path())(other("is not the one that the task was accepted for")));
            }
            self.allow(found, write)?;
        }
        for path in &inside.writable {
            self.allow(open_strictly(path)?, write)?;
        }
        for path in READABLE.map(Path::new) {
            if let Some(found) = open_system(path)? {
                self.allow(found, read)?;
            }
        }
        for place in &plan.read_only {
            self.allow_reading(place.path(), &plan.hidden, plan.tier, read)?;
        }
        self.allow(open_strictly(plan.program().place().path())?, read)?;
        let device = (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate) & all;
        for name in ["null", "zero", "full", "random", "urandom", "tty"] {
            self.allow(open_strictly(&Path::new("/dev").join(name))?, device)?;
        }
        // Only in a root of its own are these the worker's own terminals; otherwise those of the host would be there.
        if plan.tier == Tier::Ns
            && !plan.lacks(Layer::Root)
            && let Some(terminals) = open_system(Path::new(terminals::FOLDER))?
        {
            self.allow(terminals, (device | AccessFs::ReadDir | AccessFs::IoctlDev) & all)?;
        }
        Ok(())
    }

    fn allow(&mut self, found: OwnedFd, access: BitFlags<AccessFs>) -> io::Result<()> {
        let is_dir = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode).is_dir();
        let access = if is_dir { access } else { access & AccessFs::from_file(self.abi) };
        (&mut self.ruleset).add_rule(PathBeneath::new(found, access)).map_err(other)?;
        Ok(())
    }

    /// Allows reading a directory. Without a mount namespace no mount can cover hidden paths in it, and Landlock
    /// cannot take back a right, so the neighbours of hidden paths are allowed one by one instead.
    fn allow_reading(
        &mut self,
        path: &Path,
        hidden: &[PathBuf],
        tier: Tier,
        read: BitFlags<AccessFs>,
    ) -> io::Result<()> {
        if hidden.iter().any(|hidden| hidden == path) {
            return Ok(());
        }
        if tier == Tier::Ns || !hidden.iter().any(|hidden| hidden.starts_with(path)) {
            return self.allow(open_strictly(path)?, read);
        }
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            if !entry.file_type()?.is_symlink() {
                self.allow_reading(&entry.path(), hidden, tier, read)?;
            }
        }
        Ok(())
    }
}

pub(super) fn open_strictly(path: &Path) -> io::Result<OwnedFd> {
    let never = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), never)
        .map_err(|e| about(path)(e.into()))
}

/// Opens a directory of the system, which may be a link (`/bin` to `usr/bin`), and may not exist.
fn open_system(path: &Path) -> io::Result<Option<OwnedFd>> {
    match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(found) => Ok(Some(found)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(e) => Err(about(path)(e.into())),
    }
}

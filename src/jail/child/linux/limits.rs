//! Resource limits, privileges, and the private folder of tier `ll`.
#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::counts::Shares;
use super::process_tree;
use crate::layer::Layer;
use crate::plan::{Plan, Tier};

/// Bytes that a worker may lock into memory, and keep in message queues.
const LOCKED_BYTES: u64 = 64 << 10;

/// The limit of core files. No file of a core is as small as this, and only at this limit the kernel starts no program that
/// handles crashes (`|` in `kernel.core_pattern`). With a limit of zero it does.
pub(super) const NO_CORE: u64 = 1;

/// The number of a worker's signals that may wait to be received, including its timers.
const PENDING_SIGNALS: u64 = 1_024;

/// Proof that every limit is set.
pub(super) struct Limited(());

/// Proof that no capability is left and that none can come back.
pub(super) struct Powerless(());

/// Returns the limit of processes as the kernel counts them. Called outside of the jail.
pub(super) fn processes(plan: &Plan) -> io::Result<u64> {
    let most = u64::from(plan.limits.processes);
    Ok(match plan.tier {
        // The kernel counts in the user namespace, which has only the first process in addition to the worker's own.
        Tier::Ns => most + 1,
        // The kernel counts all processes of the user, so their number is added.
        Tier::Ll | Tier::Job => most + process_tree::tasks_of_this_user()?,
    })
}

/// Sets every limit, for this process and all its children; `processes` is the result of [`processes`].
pub(super) fn set(plan: &Plan, processes: u64, shares: &Shares) -> io::Result<Limited> {
    if plan.lacks(Layer::Limits) {
        return Ok(Limited(()));
    }
    let limits = &plan.limits;
    let all = [
        (Resource::Core, NO_CORE),
        (Resource::Nproc, processes),
        (Resource::Nofile, limits.open_files.into()),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Data, limits.data_bytes),
        (Resource::Memlock, LOCKED_BYTES),
        (Resource::Msgqueue, shares.of(Resource::Msgqueue, LOCKED_BYTES)),
        (Resource::Sigpending, shares.of(Resource::Sigpending, PENDING_SIGNALS)),
        (Resource::Rtprio, 0),
    ];
    for (resource, most) in all {
        at_most(resource, most, most)?;
    }
    // First comes the signal that a program can handle, a second later the one that it cannot ignore.
    at_most(Resource::Cpu, limits.cpu_seconds, limits.cpu_seconds + 1)?;
    Ok(Limited(()))
}

/// Sets a limit, or keeps a stricter one that this process was started with.
fn at_most(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let had = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(soft.min(had)), maximum: Some(hard.min(had)) };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

/// Drops the capabilities of a plan's worker.
pub(super) fn give_up_capabilities(plan: &Plan) -> io::Result<Powerless> {
    match plan.lacks(Layer::Capabilities) {
        true => Ok(Powerless(())),
        false => drop_capabilities(plan.tier == Tier::Ns),
    }
}

/// Empties every set of capabilities. In a user namespace of our own it also closes the ways in which they could come back;
/// elsewhere this process never had the capability to close them, nor any other.
pub(super) fn drop_capabilities(own_namespace: bool) -> io::Result<Powerless> {
    if own_namespace {
        for number in 0..64 {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            match rustix::thread::capability_is_in_bounding_set(capability) {
                Ok(true) => rustix::thread::remove_capability_from_bounding_set(capability)?,
                Ok(false) => {}
                // The kernel knows no capability with this number, and none after it.
                Err(_) => break,
            }
        }
        use CapabilitiesSecureBits as Bits;
        let bits =
            Bits::NO_ROOT | Bits::NO_ROOT_LOCKED | Bits::NO_SETUID_FIXUP | Bits::NO_SETUID_FIXUP_LOCKED;
        let ambient = Bits::NO_CAP_AMBIENT_RAISE | Bits::NO_CAP_AMBIENT_RAISE_LOCKED;
        rustix::thread::set_capabilities_secure_bits(bits | ambient | Bits::KEEP_CAPS_LOCKED)?;
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    match rustix::thread::capabilities(None)? {
        left if left.effective.is_empty() && left.permitted.is_empty() && left.inheritable.is_empty() => {
            Ok(Powerless(()))
        }
        _ => Err(io::Error::other("some were left")),
    }
}

/// The folder for temporary files and home of a worker without a mount namespace. Removed when dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder, under a name that no process can guess, and only for this user.
    pub(super) fn new() -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::fs::canonicalize("/tmp")?.join(format!("provost-{name}"));
        // The umask makes all three folders private.
        std::fs::create_dir(&path)?;
        let scratch = Self(path);
        std::fs::create_dir(scratch.0.join("home"))?;
        std::fs::create_dir(scratch.0.join("tmp"))?;
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The removal follows no link, so that only entries of the folder are removed.
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

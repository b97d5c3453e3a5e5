//! The means of this machine for confining workers, in words, for `provost doctor`.
#![forbid(unsafe_code)]

use std::process::{Command, Stdio};

use super::child::{ARGUMENT, TRY_NAMESPACES, host_facts};
use super::launch::Supervisor;
use super::plan::Tier;
use super::tried::try_tier;

/// One means that a jail needs or could use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// A short name, such as the kernel's or a layer's, for a list.
    pub name: &'static str,
    /// Whether the means is there.
    pub works: bool,
    /// The finding, and the remedy if the means is missing: one sentence.
    pub note: String,
}

/// The means of this host for confining workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineSupport {
    /// User namespaces, Landlock, system call filter, control groups, kernel.
    pub findings: Vec<Finding>,
    /// The tiers in which workers can run here, the stronger first. Empty if there are none.
    pub tiers: Vec<Tier>,
}

/// A way out that is known and not closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownOpen {
    /// The name of the way out in `docs/escapes.md`; of tier `job`, in `docs/windows.md`.
    pub attempt: &'static str,
    /// The action that a worker can take there.
    pub what: &'static str,
}

const fn open(attempt: &'static str, what: &'static str) -> KnownOpen {
    KnownOpen { attempt, what }
}

/// The known ways out of tier `ll`; tier `ns` has none. In the order of `docs/escapes.md`,
/// with which the escape tests compare it.
pub const OPEN_IN_LL: [KnownOpen; 19] = [
    open("fs.proc_daemon_fd", "count the daemon's descriptors"),
    open("fs.chmod_outside", "change modes of this user's files"),
    open("fs.utimes_outside", "change their times"),
    open("fs.xattr_outside", "change their extended attributes"),
    open("fs.stat_secret", "see their sizes and that they exist"),
    open("git.hook_write", "write git's hooks in the workspace"),
    open("git.config_write", "write git's settings there"),
    open("git.hooks_dir_swap", "replace the folder of hooks"),
    open("git.dotgit_swap", "replace .git"),
    open("git.index_write", "write the index: what is staged, skipped, or leads into other repositories"),
    open("git.exclude_write", "hide files by .git/info/exclude"),
    open("git.replace_ref", "show other objects in place of those that are there"),
    open("git.alternates_write", "lead git to objects elsewhere"),
    open("git.ref_move", "move branches"),
    open("git.nested_config_write", "write the settings of nested repositories"),
    open("cfg.agent_settings_create", "make settings for agents there"),
    open("proc.daemon_cmdline", "read command lines"),
    open("proc.list_host", "list processes"),
    open("info.proc_net_unix", "list sockets"),
];

/// The system's facts about itself; empty on a system without jails.
#[derive(Clone, Default, Debug)]
pub(super) struct Facts {
    pub(super) kernel: Option<String>,
    pub(super) landlock_abi: i32,
    pub(super) seccomp_actions: Option<String>,
    pub(super) groups: GroupFacts,
    /// Whether inotify has room for one more folder. `None` on a system without inotify.
    pub(super) inotify: Option<bool>,
    /// Whether the system has Apple's sandbox, which enforces tier `ll`.
    pub(super) seatbelt: bool,
    /// The parts of tier `job`, on Windows.
    pub(super) job: Option<JobFacts>,
}

/// The parts of tier `job`, each with the reason if it is missing.
#[derive(Clone, Debug)]
pub(super) struct JobFacts {
    /// A job object with all its limits.
    pub(super) object: Result<(), String>,
    /// A token that restricts writing, tried.
    pub(super) token: Result<(), String>,
}

/// The control groups that a daemon started from here could give its workers.
#[derive(Clone, Debug)]
pub(super) enum GroupFacts {
    /// No groups, for this reason.
    None(String),
    /// Groups without walls, for this reason; their processes are ended as one.
    EndOnly(String),
    /// Groups with walls for these resources.
    Walls(String),
}

impl Default for GroupFacts {
    fn default() -> Self {
        Self::None("this system has none".into())
    }
}

/// The first version of Landlock that restricts signals to the jail, which tier `ll` needs.
const LANDLOCK_FOR_LL: i32 = 6;

/// Examines the host. Namespaces are not guessed from settings but made, in a process of their own; on Linux, each possible tier
/// is tried with a program that ends at once, since a container can have all parts and still forbid the whole.
pub async fn probe(supervisor: &Supervisor) -> MachineSupport {
    let facts = host_facts();
    if let Some(job) = &facts.job {
        return windows(job);
    }
    if facts.seatbelt {
        return mac();
    }
    let namespaces = namespaces(supervisor);
    let landlock = landlock(facts.landlock_abi);
    let seccomp = seccomp(facts.seccomp_actions.as_deref());
    let mut tiers = Vec::new();
    if namespaces.works && landlock.works && seccomp.works {
        tiers.push(Tier::Ns);
    }
    if facts.landlock_abi >= LANDLOCK_FOR_LL && seccomp.works {
        tiers.push(Tier::Ll);
    }
    let kernel = Finding {
        name: "kernel",
        works: facts.kernel.is_some(),
        note: facts
            .kernel
            .map_or("unknown; workers can only be confined on Linux in this version".into(), |k| {
                format!("{k}, as it says")
            }),
    };
    let groups = control_groups(&facts.groups);
    let mut findings = vec![kernel, namespaces, landlock, seccomp, groups];
    findings.extend(facts.inotify.map(inotify));
    // The supervisor of a daemon that runs as root refuses each run, also if the host offers a jail to others.
    if !provost_system::is_superuser() {
        findings.extend(keep_those_that_run(supervisor, &mut tiers).await);
    }
    MachineSupport { findings, tiers }
}

/// Removes the tiers in which no program starts; returns the supervisor's answer for each of these.
async fn keep_those_that_run(supervisor: &Supervisor, tiers: &mut Vec<Tier>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tier in std::mem::take(tiers) {
        let name = if tier == Tier::Ns { "a jail of tier ns" } else { "a jail of tier ll" };
        let found = try_tier(supervisor, tier).await;
        let note = match &found {
            Ok(()) => "tried: a program ran in it".into(),
            Err(why) => format!(
                "tried, and no worker starts in it: {why}; in a container, its filter of system calls or what it covers of /proc \
                 is the usual cause"
            ),
        };
        findings.push(Finding { name, works: found.is_ok(), note });
        tiers.extend(found.is_ok().then_some(tier));
    }
    findings
}

/// Returns the finding about the reports of new repositories.
fn inotify(has_room: bool) -> Finding {
    let note = match has_room {
        true => "has room: a new repository in a workspace is seen within a tenth of a second",
        false => {
            "has no room for you (fs.inotify.max_user_watches, max_user_instances): a new repository in a workspace is \
             seen by walks alone, which take more of a processor and, in a large workspace, seconds; raise the limits, \
             or let workers work in a copy (copy = true)"
        }
    };
    Finding { name: "inotify", works: has_room, note: note.into() }
}

/// Returns the means of Windows, which has none of Linux's.
fn windows(facts: &JobFacts) -> MachineSupport {
    let finding = |name, found: &Result<(), String>, there: &str| Finding {
        name,
        works: found.is_ok(),
        note: found
            .as_ref()
            .map_or_else(|why| format!("{why}; without it no worker runs"), |()| there.to_owned()),
    };
    let open = |name, note: &str| Finding { name, works: false, note: note.to_owned() };
    let findings = vec![
        finding(
            "job objects",
            &facts.object,
            "a worker's processes are held together, ended together, and held to memory, number and processor time",
        ),
        finding(
            "write-restricted token",
            &facts.token,
            "a worker writes into its copy of the directory and its private folder, and nowhere else",
        ),
        open("reading", "not walled in here: a worker reads every file that you may read"),
        open("network", "not walled in here: a worker reaches what this machine reaches"),
    ];
    let tiers = if facts.object.is_ok() && facts.token.is_ok() { vec![Tier::Job] } else { Vec::new() };
    MachineSupport { findings, tiers }
}

/// Returns the means of macOS: the sandbox is a part of every Mac.
fn mac() -> MachineSupport {
    let note = "keeps tier ll, with a profile made for each worker".into();
    MachineSupport { findings: vec![Finding { name: "Seatbelt", works: true, note }], tiers: vec![Tier::Ll] }
}

fn namespaces(supervisor: &Supervisor) -> Finding {
    let name = "user namespaces";
    let mut command = Command::new(supervisor.executable());
    command.args([ARGUMENT, TRY_NAMESPACES]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let cause = match command.status().map(|status| status.code()) {
        Ok(Some(0)) => {
            let note = "an ordinary user can make them".into();
            return Finding { name, works: true, note };
        }
        Ok(Some(number)) => std::io::Error::from_raw_os_error(number).to_string(),
        Ok(None) => "the attempt was killed".into(),
        Err(e) => e.to_string(),
    };
    let note = format!(
        "{cause}: allow them (kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, or an AppArmor \
         profile with `userns,`), or let policy accept tier ll"
    );
    Finding { name, works: false, note }
}

fn landlock(abi: i32) -> Finding {
    let note = match abi {
        0 => "not there: add `landlock` to the kernel's lsm= list; without it no worker runs".into(),
        1..LANDLOCK_FOR_LL => {
            format!("version {abi}: enough for tier ns; tier ll needs version {LANDLOCK_FOR_LL} (Linux 6.12)")
        }
        _ => format!("version {abi}: enough for both tiers"),
    };
    Finding { name: "Landlock", works: abi > 0, note }
}

fn seccomp(actions: Option<&str>) -> Finding {
    let works = actions.is_some_and(|actions| actions.split(' ').any(|action| action == "errno"));
    let note = match works {
        true => "system calls can be filtered".into(),
        false => "not there: the kernel needs CONFIG_SECCOMP_FILTER; without it no worker runs".into(),
    };
    Finding { name: "system call filter", works, note }
}

fn control_groups(facts: &GroupFacts) -> Finding {
    let watched = "total memory of a worker is watched once a second, not walled in";
    let how = "for walls, start the daemon in a group of its own: systemd-run --user --scope \
               --property=Delegate=yes provost up --foreground";
    let (works, note) = match facts {
        GroupFacts::Walls(walls) => {
            (true, format!("delegated: {walls} of a worker are walled in by the kernel"))
        }
        GroupFacts::EndOnly(why) => {
            (false, format!("{why}: a worker's processes are ended as one group, but {watched}; {how}"))
        }
        GroupFacts::None(why) => (false, format!("{why}: {watched}; {how}")),
    };
    Finding { name: "control groups", works, note }
}

//! A small file system of a test's own, which really fills: in memory, mounted in a namespace as an ordinary user may.
//!
//! A process holds the namespace, so that what is on the disk outlives the programs that work with it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A disk; gone when dropped.
pub(crate) struct SmallDisk {
    at: PathBuf,
    holder: Child,
}

impl SmallDisk {
    /// Mounts one of so many MiB at a folder, with a file on it that takes some of them.
    pub(crate) fn at(folder: &Path, mib: u32, taken: u32) -> Self {
        std::fs::create_dir(folder).expect("a folder for the disk");
        let at = folder.display();
        // It ends when its standard input does, and so with the test.
        let script = format!(
            "mount -t tmpfs -o size={mib}m,mode=0700 tmpfs '{at}' && head -c {taken}M /dev/zero > '{at}/taken' && echo ready && exec cat"
        );
        let mut holder = Command::new("unshare");
        holder.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", &script]);
        let mut holder =
            holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare, of util-linux");
        let mut said = String::new();
        let mut from = BufReader::new(holder.stdout.take().expect("a pipe"));
        from.read_line(&mut said).expect("the disk's holder speaks");
        assert_eq!(said, "ready\n", "the disk is mounted: user namespaces have to be allowed");
        Self { at: folder.to_owned(), holder }
    }

    /// Runs a script where the disk is, as the owner of all files of the test's user.
    pub(crate) fn run(&self, script: &str) -> String {
        let mut shell = self.entered();
        let out = shell.args(["sh", "-ec", script]).stdin(Stdio::null()).output().expect("nsenter");
        assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    /// A command that runs a program where the disk is, as the test's user: some refuse to work as root, which is what
    /// a namespace's owner looks like.
    pub(crate) fn command(&self) -> Command {
        let own = rustix::process::getuid().as_raw().to_string();
        let group = rustix::process::getgid().as_raw().to_string();
        let mut command = self.entered();
        command.args(["unshare", "--user", "--map-user", &own, "--map-group", &group, "--"]);
        command
    }

    fn entered(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args([
            "--target",
            &self.holder.id().to_string(),
            "--user",
            "--mount",
            "--preserve-credentials",
            "--",
        ]);
        command
    }

    /// How many KiB are left.
    pub(crate) fn left(&self) -> u64 {
        self.run(&format!("df --output=avail -k '{}' | tail -n 1", self.at.display()))
            .parse()
            .expect("a number")
    }

    /// Removes the file that takes some of it.
    pub(crate) fn make_room(&self) {
        self.run(&format!("rm '{}/taken'", self.at.display()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Its end is its standard input's.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

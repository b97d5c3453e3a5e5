//! Clocks that a test can set, of programs that it starts.
//!
//! No ordinary user may set the machine's clock. A program runs with a small library before the C library's own clocks, which adds
//! what the test has written into a file that both have in memory.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *ahead_s;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCKS_AHEAD");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *at = mmap(0, 16, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) ahead_s = at;
    close(fd);
}

int clock_gettime(clockid_t id, struct timespec *time) {
    long done = syscall(SYS_clock_gettime, id, time);
    if (done == 0 && ahead_s && id == CLOCK_REALTIME) time->tv_sec += ahead_s[0];
    if (done == 0 && ahead_s && id == CLOCK_BOOTTIME) time->tv_sec += ahead_s[1];
    return (int)done;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    int done = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return done;
}
"#;

/// The library and the file, in a folder of a test's.
pub(crate) struct Clocks {
    folder: PathBuf,
}

impl Clocks {
    /// Builds the library; the clocks are right until they are set.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        fs::write(folder.join("shim.c"), SHIM).expect("the library's text is written");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o", "shim.so", "shim.c"]).current_dir(folder);
        assert!(cc.status().expect("cc").success(), "the library is built");
        let clocks = Self { folder: folder.to_owned() };
        clocks.set(0, 0);
        clocks
    }

    /// Sets how many seconds the clocks are ahead: the system's, and the one that counts from the machine's start.
    pub(crate) fn set(&self, wall_s: i64, boot_s: i64) {
        let path = self.folder.join("ahead");
        let file =
            fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).expect("the file");
        let mut both = wall_s.to_ne_bytes().to_vec();
        both.extend(boot_s.to_ne_bytes());
        file.write_all_at(&both, 0).expect("the clocks are set");
    }

    /// Has a program go by them.
    pub(crate) fn give<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", self.folder.join("shim.so")).env("CLOCKS_AHEAD", self.folder.join("ahead"))
    }
}

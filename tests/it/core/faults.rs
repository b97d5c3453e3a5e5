//! Files that cannot be read any more, or that take for ever, under a whole daemon.
//!
//! No ordinary user has a disk that fails on request. The daemon runs with a small library before the C
//! library's own calls, which fail, or wait, for files of one name as long as the test says so in a file that
//! both have in memory.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::a6s_client::{OPEN, Socket};
use crate::support::loopback_client::Http;
use crate::support::waits::within;
use crate::support::{Daemon, UP, World};

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const volatile char *now;
static const char *slow;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    slow = getenv("SLOW");
    // On one core, all that does not wait has one thread.
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (int core = 0; core < CPU_SETSIZE && !CPU_COUNT(&one); core++)
        if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    void *at = mmap(0, 2, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) now = at;
    close(fd);
}

static int is_of_the_store(int fd) {
    char link[64], name[4096];
    if (!now || now[0] != '1') return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0) return 0;
    name[length] = 0;
    return strstr(name, "/provost.db") != 0;
}

#define FAILS if (is_of_the_store(fd)) { errno = EIO; return -1; }
ssize_t pread64(int fd, void *to, size_t size, off64_t at) { FAILS return syscall(SYS_pread64, fd, to, size, at); }
ssize_t pread(int fd, void *to, size_t size, off_t at) { FAILS return syscall(SYS_pread64, fd, to, size, at); }
ssize_t read(int fd, void *to, size_t size) { FAILS return syscall(SYS_read, fd, to, size); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) { FAILS return syscall(SYS_pwrite64, fd, from, size, at); }
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { FAILS return syscall(SYS_pwrite64, fd, from, size, at); }
ssize_t write(int fd, const void *from, size_t size) { FAILS return syscall(SYS_write, fd, from, size); }

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *found) {
    while (now && now[1] == '1' && slow && path && !strcmp(path, slow)) usleep(10000);
    return (int)syscall(SYS_statx, folder, path, flags, mask, found);
}
"#;

/// A world whose daemons have such files.
struct Faults(World);

impl Faults {
    fn new() -> Self {
        let world = World::new();
        world.write("src/a.ts", "export function f() {}\nexport function g() {}\n");
        fs::write(world.path("shim.c"), SHIM).unwrap();
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-D_LARGEFILE64_SOURCE", "-o", "shim.so", "shim.c"])
            .current_dir(world.path(""))
            .status();
        assert!(built.unwrap().success(), "the library is built");
        fs::write(world.path("faults"), "00").unwrap();
        Self(world)
    }

    /// Says which faults there are from now on: of the store's files, and of looks at the slow one.
    fn set(&self, both: &str) {
        use std::os::unix::fs::FileExt as _;
        let file = fs::OpenOptions::new().write(true).open(self.0.path("faults")).unwrap();
        file.write_all_at(both.as_bytes(), 0).unwrap();
    }

    /// Starts a daemon with one thread for all that does not wait, for which looks at `slow` can take for ever.
    fn start(&self, slow: &str) -> Daemon {
        let mut command = self.0.command(UP);
        command.env("LD_PRELOAD", self.0.path("shim.so")).env("FAULTS", self.0.path("faults"));
        command.env("SLOW", slow);
        self.0.start_as(command)
    }
}

#[test]
fn a_daemon_whose_store_cannot_be_read_any_more_ends_and_its_last_line_says_so() {
    let faults = Faults::new();
    let world = &faults.0;
    let mut daemon = faults.start("/none");
    world.done("a", &["lock", "src/a.ts:f"]);
    faults.set("10");
    let (code, no) = world.ask("a", &["lock", "src/a.ts:g"]);
    assert_ne!(code, 0, "{no}");
    assert!(!daemon.ended().success());
    let log = world.log();
    // What the program itself says at its end comes after the log, and says it too.
    let last = log.lines().rfind(|line| line.contains(" ERROR ")).unwrap();
    assert!(log.lines().rfind(|line| line.starts_with("202")) == Some(last), "{log}");
    assert!(log.lines().any(|line| line.contains("cause: the store cannot be read any more")), "{log}");
    assert!(last.contains("the store cannot be read any more"), "{log}");
    assert!(last.contains("provost doctor"), "{log}");
    // The disk was at fault, and not what is on it.
    faults.set("00");
    let _daemon = faults.start("/none");
    assert_eq!(world.done("b", &["lock", "list"])["locks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_repository_that_cannot_be_looked_at_keeps_no_stop_waiting() {
    let faults = Faults::new();
    let world = &faults.0;
    let root = world.repo();
    let daemon = faults.start(root.canonicalize().unwrap().to_str().unwrap());
    faults.set("01");
    // tidy: sleeps because nobody sees the daemon look, which it does every two seconds, and gives up after one
    std::thread::sleep(Duration::from_secs(6));
    let (code, said) = world.ask("a", &["lock", "list"]);
    assert_eq!(code, 0, "{said}");
    std::thread::scope(|scope| {
        let asked = Instant::now();
        let stopped = scope.spawn(|| daemon.stop());
        within(Duration::from_secs(20), || stopped.is_finished());
        let took = asked.elapsed();
        faults.set("00");
        stopped.join().unwrap();
        assert!(took < Duration::from_secs(15), "it waited for {took:?}: {}", world.log());
    });
}

#[test]
fn an_agents_program_that_cannot_be_looked_at_keeps_no_other_request_waiting() {
    let faults = Faults::new();
    let world = &faults.0;
    let program = world.path("agent");
    fs::copy("/bin/sh", &program).unwrap();
    let agent = format!(
        "[[agent]]\nid = \"slow-ai\"\ncommand = [{program:?}, \"-c\", \"true\"]\noutput = \"text\"\n"
    );
    world.configure(&format!("{OPEN}{agent}"));
    let _daemon = faults.start(program.to_str().unwrap());
    let mut socket = Socket::open(Http::a6s(world));
    faults.set("01");
    let question = socket.request("fleet.status", &json!(null));
    // tidy: sleeps because nobody sees from outside whether the question is looked at already
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..3 {
        let asked = Instant::now();
        let mut locks = world.command(&["lock", "list"]).spawn().unwrap();
        let has_ended = within(Duration::from_secs(10), || locks.try_wait().unwrap().is_some());
        let took = asked.elapsed();
        if !has_ended {
            faults.set("00");
            locks.wait().unwrap();
            panic!("it waited for {took:?}");
        }
    }
    faults.set("00");
    assert_eq!(socket.answer(&question)["result"]["total"], 1);
}

//! The files, processes and networks that a worker can reach, and those that it cannot.

use std::fs;
use std::io::Read;
use std::net::TcpListener;

use crate::support::jails::*;

#[tokio::test]
async fn a_worker_runs_and_is_heard() {
    let world = World::new();
    for tier in TIERS {
        let ran = world.run(world.sh("echo out; echo err >&2; exit 7").tier(tier)).await;
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("out\n", "err\n"), "{tier:?}");
        assert_eq!(ran.exit.reason, ExitReason::Code(7), "{tier:?}");
    }
}

#[tokio::test]
async fn the_workspace_can_be_written() {
    let world = World::new();
    for tier in TIERS {
        let script = "mkdir sub && echo hello > sub/file && cat sub/file && rm -r sub && echo kept > kept";
        world.run(world.sh(script).tier(tier)).await.says("hello");
        assert_eq!(fs::read_to_string(world.workspace().join("kept")).unwrap(), "kept\n");
    }
}

#[tokio::test]
async fn nothing_outside_of_the_workspace_can_be_read_or_written() {
    let world = World::new();
    std::os::unix::fs::symlink(world.path("outside"), world.path("workspace/link")).unwrap();
    for tier in TIERS {
        let script = "cat $W/outside/canary $W/home/.ssh/id_ed25519 $W/state/secret link/canary; \
                      echo PWNED > $W/outside/canary; echo PWNED > link/canary; touch $W/outside/new; \
                      rm -f $W/outside/canary; mv $W/outside/canary .; ln $W/outside/canary hard; \
                      cat /proc/1/root$W/outside/canary /proc/self/root$W/outside/canary; cat hard; true";
        let ran = world.run(world.sh(script).tier(tier)).await;
        ran.says("");
        assert_eq!(fs::read_to_string(world.path("outside/canary")).unwrap(), "INTACT", "{tier:?}");
        assert!(!world.path("outside/new").exists(), "{tier:?}");
    }
}

#[tokio::test]
async fn the_home_directory_is_empty_and_private() {
    let world = World::new();
    world.run(world.sh("test \"$HOME\" = $W/home && ls -A ~; echo x > ~/x && cat ~/x")).await.says("x");
    assert!(!world.path("home/x").exists());
    let ran = world.run(world.sh("ls -A ~; echo x > ~/x && cat ~/x; echo $HOME >&2").tier(Tier::Ll)).await;
    ran.says("x");
    assert!(!Path::new(ran.err.trim()).exists(), "the private folder is gone afterwards");
}

#[tokio::test]
async fn temporary_files_are_private_and_go_away() {
    let world = World::new();
    let mark = world.path.file_name().unwrap().to_str().unwrap().to_string();
    let script =
        format!("echo x > /tmp/{mark}-seen && echo x > /dev/shm/{mark}-seen && cat /tmp/{mark}-seen");
    world.run(world.sh(&script)).await.says("x");
    assert!(!Path::new(&format!("/tmp/{mark}-seen")).exists());
    assert!(!Path::new(&format!("/dev/shm/{mark}-seen")).exists());
    let ran =
        world.run(world.sh("echo x > $TMPDIR/x && cat $TMPDIR/x; echo y > /tmp/y; ls /tmp").tier(Tier::Ll));
    ran.await.out.lines().for_each(|line| assert_eq!(line, "x", "nothing else was written or listed"));
}

#[tokio::test]
async fn the_environment_is_made_for_the_worker() {
    let world = World::new();
    for tier in TIERS {
        let mut draft = world.draft("/usr/bin/env", &[]).tier(tier);
        draft.environment.set("PROJECT_COLOUR", "green").unwrap();
        let ran = world.run(draft).await;
        let mut names: Vec<&str> = ran.out.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LANG", "PATH", "PROJECT_COLOUR", "PWD", "TMPDIR"], "{tier:?}");
    }
}

#[tokio::test]
async fn no_descriptor_above_two_reaches_the_worker() {
    use std::os::fd::AsFd;
    let world = World::new();
    let secret = fs::File::open(world.path("home/.ssh/id_ed25519")).unwrap();
    // Without close-on-exec, as a careless library would leave it open.
    rustix::io::fcntl_setfd(secret.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    for tier in TIERS {
        let probe = "import os\nprint(*[n for n in range(512) if os.path.exists(f'/proc/self/fd/{n}')])";
        world.run(world.python(probe).tier(tier)).await.says("0 1 2");
        world.run(world.sh("readlink /proc/self/fd/0").tier(tier)).await.says("/dev/null");
    }
}

#[tokio::test]
async fn input_reaches_the_worker_whole_or_not_at_all() {
    let world = World::new();
    let long: Vec<u8> = (0..700_000_u32).map(|n| b'a' + (n % 26) as u8).collect();
    for tier in TIERS {
        world.run_with(world.sh("cat").tier(tier), Some(b"a prompt")).await.says("a prompt");
        world.run_with(world.sh("wc -c").tier(tier), Some(&long)).await.says("700000");
        // A worker that does not want it is not held up.
        world.run_with(world.sh("echo done").tier(tier), Some(&long)).await.says("done");
        world.run_with(world.sh("cat; echo end").tier(tier), Some(b"")).await.says("end");
    }
}

#[tokio::test]
async fn there_is_no_network() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let probe = format!(
        "import socket\n\
         def t(f, k):\n\
         \x20 try:\n\
         \x20  s = socket.socket(f, k); s.settimeout(2); s.connect(('127.0.0.1', {port})); s.send(b'x'); print('out')\n\
         \x20 except OSError: print('no')\n\
         t(socket.AF_INET, socket.SOCK_STREAM)\n"
    );
    for tier in TIERS {
        world.run(world.python(&probe).tier(tier)).await.says("no");
        assert!(listener.accept().is_err(), "{tier:?}");
    }
    let families = "import socket\n\
         def t(*a):\n\
         \x20 try: socket.socket(*a); return 'made'\n\
         \x20 except OSError: return 'no'\n\
         print(t(socket.AF_UNIX, socket.SOCK_STREAM), t(socket.AF_INET, socket.SOCK_STREAM), \
               t(socket.AF_INET6, socket.SOCK_DGRAM), t(40, socket.SOCK_STREAM), t(socket.AF_PACKET, socket.SOCK_RAW), \
               t(socket.AF_INET, socket.SOCK_STREAM, 262), t(16, socket.SOCK_RAW, 0), t(16, socket.SOCK_RAW, 9))";
    world.run(world.python(families)).await.says("made made made no no no made no");
    world.run(world.python(families).tier(Tier::Ll)).await.says("no no no no no no made no");
}

#[tokio::test]
async fn an_empty_loopback_is_there_for_the_workers_own_servers() {
    let world = World::new();
    let probe = "import socket\n\
                 s = socket.create_server(('127.0.0.1', 0))\n\
                 c = socket.create_connection(s.getsockname())\n\
                 c.send(b'hello'); print(s.accept()[0].recv(5).decode())";
    world.run(world.python(probe)).await.says("hello");
}

#[tokio::test]
async fn the_daemons_unix_sockets_cannot_be_reached() {
    let world = World::new();
    let listener = std::os::unix::net::UnixListener::bind(world.path("state/door.sock")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let probe = "import socket, sys\n\
                 try:\n\
                 \x20 s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1] + '/state/door.sock'); print('in')\n\
                 except OSError: print('no')";
    for tier in TIERS {
        world.run(world.python(probe).tier(tier)).await.says("no");
        assert!(listener.accept().is_err(), "{tier:?}");
    }
}

/// Calls the system by number and prints the errors: `EPERM` is 1, `ENOSYS` is 38.
const CALLS: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    r = getattr(libc, name)(*args)
    print(name, 'ok' if r != -1 else os.strerror(ctypes.get_errno()))
parent = int(sys.argv[2])
call('ptrace', 0x4206, parent, 0, 0)
call('unshare', 0x10000000)
call('unshare', 0x00020000)
call('mount', b't', b'.', b'tmpfs', 0, 0)
call('umount2', b'/proc', 2)
call('chroot', b'/tmp')
open('file', 'w').close()
call('chmod', b'file', 0o4755)
call('open', b'suid', 0o101, 0o4755)
call('setns', 0, 0)
call('sethostname', b'x', 1)
call('process_vm_readv', parent, 0, 0, 0, 0, 0)
call('syscall', 425, 1, 0)
call('syscall', 435, 0, 0)
call('syscall', 437, 0, 0, 0, 0)
call('syscall', 56, 0x10000011, 0, 0, 0, 0)
call('syscall', 321, 0, 0, 0)
call('keyctl', 0, -3, 0) if hasattr(libc, 'keyctl') else print('keyctl Operation not permitted')
call('ioctl', 0, 0x5412, b'x')
call('ioctl', 0, ctypes.c_ulong(0x100005412), b'x')
";

#[tokio::test]
async fn the_kernel_is_kept_out_of_reach() {
    let world = World::new();
    for tier in TIERS {
        let mut draft = world.python(CALLS).tier(tier);
        draft.args.push(std::process::id().to_string());
        let ran = world.run(draft).await;
        assert_eq!(ran.exit.reason, ExitReason::Code(0), "{ran:?}");
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines.len(), 19, "{ran:?}");
        for line in &lines {
            let refused =
                line.ends_with("Operation not permitted") || line.ends_with("Function not implemented");
            assert!(refused, "{tier:?}: {line}");
        }
        let mode = fs::metadata(world.workspace().join("file")).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o7000, 0);
        assert!(!world.workspace().join("suid").exists());
    }
}

#[tokio::test]
async fn numbers_of_another_architecture_do_not_exist() {
    let world = World::new();
    let probe = "import ctypes, os\n\
                 libc = ctypes.CDLL(None, use_errno=True)\n\
                 print(libc.syscall(0x40000000 + 39), ctypes.get_errno())";
    for tier in TIERS {
        world.run(world.python(probe).tier(tier)).await.says("-1 38");
    }
}

#[tokio::test]
async fn the_worker_has_no_privileges_and_cannot_get_any() {
    let world = World::new();
    let script =
        "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' ' '";
    let bare = "CapInh: 0000000000000000 CapPrm: 0000000000000000 CapEff: 0000000000000000 \
                CapAmb: 0000000000000000 NoNewPrivs: 1 Seccomp: 2";
    for tier in TIERS {
        world.run(world.sh(script).tier(tier)).await.says(bare);
    }
    world.run(world.sh("grep CapBnd /proc/self/status")).await.says("CapBnd:\t0000000000000000");
    world.run(world.sh("cat /proc/sys/user/max_user_namespaces")).await.says("0");
}

#[tokio::test]
async fn the_worker_has_a_session_of_its_own_and_no_terminal() {
    let world = World::new();
    for tier in TIERS {
        // Seen from outside: within its namespace a worker's session has no number.
        let running = world.start(world.sh("sleep 60").tier(tier)).await.unwrap();
        let supervisor = running.supervisor().to_string();
        let stat = std::fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap();
        let (_name, fields) = stat.rsplit_once(") ").unwrap();
        let fields: Vec<&str> = fields.split(' ').collect();
        assert_eq!((fields[3], fields[4]), (supervisor.as_str(), "0"), "session and terminal: {stat}");
        let terminal = world.sh("cut -d')' -f2- /proc/self/stat | cut -d' ' -f6").tier(tier);
        world.run(terminal).await.says("0");
        let probe = "try: open('/dev/tty'); print('terminal')\nexcept OSError: print('none')";
        world.run(world.python(probe).tier(tier)).await.says("none");
    }
}

#[tokio::test]
async fn other_processes_are_out_of_sight_in_ns_and_out_of_reach_in_ll() {
    let world = World::new();
    world.run(world.sh("ls /proc | grep -c '^[0-9]'")).await;
    let us = std::process::id();
    let ran = world.run(world.sh(&format!("cat /proc/{us}/cmdline"))).await;
    assert!(!ran.out.contains("jail"), "{ran:?}");
    for tier in TIERS {
        let script =
            format!("kill -0 {us} 2>/dev/null && echo reached; cat /proc/{us}/environ /proc/{us}/maps; true");
        world.run(world.sh(&script).tier(tier)).await.says("");
    }
}

#[tokio::test]
async fn the_hosts_settings_cannot_be_opened_for_writing() {
    let world = World::new();
    let probe = "for p in ['/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/etc/hosts', '/usr/x', '/x', \
                 '/dev/x', '/proc/1/oom_score_adj']:\n\
                 \x20 try: open(p, 'a'); print(p)\n\
                 \x20 except OSError: pass";
    for tier in TIERS {
        world.run(world.python(probe).tier(tier)).await.says("");
    }
}

#[tokio::test]
async fn every_mount_is_as_narrow_as_it_can_be() {
    // Landlock refuses most of this as well, so it is read off the list of mounts.
    let world = World::new();
    fs::create_dir(world.path("tools")).unwrap();
    let mut draft = world.sh("cut -d ' ' -f 5,6 /proc/self/mountinfo");
    draft.read_only.push(find_place(&world.path("tools")).unwrap());
    let ran = world.run(draft).await;
    let options = |path: &str| {
        let found = ran.out.lines().filter_map(|line| line.split_once(' ')).rfind(|(at, _)| *at == path);
        found.map(|(_, options)| options.split(',').map(String::from).collect::<Vec<_>>()).unwrap_or_default()
    };
    let tools = world.path("tools");
    let workspace = world.workspace();
    let hooks = world.path("workspace/.git");
    let expected: [(&str, &[&str]); 12] = [
        ("/", &["ro", "nosuid", "nodev"]),
        ("/usr", &["ro", "nosuid", "nodev"]),
        ("/etc", &["ro", "nosuid", "nodev"]),
        ("/dev", &["ro", "nosuid", "noexec"]),
        ("/tmp", &["rw", "nosuid", "nodev"]),
        ("/dev/shm", &["rw", "nosuid", "nodev"]),
        ("/dev/null", &["nosuid", "noexec"]),
        ("/proc", &["nosuid", "nodev", "noexec"]),
        ("/proc/sys", &["ro", "nosuid", "nodev", "noexec"]),
        (tools.to_str().unwrap(), &["ro", "nosuid", "nodev"]),
        (workspace.to_str().unwrap(), &["rw", "nosuid", "nodev"]),
        (hooks.to_str().unwrap(), &["ro", "nosuid", "nodev"]),
    ];
    for (path, wanted) in expected {
        let has = options(path);
        assert!(wanted.iter().all(|option| has.iter().any(|o| o == option)), "{path}: {has:?}\n{}", ran.out);
    }
    assert!(
        !ran.out.lines().any(|line| line.starts_with("/run") || line.starts_with("/home ")),
        "{}",
        ran.out
    );
}

#[tokio::test]
async fn what_a_worker_makes_is_for_its_user_alone() {
    let world = World::new();
    for tier in TIERS {
        world.run(world.sh("umask").tier(tier)).await.says("0077");
    }
}

#[tokio::test]
async fn a_toolchain_can_be_used_but_neither_changed_nor_asked_for_its_credentials() {
    let world = World::new();
    fs::create_dir_all(world.path("home/.cargo/bin")).unwrap();
    fs::write(world.path("home/.cargo/credentials.toml"), "TOPSECRET").unwrap();
    fs::write(world.path("home/.cargo/config.toml"), "settings").unwrap();
    fs::write(world.path("home/.cargo/bin/tool"), "#!/bin/sh\necho tool\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(world.path("home/.cargo/bin/tool"), executable).unwrap();
    for tier in TIERS {
        let script = "C=$W/home/.cargo; $C/bin/tool; cat $C/config.toml; echo; cat $C/credentials.toml; \
                      echo PWNED > $C/bin/tool; echo PWNED > $C/new; true";
        let mut draft = world.sh(script).tier(tier);
        draft.toolchain(find_place(&world.path("home/.cargo")).unwrap());
        world.run(draft).await.says("tool\nsettings");
        assert!(!world.path("home/.cargo/new").exists());
        assert!(fs::read_to_string(world.path("home/.cargo/bin/tool")).unwrap().contains("echo tool"));
    }
}

#[tokio::test]
async fn credentials_that_appear_in_mid_run_end_the_worker() {
    let world = World::new();
    fs::create_dir_all(world.path("home/.cargo")).unwrap();
    let mut draft = world.sh("echo up; sleep 1000");
    draft.toolchain(find_place(&world.path("home/.cargo")).unwrap());
    let mut running = world.start(draft).await.unwrap();
    running.output().follow(0).await;
    fs::write(world.path("home/.cargo/credentials.toml"), "TOPSECRET").unwrap();
    assert_eq!(running.wait().await.reason, ExitReason::ProtectionLost);
}

#[tokio::test]
async fn a_script_is_a_worker_too_and_sees_its_own_name() {
    let world = World::new();
    let path = world.path("outside/worker");
    fs::write(&path, "#!/bin/sh\necho $0 $1\n").unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for tier in TIERS {
        let draft = world.draft(path.to_str().unwrap(), &["here"]).tier(tier);
        world.run(draft).await.says(&format!("{} here", path.display()));
    }
}

#[tokio::test]
async fn the_worker_starts_in_its_directory() {
    let world = World::new();
    fs::create_dir_all(world.path("workspace/deep/er")).unwrap();
    for tier in TIERS {
        let mut draft = world.sh("/bin/pwd; echo x > here").tier(tier);
        draft.cwd = find_place(&world.path("workspace/deep/er")).unwrap();
        world.run(draft).await.says(world.path("workspace/deep/er").to_str().unwrap());
        assert!(world.path("workspace/deep/er/here").exists());
    }
}

#[tokio::test]
async fn every_limit_holds() {
    let world = World::new();
    let probe = "
import os, resource, signal, subprocess, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def limit(name, f):
    try: f(); print(name, 'unlimited')
    except (OSError, MemoryError): print(name, 'held')
def file():
    with open('big', 'wb') as f: f.truncate(3 << 20); f.seek(2 << 20); f.write(b'x' * (1 << 20)); f.flush()
def files():
    keep = [os.dup(0) for _ in range(100)]
def processes():
    kids = []
    try:
        for _ in range(60):
            p = os.fork()
            if p == 0: signal.pause(); os._exit(0)
            kids.append(p)
    finally:
        for p in kids: os.kill(p, 9); os.waitpid(p, 0)
def memory(): bytearray(400 << 20)
limit('file', file); limit('files', files); limit('processes', processes); limit('memory', memory)
# With a limit of zero, a handler of crashes that is a program is started.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
try: resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))
except PermissionError: pass
print('core', *resource.getrlimit(resource.RLIMIT_CORE))
";
    for tier in TIERS {
        let mut draft = world.python(probe).tier(tier);
        draft.limits.file_bytes = 1 << 20;
        draft.limits.open_files = 64;
        draft.limits.processes = 40;
        draft.limits.data_bytes = 200 << 20;
        let held = "file held\nfiles held\nprocesses held\nmemory held\ncore 1 1";
        world.run(draft).await.says(held);
    }
}

#[tokio::test]
async fn processor_time_and_temporary_space_run_out() {
    let world = World::new();
    for tier in TIERS {
        let mut draft = world.sh("while :; do :; done").tier(tier);
        draft.limits.cpu_seconds = 1;
        let exit = world.run(draft).await.exit;
        assert_eq!(exit.reason, ExitReason::Signal(24), "{tier:?}: SIGXCPU");
    }
    let mut draft =
        world.sh("head -c 9000000 /dev/zero > /tmp/a; head -c 9000000 /dev/zero > ~/b; ls -l /tmp/a ~/b");
    draft.limits.tmp_bytes = 8 << 20;
    let ran = world.run(draft).await;
    let sizes = ran.out.lines().filter_map(|line| line.split_whitespace().nth(4)?.parse::<u64>().ok());
    assert!(sizes.sum::<u64>() <= 8 << 20, "{ran:?}");
}

#[tokio::test]
async fn too_much_memory_in_many_processes_ends_the_worker() {
    let world = World::new();
    let probe = "import os, time\n\
                 for _ in range(6):\n\
                 \x20 if os.fork() == 0: b = bytearray(os.urandom(1) * (60 << 20)); time.sleep(60); os._exit(0)\n\
                 time.sleep(60)";
    for tier in TIERS {
        let mut draft = world.python(probe).tier(tier);
        draft.limits.resident_bytes = 200 << 20;
        let ran = world.run(draft).await;
        assert_eq!(ran.exit.reason, ExitReason::OverMemory, "{tier:?}: {ran:?}");
    }
}

#[tokio::test]
async fn the_first_process_of_the_jail_holds_nothing_and_tells_nothing() {
    let world = World::new();
    let script = "ls /proc/1/fd /proc/1/root /proc/1/cwd /proc/1/environ 2>/dev/null; \
                  cat /proc/1/environ /proc/1/maps 2>/dev/null; true";
    let ran = world.run(world.sh(script)).await;
    assert!(!ran.out.contains("/fd:") && !ran.out.contains("-p "), "{ran:?}");
    // Seen from the host: where its status goes, and nothing else that leads anywhere.
    let mut running = world.start(world.sh("echo up; exec sleep 1000")).await.unwrap();
    running.output().follow(0).await;
    let children = format!("/proc/{0}/task/{0}/children", running.supervisor());
    let first: u32 = fs::read_to_string(children).unwrap().trim().parse().unwrap();
    assert!(fs::read_dir(format!("/proc/{first}/fd")).is_err(), "even its owner cannot look into it");
    running.stop();
    running.wait().await;
}

#[test]
fn the_daemon_hides_its_memory() {
    let world = World::new();
    provost::jail::harden_daemon().unwrap();
    let mut status = String::new();
    fs::File::open("/proc/self/status").unwrap().read_to_string(&mut status).unwrap();
    // What another process of the same user would open is owned by root now.
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self/environ").unwrap());
    assert_eq!(owner, 0, "{}", world.name());
    let core = rustix::process::getrlimit(rustix::process::Resource::Core);
    assert_eq!((core.current, core.maximum), (Some(1), Some(1)));
}

#[tokio::test]
async fn a_hardened_daemon_still_starts_workers() {
    let world = World::new();
    provost::jail::harden_daemon().unwrap();
    for tier in TIERS {
        world.run(world.sh("echo fine").tier(tier)).await.says("fine");
    }
}

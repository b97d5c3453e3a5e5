//! Directories and programs stay those that were found, even if a process swaps names in between.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use provost::base::RepoPath;
use provost::jail::{Root, RootRefused};

use crate::support::jails::*;

fn resolve(root: &Root, path: &str) -> Result<PathBuf, RootRefused> {
    root.resolve_dir(&RepoPath::parse(path).unwrap()).map(|found| found.place().path().to_path_buf())
}

#[test]
fn only_directories_beneath_the_root_are_found() {
    let world = World::new();
    fs::create_dir_all(world.path("workspace/a/b")).unwrap();
    fs::write(world.path("workspace/file"), "").unwrap();
    symlink("a/b", world.path("workspace/inside")).unwrap();
    symlink("../outside", world.path("workspace/out")).unwrap();
    symlink(world.path("outside"), world.path("workspace/absolute")).unwrap();
    symlink("loop", world.path("workspace/loop")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("workspace/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let root = Root::open(&world.workspace()).unwrap();
    assert_eq!(resolve(&root, "").unwrap(), world.workspace());
    assert_eq!(resolve(&root, "a/b").unwrap(), world.path("workspace/a/b"));
    assert_eq!(resolve(&root, "inside").unwrap(), world.path("workspace/a/b"));
    for out in ["out", "absolute"] {
        assert!(matches!(resolve(&root, out), Err(RootRefused::LeadsOut(_))), "{:?}", resolve(&root, out));
    }
    for odd in ["file", "pipe"] {
        assert!(
            matches!(resolve(&root, odd), Err(RootRefused::NotADirectory(_))),
            "{:?}",
            resolve(&root, odd)
        );
    }
    for none in ["missing", "loop", "file/x"] {
        assert!(resolve(&root, none).is_err(), "{none}");
    }
    assert!(matches!(Root::open(&world.path("workspace/file")), Err(RootRefused::NotADirectory(_))));
}

/// Swaps a directory with a link to another one, as fast as it goes, until told to stop.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Swapper {
    fn new(directory: PathBuf, other: PathBuf) -> Self {
        let link = directory.with_extension("link");
        fs::create_dir_all(&directory).unwrap();
        symlink(other, &link).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::spawn(move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let mut swaps = 0;
            while !seen.load(Ordering::Relaxed) {
                renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        });
        Self { stop, thread: Some(thread) }
    }

    fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

#[test]
fn a_directory_that_becomes_a_link_in_mid_search_never_leads_out() {
    let world = World::new();
    fs::create_dir_all(world.path("outside/deep")).unwrap();
    fs::create_dir_all(world.path("workspace/d/deep")).unwrap();
    let swapper = Swapper::new(world.path("workspace/d"), world.path("outside"));
    let root = Root::open(&world.workspace()).unwrap();
    let deep = RepoPath::parse("d/deep").unwrap();
    let (mut found, mut refused) = (0_u64, 0_u64);
    for _ in 0..100_000 {
        match root.resolve_dir(&deep) {
            Ok(resolved) => {
                assert!(resolved.place().path().starts_with(world.workspace()), "{:?}", resolved.place());
                found += 1;
            }
            Err(_) => refused += 1,
        }
    }
    let swaps = swapper.stop();
    assert!(found > 0 && refused > 0 && swaps > 1000, "{found} found, {refused} refused, {swaps} swaps");
}

#[tokio::test]
async fn a_working_directory_that_is_swapped_at_the_start_never_leads_out() {
    let world = World::new();
    let swapper = Swapper::new(world.path("workspace/d"), world.path("outside"));
    let root = Root::open(&world.workspace()).unwrap();
    let (mut ran, mut refused) = (0, 0);
    let limit = Instant::now() + Duration::from_secs(60);
    while ran + refused < 100 && Instant::now() < limit {
        let tier = TIERS[(ran + refused) % 2];
        let Ok(found) = root.resolve_dir(&RepoPath::parse("d").unwrap()) else {
            // It is a link at this moment; let the other thread go on.
            std::thread::yield_now();
            continue;
        };
        let mut draft = world.sh("echo x > PWNED; true").tier(tier);
        draft.cwd = found.place().clone();
        match draft.check(&world.forbidden_paths()) {
            Err(_) => refused += 1,
            Ok(plan) => match launch(&supervisor(), &plan, None, LiveOutput::new(4096)).await {
                Err(_) => refused += 1,
                Ok(mut running) => {
                    running.wait().await;
                    ran += 1;
                }
            },
        }
        assert!(!world.path("outside/PWNED").exists(), "{tier:?}");
    }
    swapper.stop();
    assert!(ran > 0 && refused > 0, "{ran} ran, {refused} refused");
}

#[test]
fn programs_are_absolute_regular_and_executable() {
    let world = World::new();
    let mode = |name: &str, mode| {
        fs::write(world.path(name), "#!/bin/sh\n").unwrap();
        fs::set_permissions(world.path(name), PermissionsExt::from_mode(mode)).unwrap();
        resolve_program(&world.path(name))
    };
    assert!(mode("good", 0o755).is_ok());
    for (name, bits, why) in [("plain", 0o644, "executed"), ("open", 0o777, "every user")] {
        assert!(mode(name, bits).unwrap_err().to_string().contains(why));
    }
    for (path, why) in
        [("sh", "absolute"), ("/tmp", "regular"), ("/dev/null", "regular"), ("/no/such", "No such")]
    {
        let error = resolve_program(Path::new(path)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_program_is_known_by_its_content() {
    let world = World::new();
    let write = |name: &str, text: &str| {
        fs::write(world.path(name), text).unwrap();
        fs::set_permissions(world.path(name), PermissionsExt::from_mode(0o755)).unwrap();
        resolve_program(&world.path(name)).unwrap()
    };
    let (one, same, other) =
        (write("one", "#!/bin/sh\n"), write("same", "#!/bin/sh\n"), write("other", "#!/bin/ls\n"));
    assert_eq!(one.digest(), provost::base::Digest::of(b"#!/bin/sh\n"));
    assert_eq!(one.digest(), same.digest());
    assert_ne!(one.digest(), other.digest());
    symlink(world.path("one"), world.path("link")).unwrap();
    let linked = resolve_program(&world.path("link")).unwrap();
    assert_eq!((linked.asked(), linked.place()), (world.path("link").as_path(), one.place()));
}

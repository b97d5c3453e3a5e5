//! One hog per limit: a worker that wants more of something than it may have, in both tiers.
//!
//! Memory, descriptors, core files and the wall time have theirs in `walls.rs` and `ends.rs`.

use provost::jail::Space;

use crate::support::jails::*;

/// Hogs stop by themselves some time, so that a failing test does not fill the disk.
const WRITER: &str = "
import os, sys, time
for i in range(400):
    with open(f'{sys.argv[2]}/{i}', 'wb') as f: f.write(os.urandom(1 << 20))
    if i == 3: print('four', flush=True)
time.sleep(1000)
";

const LITTER: &str = "
import os, time
for i in range(20_000): os.mkdir(f'd{i}') if i % 2 else open(f'f{i}', 'w').close()
time.sleep(1000)
";

const DIGGER: &str = "
import os, time
for i in range(60):
    os.mkdir('x' * 200); os.chdir('x' * 200)
time.sleep(1000)
";

/// Starts what it may, replaces what ends, and holds on until it must have been seen.
const BOMB: &str = "
import os, signal, time
end = time.monotonic() + 4
while time.monotonic() < end:
    try:
        if os.fork() == 0: signal.pause()
    except BlockingIOError: time.sleep(0.01)
print('full', flush=True)
os._exit(7)
";

#[tokio::test]
async fn a_file_beyond_its_size_ends_the_one_who_writes_it() {
    for tier in TIERS {
        let world = World::new();
        let mut draft = world.draft("/bin/dd", &["if=/dev/zero", "of=big", "bs=64k", "count=64"]).tier(tier);
        draft.limits.file_bytes = 1 << 20;
        let ran = world.run(draft).await;
        assert_eq!(ran.exit.reason, ExitReason::Signal(25), "{tier:?}: SIGXFSZ: {ran:?}");
        assert_eq!(fs::metadata(world.path("workspace/big")).unwrap().len(), 1 << 20);
    }
}

#[tokio::test]
async fn growth_of_the_workspace_ends_the_worker() {
    for tier in TIERS {
        let world = World::new();
        fs::write(world.path("workspace/old"), vec![1; 30 << 20]).unwrap();
        let mut draft = world.python(WRITER).tier(tier);
        draft.args.push(".".into());
        draft.limits.growth_bytes = 20 << 20;
        let ran = world.run(draft).await;
        assert_eq!(ran.exit.reason, ExitReason::OverSpace(Space::Bytes), "{tier:?}: {ran:?}");
        // It had begun in peace: what was there before does not count.
        assert_eq!(ran.out, "four\n");
        assert_eq!(alive(world.name()), 0);
    }
}

#[tokio::test]
async fn growth_that_nobody_saw_in_time_is_seen_at_the_end() {
    for tier in TIERS {
        let world = World::new();
        let mut draft = world.sh("head -c 9000000 /dev/urandom > big").tier(tier);
        draft.limits.growth_bytes = 4 << 20;
        let ran = world.run(draft).await;
        assert_eq!(ran.exit.reason, ExitReason::OverSpace(Space::Bytes), "{tier:?}: {ran:?}");
    }
}

#[tokio::test]
async fn many_small_files_and_deep_directories_end_it_too() {
    for tier in TIERS {
        for (hog, space) in [(LITTER, Space::Entries), (DIGGER, Space::Depth)] {
            let world = World::new();
            let mut draft = world.python(hog).tier(tier);
            draft.limits.growth_entries = 1_000;
            let ran = world.run(draft).await;
            assert_eq!(ran.exit.reason, ExitReason::OverSpace(space), "{tier:?}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn what_is_replaced_or_has_several_names_is_no_growth() {
    for tier in TIERS {
        let world = World::new();
        fs::write(world.path("workspace/old"), vec![1; 12 << 20]).unwrap();
        let script = "for i in 1 2 3 4 5; do cp old new && mv new old; done; \
                      for i in 1 2 3 4 5 6 7 8 9; do ln old name$i; done; echo fine";
        let mut draft = world.sh(script).tier(tier);
        // One copy beside the file may be seen on the way; five copies or nine names would be too much.
        draft.limits.growth_bytes = 20 << 20;
        world.run(draft).await.says("fine");
    }
}

#[tokio::test]
async fn temporary_files_are_bounded_where_the_kernel_has_no_wall_for_them() {
    let world = World::new();
    let mut draft = world.sh("exec python3 -c \"$PROGRAM\" - $TMPDIR").tier(Tier::Ll);
    draft.environment.set("PROGRAM", WRITER).unwrap();
    draft.limits.tmp_bytes = 8 << 20;
    let ran = world.run(draft).await;
    assert_eq!(ran.exit.reason, ExitReason::OverSpace(Space::Temporary), "{ran:?}");
}

#[tokio::test]
async fn a_fork_bomb_is_held_at_its_limit_and_said_to_have_been() {
    for tier in TIERS {
        let world = World::new();
        let mut draft = world.python(BOMB).tier(tier);
        draft.limits.processes = 60;
        let ran = world.run(draft).await;
        assert_eq!(ran.exit.reason, ExitReason::Code(7), "{tier:?}: {ran:?}");
        assert!(ran.exit.processes_reached, "{tier:?}: {ran:?}");
        assert_eq!(alive(world.name()), 0);
        let calm = world.run(world.sh("true").tier(tier)).await;
        assert!(!calm.exit.processes_reached, "{tier:?}");
    }
}

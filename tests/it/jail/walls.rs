//! What a worker can reach and what it cannot.

use std::fs;

use super::*;

#[tokio::test]
async fn a_worker_runs_and_is_heard_in_both_tiers() {
    let world = World::new();
    for tier in TIERS {
        let mut draft = world.sh("echo out; echo err >&2; exit 7");
        draft.tier = tier;
        let ran = world.run(draft).await;
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("out\n", "err\n"), "{tier:?}");
        assert_eq!(ran.exit.reason, ExitReason::Code(7), "{tier:?}");
    }
}

#[tokio::test]
async fn the_workspace_can_be_written() {
    let world = World::new();
    for tier in TIERS {
        let mut draft =
            world.sh("mkdir sub && echo hello > sub/file && cat sub/file && rm -r sub && echo kept > kept");
        draft.tier = tier;
        world.run(draft).await.says("hello");
        assert_eq!(fs::read_to_string(world.workspace().join("kept")).unwrap(), "kept\n");
    }
}

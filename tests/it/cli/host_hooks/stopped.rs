//! A daemon that is stopped takes connections and answers none: to a hook it is down.

use std::process::Command;
use std::time::{Duration, Instant};

use super::world;
use crate::support::host_hooks::recorded;

/// Far less than the twenty seconds that a hook has, and more than a busy machine needs for one.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_stopped_daemon_is_down_and_a_hook_does_not_wait_for_it() {
    let world = world("claude");
    let daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &daemon.pid().to_string()]).status().unwrap().success());
    };
    let edit = recorded(&world, "claude/edit");
    for (when_down, passes) in [("pass", true), ("block", false), ("start", false)] {
        world.configure(&format!("[coordination]\nauto = \"off\"\n[hooks]\nwhen_down = \"{when_down}\"\n"));
        signal("-STOP");
        let begun = Instant::now();
        let objection = world.objection("claude", &edit);
        let took = begun.elapsed();
        // What is told after a tool waits no longer.
        let begun = Instant::now();
        let words = world.call("claude", "PostToolUse", &recorded(&world, "claude/post_tool_use"));
        let took_words = begun.elapsed();
        signal("-CONT");
        assert!(took < SOON && took_words < SOON, "{when_down}: {took:?}, {took_words:?}");
        assert!(words.status.success());
        assert_eq!(objection.is_none(), passes, "{when_down}: {objection:?}");
        if let Some(why) = objection {
            assert!(why.contains("suspended") && why.contains("kill -CONT"), "{why}");
        }
    }
    world.is_refused("claude", &edit);
}

//! A person's own settings of a host are no part of what an agent works on.

use super::{done, printed, text, world};
use crate::support::repositories::well;

const OWN: &str = ".claude/settings.local.json";

#[test]
fn a_persons_own_settings_of_claude_code_are_in_no_copy_unless_git_tracks_them() {
    let world = world(
        &[
            ("a.txt", "a\n"),
            (OWN, "{}\n"),
            (".claude/settings.json", "{}\n"),
            ("sub/.claude/settings.local.json", "{}\n"),
        ],
        "",
    );
    let repo = world.repo();
    well(&repo, &["add", "a.txt", ".claude/settings.json"]);
    well(&repo, &["commit", "-qm", "one"]);
    let _daemon = world.start();
    let look = "find . -name 'settings*.json' | sort > seen.txt";
    let seen = |id: &str| printed(&world, &["task", "diff", id]);
    let diff = seen(&done(&world, look));
    assert!(diff.contains("+./.claude/settings.json") && !diff.contains("settings.local.json"), "{diff}");
    assert_eq!(text(&world, OWN), "{}\n", "it stays where it is, and is no change of the run's");
    well(&repo, &["add", "--force", OWN]);
    let diff = seen(&done(&world, look));
    assert!(diff.contains("+./.claude/settings.local.json") && !diff.contains("sub/"), "{diff}");
}

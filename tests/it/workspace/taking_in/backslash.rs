//! A file with a backslash in its name is shown and taken in as no other file.

use super::{done, printed, ran, task, text, world};

#[test]
fn of_two_files_that_a_slash_tells_apart_the_one_with_a_backslash_is_left_out_and_named() {
    let world = world(&[("back/slash", "one\n"), ("back\\slash", "one\n"), ("other", "one\n")], "");
    let _daemon = world.start();
    let id = done(&world, "echo two > 'back\\slash'; echo two > 'new\\file'; echo two > other");
    let diff = printed(&world, &["task", "diff", &id]);
    assert!(diff.contains("other") && !diff.contains("slash") && !diff.contains("file"), "{diff}");
    let left_out = task(&world, &id).to_string();
    assert!(left_out.contains("is no name that a file can be offered under"), "{left_out}");
    let refused = ran(&world, &["apply", &id, "back\\slash"], 2);
    assert!(refused.contains("a backslash in a name counts as a slash"), "{refused}");
    let refused = ran(&world, &["task", "diff", &id, "back\\slash"], 2);
    assert!(refused.contains("a backslash in a name counts as a slash"), "{refused}");
    crate::support::terminal::at_the_terminal(&world, &format!("apply {id}"));
    assert_eq!(
        [text(&world, "back/slash"), text(&world, "back\\slash"), text(&world, "other")],
        ["one\n", "one\n", "two\n"]
    );
    assert_eq!(text(&world, "new/file"), "-");
}

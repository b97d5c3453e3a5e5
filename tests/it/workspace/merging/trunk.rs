//! The trunk goes to the merged commit, and the work tree in which it is checked out follows.

use super::{branch, entry, person, repository, tip};
use crate::support::repositories::well;

#[test]
fn branches_are_previewed_and_the_trunk_goes_to_them() {
    let world = repository(&[("a.txt", "one\n"), ("b.txt", "one\n")], "");
    let _daemon = world.start();
    let one = branch(&world, "feat/one", "main", &[("a.txt", Some("two\n"))], "one");
    branch(&world, "feat/two", "main", &[("b.txt", None), ("d/c.txt", Some("new\n"))], "two");
    let before = tip(&world, "main");
    let said = person(&world, "merge feat/one feat/two --preview", 0);
    assert!(said.contains("1. feat/one") && said.contains("no two of the branches collide"), "{said}");
    assert_eq!(tip(&world, "main"), before);
    let said = person(&world, "merge feat/one feat/two", 0);
    assert!(said.contains("feat/one: merged") && said.contains("feat/two: merged"), "{said}");
    let repo = world.repo();
    assert!(well(&repo, &["status", "--porcelain"]).is_empty());
    assert_eq!(
        well(&repo, &["log", "-1", "--format=%s|%an|%P"]).trim(),
        format!("Merge branch 'feat/two' into main|Pat|{one} {}", tip(&world, "feat/two"))
    );
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "two\n");
    assert_eq!(std::fs::read_to_string(repo.join("d/c.txt")).unwrap(), "new\n");
    assert!(!repo.join("b.txt").exists());
    assert!(!super::is_half_way(&world, &repo.join(".git")));
    assert_eq!(entry(&world, "feat/two")["state"], "merged");
}

//! Files that run outside of every jail because a setting names them are merged only if a person says so; and parts of
//! a repository that the daemon does not see keep a merge out.

use serde_json::Value;

use super::{branch, entry, person, repository, tip};
use crate::support::World;
use crate::support::repositories::well;

/// The branch is set aside for this file, and merged where a person says so.
fn asks_for(world: &World, name: &str, file: &str) {
    let preview = person(world, &format!("merge {name} --preview"), 0);
    assert!(preview.contains(file), "{preview}");
    let before = tip(world, "main");
    let said = person(world, &format!("merge {name}"), 7);
    assert!(said.contains(file) && said.contains("--with-settings"), "{said}");
    assert_eq!((entry(world, name)["what"].clone(), tip(world, "main")), (Value::from("settings"), before));
}

#[test]
fn what_the_configuration_of_git_names_is_merged_only_with_a_flag() {
    let world = repository(
        &[("tools/gh/pre-commit", "#!/bin/sh\n"), ("cfg.inc", ""), ("scripts/x.sh", "#!/bin/sh\n")],
        "",
    );
    let repo = world.repo();
    well(&repo, &["config", "core.hooksPath", "tools/gh"]);
    well(&repo, &["config", "include.path", "../cfg.inc"]);
    well(&repo, &["config", "alias.x", "!scripts/x.sh"]);
    let _daemon = world.start();
    for (name, file) in [
        ("hook", "tools/gh/pre-commit"),
        ("include", "cfg.inc"),
        ("alias", "scripts/x.sh"),
        ("new", "tools/gh/post-checkout"),
    ] {
        branch(&world, name, "main", &[(file, Some("#!/bin/sh\n# other\n"))], name);
        asks_for(&world, name, file);
    }
    person(&world, "merge include --with-settings", 0);
    assert!(well(&repo, &["show", "main:cfg.inc"]).contains("other"));
}

#[test]
fn what_our_configuration_protects_and_what_a_check_runs_is_merged_only_with_a_flag() {
    let world = repository(
        &[("secret.txt", "a\n"), ("denied.txt", "a\n"), ("check.sh", "exit 1\n")],
        "[workspace]\nprotect = [\"secret.txt\"]\n[a6s]\ndeny = [\"denied.txt\"]\n[merge]\nchecks = [\"sh ./check.sh\"]\n",
    );
    let _daemon = world.start();
    for (name, file) in [("one", "secret.txt"), ("two", "denied.txt"), ("three", "check.sh")] {
        branch(&world, name, "main", &[(file, Some("exit 0\n"))], name);
        asks_for(&world, name, file);
    }
}

#[test]
fn a_partial_clone_merges_nothing_that_it_has_not_fetched() {
    let world = repository(&[("src/a.ts", "export function a() { return 1; }\n"), ("b.txt", "b\n")], "");
    let repo = world.repo();
    branch(&world, "one", "main", &[("src/a.ts", Some("export function z() { return 1; }\n"))], "one");
    let calls = "import { a } from \"./a\";\nexport function c() { return a(); }\n";
    branch(&world, "two", "main", &[("src/c.ts", Some(calls))], "two");
    branch(&world, "text", "main", &[("b.txt", Some("c\n"))], "text");
    // The same branches at a remote, of which only commits and trees are fetched.
    let remote = world.path("remote.git");
    well(&repo, &["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    well(&remote, &["config", "uploadpack.allowFilter", "true"]);
    well(&remote, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    well(&repo, &["worktree", "remove", "--force", super::bench(&world).to_str().unwrap()]);
    std::fs::remove_dir_all(repo.join(".git")).unwrap();
    let url = format!("file://{}", remote.display());
    let clone = world.path("clone");
    well(
        &world.path(""),
        &["clone", "-q", "--filter=blob:none", "--branch", "main", &url, clone.to_str().unwrap()],
    );
    std::fs::rename(clone.join(".git"), repo.join(".git")).unwrap();
    well(&repo, &["config", "user.name", "Pat"]);
    well(&repo, &["config", "user.email", "pat@example.invalid"]);
    for name in ["one", "two", "text"] {
        well(&repo, &["branch", name, &format!("origin/{name}")]);
    }
    let _daemon = world.start();
    for asked in ["merge one two --preview", "merge text --preview"] {
        let said = person(&world, asked, 4);
        assert!(said.contains("partial clone") && said.contains("git fetch --refetch --no-filter"), "{said}");
    }
    well(&repo, &["fetch", "-q", "--refetch", "--no-filter"]);
    let said = person(&world, "merge one two --preview", 0);
    assert!(said.contains("call"), "{said}");
    person(&world, "merge text", 0);
}

#[test]
fn attributes_outside_of_the_branch_set_it_aside() {
    let world = repository(&[("s.sec", "secret\n"), ("t.txt", "a\n")], "");
    let repo = world.repo();
    well(&repo, &["config", "filter.up.smudge", "tr a-z A-Z"]);
    well(&repo, &["config", "filter.up.clean", "tr A-Z a-z"]);
    std::fs::create_dir_all(repo.join(".git/info")).unwrap();
    std::fs::write(repo.join(".git/info/attributes"), "*.sec filter=up\n*.crlf eol=crlf\n").unwrap();
    let _daemon = world.start();
    for (name, file, word) in [("one", "n.sec", "filter"), ("two", "n.crlf", "eol")] {
        branch(&world, name, "main", &[(file, Some("new\n"))], name);
        let said = person(&world, &format!("merge {name}"), 7);
        assert!(said.contains(word) && said.contains("git merge --ff-only"), "{said}");
        assert!(!repo.join(file).exists());
    }
    // Others are merged as before.
    branch(&world, "three", "main", &[("t.txt", Some("b\n"))], "three");
    person(&world, "merge three", 0);
    assert_eq!(std::fs::read_to_string(repo.join("t.txt")).unwrap(), "b\n");
}

/// A branch with a link, which `branch` does not make.
fn links(world: &World, name: &str, link: &str, to: &str) {
    let bench = super::bench(world);
    well(&bench, &["checkout", "-q", "-B", name, "main"]);
    std::os::unix::fs::symlink(to, bench.join(link)).unwrap();
    well(&bench, &["add", "-A"]);
    well(&bench, &["commit", "-q", "-m", name]);
    well(&bench, &["checkout", "-q", "--detach"]);
}

#[test]
fn what_is_named_through_a_link_is_merged_only_with_a_flag() {
    let world = repository(
        &[
            ("real/hooks/pre-commit", "#!/bin/sh\n"),
            ("scripts/check.sh", "#!/bin/sh\n"),
            ("conf/git.cfg", ""),
            ("places/prod.sh", "a\n"),
            ("docs/agents.md", "a\n"),
            ("own/x", "a\n"),
        ],
        "[workspace]\nprotect = [\"ops/prod.sh\"]\n",
    );
    let repo = world.repo();
    for (link, to) in [("tools", "real"), ("cfg", "conf"), ("ops", "places"), ("CLAUDE.md", "docs/agents.md")]
    {
        std::os::unix::fs::symlink(to, repo.join(link)).unwrap();
    }
    std::os::unix::fs::symlink("../../scripts/check.sh", repo.join("real/hooks/post-commit")).unwrap();
    well(&repo, &["add", "-A"]);
    well(&repo, &["commit", "-q", "-m", "links"]);
    well(&repo, &["config", "core.hooksPath", "tools/hooks"]);
    well(&repo, &["config", "include.path", "../cfg/git.cfg"]);
    well(&repo, &["config", "alias.x", "!later/x.sh"]);
    let _daemon = world.start();
    for (name, file) in [
        ("hook", "real/hooks/pre-commit"),
        ("linked-hook", "scripts/check.sh"),
        ("include", "conf/git.cfg"),
        ("protected", "places/prod.sh"),
        ("instructions", "docs/agents.md"),
    ] {
        branch(&world, name, "main", &[(file, Some("#!/bin/sh\n# other\n"))], name);
        asks_for(&world, name, file);
    }
    links(&world, "link", "later", "own");
    asks_for(&world, "link", "later");
    links(&world, "editor", ".vscode", "own");
    asks_for(&world, "editor", ".vscode");
    branch(&world, "free", "main", &[("own/x", Some("b\n"))], "free");
    person(&world, "merge free", 0);
}

#[test]
fn a_branch_with_a_repository_or_with_a_tools_own_folder_is_merged_only_with_a_flag() {
    let world = repository(&[("a.txt", "a\n")], "");
    let _daemon = world.start();
    let parts = [
        ("vendor/x/HEAD", Some("ref: refs/heads/main\n")),
        ("vendor/x/objects/keep", Some("")),
        ("vendor/x/refs/keep", Some("")),
        ("vendor/x/config", Some("[core]\n\tfsmonitor = ./m.sh\n")),
    ];
    branch(&world, "bare", "main", &parts, "bare");
    asks_for(&world, "bare", "vendor/x/config");
    for (name, file) in [("ours", ".provost/provost.toml"), ("wit", "sub/.wit/x"), ("svn", ".svn/entries")] {
        branch(&world, name, "main", &[(file, Some("x\n"))], name);
        asks_for(&world, name, file);
    }
}

#[test]
fn what_a_check_runs_in_a_folder_or_by_a_worker_is_merged_only_with_a_flag() {
    let world = repository(
        &[("web/check.sh", "exit 1\n"), ("lint.sh", "exit 1\n")],
        "[workers.lint]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"lint.sh\"]\nparse_mode = \"text\"\n\
         [merge]\nchecks = [\"cd web && sh check.sh\", \"lint\"]\n",
    );
    let _daemon = world.start();
    for (name, file) in [("one", "web/check.sh"), ("two", "lint.sh")] {
        branch(&world, name, "main", &[(file, Some("exit 0\n"))], name);
        asks_for(&world, name, file);
    }
}

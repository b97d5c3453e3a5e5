//! Repositories in a workspace: a worker leaves nothing in them that runs, or hides, when a person uses git
//! there.

use std::process::Command;

use serde_json::json;

use crate::support::repositories::{BARE, committed, ended, findings, git, well, write};
use crate::support::{World, eventually};

/// A trap that runs a program at the next `git status`: a repository whose settings name it, and the index that leads
/// there.
const TRAP: &str = "mkdir -p vendor/v && cd vendor/v && git init -q . && \
    git -c user.name=w -c user.email=w@localhost commit -q --allow-empty -m x && \
    printf '#!/bin/sh\\ntouch \"$PWD/ran\"\\n' > m.sh && chmod +x m.sh && \
    git config core.fsmonitor ./m.sh; head=$(git rev-parse HEAD); cd ../..; \
    git update-index --add --cacheinfo 160000,$head,vendor/v; ";

#[test]
fn nothing_of_a_worker_runs_at_the_users_next_git_status() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) =
        client.delegate("shell", &format!("{TRAP} touch up; sleep 1000"), json!({ "timeout": 600 }));
    reply.ack();
    let over = || client.task(&task).is_some_and(|it| it["status"] == "failed");
    eventually("the trap, or its end", || repo.join("up").exists() || over());
    // As a prompt or an editor does all the time, while the worker runs and when it does not any more.
    assert!(
        !well(&repo, &["ls-files", "--stage"]).contains("160000"),
        "the index leads into a worker's repository"
    );
    well(&repo, &["status", "--short"]);
    let result = client.result_of(&task);
    well(&repo, &["status", "--short"]);
    let ran: Vec<_> = ["ran", "vendor/v/ran"].into_iter().filter(|it| repo.join(it).exists()).collect();
    assert!(ran.is_empty(), "a worker's program has run outside: {ran:?}");
    let said = result["artifacts"]["summary"].to_string() + &result["artifacts"]["metadata"].to_string();
    assert_eq!(result["status"], "failed", "{result}");
    assert!(said.contains("vendor/v/.git"), "{said}");
    // A person, or an editor that looks for repositories by itself, who goes there is not met by it either.
    git(&repo.join("vendor/v"), &["status", "--short"]);
    assert!(!repo.join("vendor/v/ran").exists(), "the repository that a worker made is still in force");
}

#[test]
fn a_new_repository_of_any_kind_ends_the_run() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let kinds = [
        ("dir", "git init -q dir"),
        ("file", "mkdir -p file && printf 'gitdir: ../elsewhere\\n' > file/.git"),
        ("link", "mkdir -p link && ln -s ../elsewhere link/.git"),
        ("moved", "mkdir -p moved/x && echo x > moved/x/HEAD && mv moved/x moved/.git"),
        ("d/e/e/p", "mkdir -p d/e/e/p && git init -q d/e/e/p"),
    ];
    for (place, goal) in kinds {
        // Ended while it runs, and told of when it was faster than every look.
        for rest in ["sleep 1000", "true"] {
            let result = ended(&client, "shell", &format!("{goal}; {rest}"));
            assert_eq!(result["status"], "failed", "{goal}; {rest}: {result}");
            let said = result["artifacts"].to_string();
            assert!(said.contains(&format!("{place}/.git")), "{goal}; {rest}: {said}");
            assert_eq!(result["artifacts"]["metadata"]["tainted"], true, "{goal}: {result}");
            assert!(
                std::fs::symlink_metadata(repo.join(place).join(".git")).is_err(),
                "{goal}: is still in force"
            );
            std::fs::remove_dir_all(repo.join(place.split('/').next().unwrap())).unwrap();
        }
    }
    // An empty folder is none, and a repository among the temporary files is nobody's business.
    let result = ended(&client, "shell", "mkdir -p z/.git; git init -q /tmp/t && git -C /tmp/t status");
    assert_eq!(result["status"], "completed", "{result}");
}

#[test]
fn a_new_repository_under_another_name_ends_the_run_and_is_put_out_of_force() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for rest in ["sleep 1000", "true"] {
        let goal =
            format!("{BARE} && git -C at config core.fsmonitor 'touch {}/ran;:'; {rest}", repo.display());
        let result = ended(&client, "shell", &goal);
        assert_eq!(result["status"], "failed", "{result}");
        assert!(result["artifacts"]["summary"].to_string().contains("git repository"), "{result}");
        git(&repo.join("at"), &["status", "--short"]);
        assert!(!repo.join("ran").exists(), "{rest}: it is still in force: {result}");
        std::fs::remove_dir_all(repo.join("at")).unwrap();
    }
}

#[test]
fn no_folder_is_too_closed_and_none_too_deep_for_setting_a_repository_aside() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let traps = [
        // The folder cannot be written, cannot be listed, or can only be passed through.
        ("v", "git init -q v; TRAP; chmod 0555 v"),
        ("v", "mkdir v; chmod 0311 v; git init -q v; TRAP"),
        ("v", "git init -q v; TRAP; chmod 0111 v"),
        ("out/v", "mkdir out; git init -q out/v; TRAP; chmod 0 out"),
        // The names for it are taken.
        (
            "v",
            "git init -q v; TRAP; touch v/git.set-aside-by-provost; for n in $(seq 100); do touch v/git.set-aside-by-provost-$n; done",
        ),
        // A tree deeper than any look goes, beside it.
        ("v", "mkdir -p $(printf 'a/%.0s' $(seq 140)); git init -q v; TRAP"),
    ];
    for (place, trap) in traps {
        let set = format!("git -C {place} config core.fsmonitor 'touch {}/ran;:'", repo.display());
        let result = ended(&client, "shell", &trap.replace("TRAP", &set));
        let shut = place.split('/').next().unwrap();
        well(&repo, &["version"]);
        Command::new("chmod").args(["-R", "u+rwX", shut]).current_dir(&repo).status().unwrap();
        git(&repo.join(place), &["status", "--short"]);
        assert!(!repo.join("ran").exists(), "{trap}: it is still in force: {result}");
        assert_eq!(result["status"], "failed", "{trap}: {result}");
        for made in [shut, "a"] {
            Command::new("rm").args(["-rf", made]).current_dir(&repo).status().unwrap();
        }
    }
}

#[test]
fn no_task_works_in_a_repository_whatever_it_is_called() {
    let world = World::new();
    let repo = committed(&world);
    well(&repo, &["init", "-q", "--bare", "store"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for place in ["store", "store/hooks"] {
        let (task, reply) =
            client.delegate("shell", "touch post-checkout", json!({ "timeout": 60, "working_dir": place }));
        reply.ack();
        let result = client.result_of(&task);
        assert_eq!(result["status"], "failed", "{place}: {result}");
        assert!(result["artifacts"]["summary"].to_string().contains("repository itself"), "{result}");
        assert!(!repo.join(place).join("post-checkout").exists(), "{place}");
    }
}

#[test]
fn a_program_that_git_names_and_that_is_not_there_is_not_for_a_worker_to_bring() {
    let world = World::new();
    let repo = committed(&world);
    well(&repo, &["config", "core.fsmonitor", "./tools/fsm.sh"]);
    well(&repo, &["config", "interactive.diffFilter", "./tools/filter.sh -x"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "mkdir -p tools; for f in fsm.sh filter.sh; do echo x > tools/$f; mv tools/$f tools/o; cp /bin/true tools/$f; done; \
        mv tools t2; ls -l tools/fsm.sh; true";
    ended(&client, "shell", goal);
    for name in ["fsm.sh", "filter.sh"] {
        assert!(!repo.join("tools").join(name).exists(), "{name}");
    }
}

#[test]
fn what_hides_changes_from_a_review_cannot_be_written() {
    let world = World::new();
    let repo = committed(&world);
    write(repo.join("src/b.rs"), "fn b() {}\n");
    well(&repo, &["add", "."]);
    well(&repo, &["commit", "-qm", "two"]);
    let before = well(&repo, &["for-each-ref"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "export GIT_AUTHOR_NAME=w GIT_AUTHOR_EMAIL=w@localhost GIT_COMMITTER_NAME=w GIT_COMMITTER_EMAIL=w@localhost; \
        echo evil >> src/a.rs; echo evil > new.rs; \
        git update-index --skip-worktree src/a.rs; git update-index --assume-unchanged src/a.rs; \
        echo new.rs >> .git/info/exclude; mkdir -p .git/info && echo '*.rs -diff' > .git/info/attributes; \
        git replace HEAD HEAD~1; git replace --graft HEAD; \
        mkdir -p .git/objects/info && echo /tmp > .git/objects/info/alternates; \
        git commit -qam moved; git branch -f main HEAD~1; git tag -f v1 HEAD~1; git update-ref refs/heads/main HEAD~1; \
        echo 'ref: refs/heads/other' > .git/HEAD; rm -f .git/index; mv .git .g; git stash -q; \
        git config core.fsmonitor ./m.sh; mkdir .git/rebase-merge; git log --oneline | wc -l";
    let result = ended(&client, "shell", goal);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(
        well(&repo, &["status", "--short"]),
        " M src/a.rs\n?? new.rs\n",
        "the review shows everything"
    );
    assert!(well(&repo, &["diff"]).contains("+evil"));
    assert_eq!(well(&repo, &["for-each-ref"]), before);
    let hides =
        [".git/info/attributes", ".git/objects/info/alternates", ".git/refs/replace", ".git/rebase-merge"];
    for path in hides {
        assert!(!repo.join(path).exists(), "{path}");
    }
    // Reading goes on as ever.
    assert!(result["artifacts"].to_string().contains('2'), "{result}");
}

#[test]
fn repositories_that_are_there_are_as_read_only_as_the_outer_one() {
    let world = World::new();
    let repo = committed(&world);
    well(&repo, &["init", "-q", "nested"]);
    well(&repo, &["init", "-q", "--bare", "odd"]);
    well(&repo, &["init", "-q", "nested/deeper"]);
    write(repo.join("nested/hooked/post"), "mine\n");
    well(&repo.join("nested"), &["config", "core.hooksPath", "hooked"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for r in nested/.git nested/deeper/.git odd; do \
          echo x > $r/hooks/post-checkout; echo x >> $r/config; mv $r/hooks $r/h; rm -rf $r/hooks; mkdir $r/worktrees; \
          echo x > $r/info/exclude; mv $r $r.old; done; \
        mv nested n2; echo x > nested/hooked/post; git -C nested config core.fsmonitor ./m.sh; touch nested/file; true";
    let result = ended(&client, "shell", goal);
    assert_eq!((&result["status"], findings(&result)), (&json!("completed"), vec![]), "{result:#}");
    for inner in ["nested/.git", "nested/deeper/.git", "odd"] {
        let config = std::fs::read_to_string(repo.join(inner).join("config")).unwrap();
        assert!(!config.contains("fsmonitor") && !config.ends_with("x\n"), "{inner}: {config}");
        assert!(!repo.join(inner).join("hooks/post-checkout").exists(), "{inner}");
        assert!(!repo.join(inner).join("worktrees").exists(), "{inner}");
    }
    assert_eq!(std::fs::read_to_string(repo.join("nested/hooked/post")).unwrap(), "mine\n");
    assert!(repo.join("nested/file").exists(), "what is no repository is a worker's to change");
}

#[test]
fn a_submodule_that_is_not_checked_out_is_no_place_for_a_repository() {
    let world = World::new();
    let repo = committed(&world);
    let head = well(&repo, &["rev-parse", "HEAD"]);
    for place in ["sub", "lib/gone"] {
        well(&repo, &["update-index", "--add", "--cacheinfo", &format!("160000,{},{place}", head.trim())]);
    }
    well(&repo, &["commit", "-qm", "subs"]);
    std::fs::create_dir(repo.join("sub")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for s in sub lib/gone; do git init -q $s; mkdir -p $s/.git; echo x > $s/.git/HEAD; mv $s old; done; ls -A sub/.git | wc -l";
    let result = ended(&client, "shell", goal);
    assert_eq!(result["status"], "completed", "{result}");
    assert!(!repo.join("sub/.git").exists() && !repo.join("lib/gone/.git").exists());
    well(&repo, &["status", "--short"]);
}

#[test]
fn a_work_tree_that_a_person_adds_meanwhile_ends_no_run() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal =
        "touch up; until [ -e trees/b/src/a.rs ]; do sleep 0.05; done; sleep 2.5; cat trees/b/src/a.rs";
    let (task, reply) = client.delegate("shell", goal, json!({ "timeout": 60 }));
    reply.ack();
    eventually("the start", || repo.join("up").exists());
    well(&repo, &["worktree", "add", "-q", "trees/b"]);
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(well(&repo.join("trees/b"), &["status", "--short"]), "");
    // One that only says so is none.
    let other = "mkdir -p trees/c; printf 'gitdir: %s/.git/worktrees/b\\n' $DEVIT_WORKSPACE > trees/c/.git; sleep 1000";
    let result = ended(&client, "shell", other);
    assert_eq!(result["status"], "failed", "{result}");
}

#[test]
fn more_repositories_than_can_be_protected_are_refused() {
    let world = World::new();
    let repo = committed(&world);
    for number in 0..=provost::base::limits::REPOSITORIES_MAX {
        write(repo.join(format!("many/{number}/.git")), "gitdir: /nowhere\n");
    }
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = ended(&client, "shell", "touch ran");
    assert_eq!(result["status"], "failed", "{result}");
    assert!(result["artifacts"].to_string().contains("copy = true"), "{result}");
    assert!(!repo.join("ran").exists());
}

const WRITER: &str = "[workers.writer]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ngit = \"write\"\n";

#[test]
fn who_may_write_to_the_repository_is_for_a_rule_to_name_and_all_of_it_is_told() {
    let world = World::new();
    world.configure(WRITER);
    let repo = committed(&world);
    let rules = world.path("rules.toml");
    let rule = |extra: &str| {
        format!(
            "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"delegate\"]\n{extra}"
        )
    };
    std::fs::write(&rules, rule("")).unwrap();
    world.configure(&format!("[policy]\nfile = {:?}\n{WRITER}", rules.to_str().unwrap()));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (_, refused) = client.delegate("writer", "touch ran", json!({}));
    let refused = refused.message();
    assert!(refused["payload"]["details"]["explanation"].to_string().contains("when.git"), "{refused}");
    assert!(!repo.join("ran").exists());
    daemon.stop();

    std::fs::write(&rules, rule("when.git = [\"read\", \"write\"]\n")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo more >> src/a.rs; git -c user.name=w -c user.email=w@localhost commit -qam two; \
        git update-index --skip-worktree src/a.rs; echo hidden >> .git/info/exclude; echo x > .git/hooks/pre-push; \
        git config core.fsmonitor ./m.sh; true";
    let result = ended(&client, "writer", goal);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(well(&repo, &["log", "--format=%s"]), "two\none\n");
    let found = findings(&result);
    let branch = format!("changed git .git/{}", well(&repo, &["symbolic-ref", "HEAD"]).trim());
    for expected in ["changed git .git/index", "changed git .git/info/exclude", &branch] {
        assert!(found.iter().any(|it| it == expected), "{expected} is not among {found:?}");
    }
    assert!(
        !found.iter().any(|it| it.contains("hooks") || it.contains("config") || it.contains("objects")),
        "{found:?}"
    );
    assert_eq!(result["artifacts"]["metadata"]["tainted"], true);
    // Another repository is none that it may write to, nor may it make one.
    let result = ended(&client, "writer", &format!("{TRAP} sleep 1000"));
    assert_eq!(result["status"], "failed", "{result}");
    assert!(result["artifacts"].to_string().contains("vendor/v/.git"), "{result}");
    well(&repo, &["status", "--short"]);
    assert!(!repo.join("vendor/v/ran").exists());
}

#[test]
fn in_a_copy_a_worker_commits_as_it_likes() {
    let world = World::new();
    world.configure(&format!("{}copy = true\n", WRITER.replace("git = \"write\"\n", "")));
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo more >> src/a.rs && git -c user.name=w -c user.email=w@localhost commit -qam two && \
        git log --format=%s && git init -q vendor/v && sleep 2.5";
    let result = ended(&client, "writer", goal);
    assert_eq!(result["status"], "completed", "{result}");
    assert!(result["artifacts"].to_string().contains("two"), "{result}");
    assert_eq!(result["artifacts"]["metadata"]["tainted"], false, "{result}");
    assert_eq!(well(&repo, &["log", "--format=%s"]), "one\n");
    assert_eq!(well(&repo, &["status", "--short"]), "");
}

#[test]
fn a_plan_says_which_way_its_worker_works() {
    let world = World::new();
    world.configure(&format!("{WRITER}{}copy = true\n", WRITER.replace("writer", "apart")));
    committed(&world);
    let said = |worker: &str| {
        let said = world.command(&["jail", "explain", worker]).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shell = said("shell");
    assert!(shell.contains("in the directory itself: its changes take effect at once"), "{shell}");
    assert!(
        shell.contains("git read-only; so is every other one, and making one more ends the run"),
        "{shell}"
    );
    assert!(said("writer").contains("git may be written, hooks and settings excepted"), "{}", said("writer"));
    assert!(said("apart").contains("in a copy, which is deleted afterwards"), "{}", said("apart"));
}

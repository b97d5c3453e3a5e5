//! Shell commands that write more than their words name, and what is near another agent's intent.

use std::process::Command;

use serde_json::{Value, json};

use super::{CODE, recorded, told, world};
use crate::support::World;

fn git(world: &World, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=T", "-c", "user.email=t@localhost"]).args(args);
    let done = git.current_dir(world.repo()).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {done:?}");
}

#[test]
fn commands_are_followed_into_folders_shells_and_programs_that_write() {
    let world = world("claude");
    let _daemon = world.start();
    world.write("docs/a.md", "a\n");
    let diff = "--- a/src/auth.ts\n+++ b/src/auth.ts\n@@ -1 +1 @@\n-x\n+y\n";
    world.write("fix.diff", diff);
    world.write("other.diff", &diff.replace("src/auth.ts", "docs/a.md"));
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let refused = [
        "cd src && sed -i s/a/b/ auth.ts",
        "cd src; echo x > auth.ts",
        "(cd src && rm auth.ts)",
        "cd docs && cd ../src && rm auth.ts",
        "bash -c 'sed -i s/a/b/ src/auth.ts'",
        "cd src && bash -lc \"rm auth.ts\"",
        "timeout 5 env A=1 sh -c 'cd src && tee auth.ts'",
        "eval 'rm src/auth.ts'",
        "git apply fix.diff",
        "git -C src apply -p2 ../fix.diff",
        "patch -p1 -i fix.diff",
        "patch -p1 < fix.diff",
        "git ls-files | xargs sed -i s/a/b/",
        "grep -rl login . | xargs -I {} sed -i s/a/b/ {}",
        "find . -name '*.ts' -delete",
        "find src -type f -exec sed -i s/a/b/ {} +",
        "npx prettier --write 'src/**/*.ts'",
        "prettier --write .",
        "rm src/*.ts",
        "rm -rf src",
        "cargo fmt",
        "black src",
        "eslint --fix src",
        "git clean -fdx",
        // As somebody writes them who would rather not be seen.
        "env -C src rm auth.ts",
        "env -u HOME --chdir=src rm auth.ts",
        "sudo -u ada nice -n 5 timeout -k 1 5 rm src/auth.ts",
        "pushd docs; popd; rm src/auth.ts",
        "pushd src && rm auth.ts",
        "bash <<'EOF'\ncd src\nrm auth.ts\nEOF",
        "true\nsh -s <<EOF && ls\nrm src/auth.ts\nEOF\nls",
        "bash <<< 'rm src/auth.ts'",
        "if true; then rm src/auth.ts; fi",
        "while ! false; do { rm src/auth.ts; }; done",
        "echo \"$(rm src/auth.ts)\"",
        "echo `rm src/auth.ts`",
        "X=$(cd src && rm auth.ts) ls",
        "echo x >& src/auth.ts",
        "echo x >| src/auth.ts",
        "exec 3> src/auth.ts",
        "cat < docs/a.md > src/auth.ts",
        "tee >(tee src/auth.ts)",
        "cp -t src docs/auth.ts",
        "install --target-directory=src docs/auth.ts",
        "sort -o src/auth.ts docs/a.md",
        "curl -sSo src/auth.ts -o src/auth.ts https://example.org",
        "tar -C src -xf a.tar",
        "tar xzf a.tgz",
        "unzip -o a.zip -d src",
        "sponge src/auth.ts < docs/a.md",
        "awk -i inplace '{ print }' src/auth.ts",
        "perl -pi -e 's/a/b/' src/auth.ts",
        "python3 -m black src",
        "find . -exec sh -c 'rm \"$1\"' _ {} \\;",
        "git ls-files | xargs -I{} sh -c 'echo x > {}'",
        "rm \\\n  src/auth.ts",
        "git -C src rm auth.ts",
        "git read-tree -u --reset HEAD",
        "setsid busybox rm src/auth.ts &",
        "python3 -c \"open('src/auth.ts','w')\"",
        "git restore --staged --worktree src/auth.ts",
        "find . -name node_modules -prune -o -type f -exec sed -i s/a/b/ {} +",
        "find src ! -name '*.md' -delete",
        "find . -name auth.ts -exec grep -q x {} \\; -exec sed -i s/a/b/ {} \\;",
        "patch -p 1 < fix.diff",
        "curl -sSLo src/auth.ts http://127.0.0.1/x",
        "wget -qO src/auth.ts http://127.0.0.1/x",
        "yarn prettier --write .",
        "pnpm prettier --write .",
        "f=src/auth.ts; rm $f",
    ];
    for command in refused.iter().flat_map(|it| with_redirections(it)) {
        world.is_refused("claude", &told(&world, &command));
    }
    let free = [
        "cd docs && sed -i s/a/b/ auth.ts",
        "(cd src && ls); rm auth.ts",
        "cd $SOMEWHERE && rm auth.ts",
        "bash -c 'cat src/auth.ts'",
        "git apply --check fix.diff",
        "git apply other.diff",
        "git ls-files | xargs grep login",
        "find . -name '*.pyc' -delete",
        "find . -name '*.ts'",
        "prettier --check .",
        "prettier --write docs",
        "rm docs/*.ts",
        "cargo fmt --check",
        "cargo build",
        "eslint src",
        "git stash list",
        "git checkout -b next",
        "git log -- src/auth.ts",
        "env -C docs rm auth.ts",
        "pushd src; popd; rm auth.ts",
        "cat <<EOF\nrm src/auth.ts\nEOF",
        "bash <<EOF\ncat src/auth.ts\nEOF",
        "bash build.sh <<EOF\nrm src/auth.ts\nEOF",
        "if grep -q login src/auth.ts; then echo yes; fi",
        "echo \"$(cat src/auth.ts)\" 2>&1",
        "cat src/auth.ts >&2",
        "cp -t docs src/auth.ts",
        "sort -o docs/b.md src/auth.ts",
        "tar -cf a.tar src",
        "tar tf a.tar",
        "unzip -l a.zip",
        "python3 -m http.server",
        "echo 'rm docs/auth.ts' | sh",
        // Named in the document as what is not seen.
        "cat build.sh | sh",
    ];
    for command in free.iter().flat_map(|it| with_redirections(it)) {
        world.goes_on("claude", &told(&world, &command));
    }
}

/// A line as it is, and as agents write most of theirs; behind a text in the line nothing can stand.
pub(super) fn with_redirections(line: &str) -> Vec<String> {
    let behind: &[&str] = if line.contains('\n') { &[""] } else { &["", " 2>&1", " 2>/dev/null"] };
    behind.iter().map(|it| format!("{line}{it}")).collect()
}

#[test]
fn redirections_are_no_words_of_a_command() {
    let world = world("claude");
    world.write("docs/auth.ts", "a\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    for command in [
        "cp docs/auth.ts src/auth.ts 2>/dev/null",
        "2>/dev/null rm src/auth.ts",
        "bash <<'EOF' 2>&1\nrm src/auth.ts\nEOF",
        "python3 <<'EOF' 2>&1\nopen('src/auth.ts', 'w')\nEOF",
        "rm $(echo src/auth.ts 2>/dev/null)",
        "ruff format 2>&1",
        "make &>src/auth.ts",
        "make 2>>src/auth.ts",
        "ls docs | xargs sh -c 'echo x > src/auth.ts'",
        "find src -execdir sh -c 'rm auth.ts' \\;",
        "git commit -m \"$(cat <<'EOF'\nDon't\nEOF\n)\" && rm src/auth.ts",
    ] {
        world.is_refused("claude", &told(&world, command));
    }
    for command in [
        "cargo test 2>&1 | tail -20",
        "npm run build 2>&1",
        "git status 2>/dev/null",
        "git log --oneline | head",
        "grep -rn foo src 2>/dev/null",
        "git diff HEAD~1 2>&1 | head",
        "find . -name '*.rs' -exec grep -l x {} +",
        "cat src/auth.ts 1>&2",
        "cat src/auth.ts &>/dev/null",
        // Searches that only read.
        "git ls-files '*.ts' | xargs sed -n '/await/p'",
        "find src -exec sed -n '/where/,/end/p' {} +",
        "git ls-files | xargs awk '{print $1 \" -> \" $2}'",
        "find . -name '*.ts' -exec sh -c 'grep -c x \"$1\" 2>/dev/null' _ {} \\;",
    ] {
        world.goes_on("claude", &told(&world, command));
    }
}

#[test]
fn git_is_kept_from_what_it_would_change_and_from_nothing_else() {
    let world = world("claude");
    world.write("docs/a.md", "a\n");
    git(&world, &["add", "src", "docs"]);
    git(&world, &["commit", "--quiet", "--message", "one"]);
    git(&world, &["branch", "same"]);
    git(&world, &["checkout", "--quiet", "-b", "other"]);
    world.write("src/auth.ts", &format!("{CODE}// more\n"));
    git(&world, &["commit", "--quiet", "--all", "--message", "two"]);
    git(&world, &["checkout", "--quiet", "same"]);
    world.write("docs/a.md", "b\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    // Nothing of what is locked differs.
    for command in
        ["git stash", "git reset --hard", "git checkout same", "git switch same", "git checkout docs/a.md"]
    {
        world.goes_on("claude", &told(&world, command));
    }
    for command in [
        "git checkout other",
        "git switch other",
        "git reset --hard other",
        "git merge other",
        "git checkout -- src/auth.ts",
    ] {
        world.is_refused("claude", &told(&world, command));
    }
    world.write("src/auth.ts", &format!("{CODE}// theirs, not committed\n"));
    for command in ["git stash", "git stash push", "git reset --hard", "cd docs && git checkout -f same"] {
        world.is_refused("claude", &told(&world, command));
    }
}

#[test]
fn what_is_pulled_is_held_against_what_was_fetched() {
    let world = world("claude");
    world.write("docs/a.md", "a\n");
    git(&world, &["add", "src", "docs"]);
    git(&world, &["commit", "--quiet", "--message", "one"]);
    git(&world, &["branch", "-M", "main"]);
    let origin = world.home().join("origin.git");
    let origin = origin.to_str().unwrap();
    git(&world, &["clone", "--quiet", "--bare", ".", origin]);
    git(&world, &["remote", "add", "origin", origin]);
    git(&world, &["checkout", "--quiet", "-b", "theirs"]);
    world.write("src/auth.ts", &format!("{CODE}// more\n"));
    git(&world, &["commit", "--quiet", "--all", "--message", "two"]);
    git(&world, &["push", "--quiet", "origin", "theirs:main", "main:calm"]);
    git(&world, &["checkout", "--quiet", "main"]);
    git(&world, &["fetch", "--quiet", "origin"]);
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    for command in
        ["git pull origin main", "git pull --rebase origin main", "git fetch && git merge origin/main"]
    {
        with_redirections(command).iter().for_each(|it| drop(world.is_refused("claude", &told(&world, it))));
    }
    for command in ["git pull origin calm", "git pull --ff-only origin calm", "git fetch origin main"] {
        with_redirections(command).iter().for_each(|it| world.goes_on("claude", &told(&world, it)));
    }
}

#[test]
fn what_a_search_has_written_elsewhere_is_looked_for_there() {
    let world = world("claude");
    world.write("docs/auth.ts", "a\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    for command in [
        "find docs -name auth.ts -exec cp {} src/ \\;",
        "find docs -name '*.ts' -exec cp -t src {} +",
        "find docs -type f -exec mv {} src \\;",
        "find docs -name auth.ts -exec cp {} src/auth.ts \\;",
        "find src -name auth.ts -exec mv {} docs/ \\;",
        "find src -name '*.ts' -exec cp {} {}.bak \\; -exec sed -i s/a/b/ {} \\;",
        "ls docs/* | xargs -I{} cp {} src/",
        "ls docs/* | xargs -I % install % src",
        "git ls-files docs | xargs cp -t src",
        "fd auth docs -x cp {} src/",
        "parallel cp {} src ::: docs/auth.ts",
        "git ls-files | xargs python3 -c \"import sys; [open(f, 'w') for f in sys.argv[1:]]\"",
        "ls docs | xargs -n 1 python3 -c \"open('src/auth.ts', 'w')\"",
        "ls docs | xargs -I{} python -c \"open('src/{}', 'w').write('')\"",
    ] {
        with_redirections(command).iter().for_each(|it| drop(world.is_refused("claude", &told(&world, it))));
    }
    for command in [
        "find src -name auth.ts -exec cp {} docs/ \\;",
        "find src -name '*.ts' -exec cp -t docs {} +",
        "find docs -name '*.md' -exec cp {} src/ \\;",
        "git ls-files src | xargs -I{} cp {} docs/",
        "git ls-files src | xargs cp -t docs",
        "fd auth src -x cp {} docs/",
        "git ls-files | xargs python3 -c \"import sys; print(len(sys.argv))\"",
    ] {
        with_redirections(command).iter().for_each(|it| world.goes_on("claude", &told(&world, it)));
    }
}

#[test]
fn scripts_of_the_repository_are_looked_into() {
    let world = world("claude");
    world.write("docs/auth.ts", "a\n");
    world.write("scripts/wipe.sh", "#!/bin/sh\nset -e\nrm src/auth.ts\n");
    world.write("scripts/given", "rm \"$1\"\n");
    world.write("scripts/deep.sh", "cd src\n. ../scripts/inner\n");
    world.write("scripts/inner", "echo x > auth.ts\n");
    world.write("scripts/calm.sh", "#!/bin/bash\ngrep -c x src/auth.ts\nrm -f docs/auth.ts\n");
    world.write("scripts/wipe.py", "#!/usr/bin/env python3\nopen('src/auth.ts', 'w')\n");
    world.write("scripts/endless.sh", "#!/bin/sh\nsh scripts/endless.sh; sh scripts/endless.sh\n");
    world.write("node_modules/x/wipe.sh", "#!/bin/sh\nrm src/auth.ts\n");
    std::process::Command::new("chmod")
        .args(["+x", "scripts/wipe.sh"])
        .current_dir(world.repo())
        .status()
        .unwrap();
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    for command in [
        "bash < scripts/wipe.sh",
        "sh scripts/wipe.sh",
        "sh -e scripts/wipe.sh now",
        "bash -o pipefail scripts/wipe.sh",
        "./scripts/wipe.sh",
        "timeout 60 scripts/wipe.sh",
        "source scripts/wipe.sh",
        ". ./scripts/wipe.sh",
        "cd scripts && bash ../scripts/wipe.sh; cd ..; sh scripts/wipe.sh",
        "sh scripts/given src/auth.ts",
        "sh -s src/auth.ts < scripts/given",
        "bash scripts/deep.sh",
    ] {
        with_redirections(command).iter().for_each(|it| drop(world.is_refused("claude", &told(&world, it))));
    }
    for command in [
        "bash < scripts/calm.sh",
        "sh scripts/calm.sh",
        "sh scripts/given docs/auth.ts",
        "sh scripts/missing.sh",
        // Of one that takes too much, what was found until then counts.
        "sh scripts/endless.sh",
        // Named in the document as what is not seen.
        "python3 scripts/wipe.py",
        "./scripts/wipe.py",
        "sh node_modules/x/wipe.sh",
    ] {
        with_redirections(command).iter().for_each(|it| world.goes_on("claude", &told(&world, it)));
    }
}

#[test]
fn an_allowed_edit_near_another_agents_intent_says_so() {
    let world = world("claude");
    let _daemon = world.start();
    world.done(
        "codex-1",
        &["intent", "declare", "new \"tokens\"", "--file", "src/auth.ts", "--symbol", "login"],
    );
    let said = |told: &Value| {
        let output = world.call("claude", "PreToolUse", told);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        match output.stdout.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice::<Value>(&output.stdout).unwrap()["hookSpecificOutput"].clone(),
        }
    };
    let near = said(&recorded(&world, "claude/edit"));
    let context = near["additionalContext"].as_str().unwrap();
    assert!(
        context.contains("codex-1") && context.contains("src/auth.ts:login") && context.contains("tokens"),
        "{near}"
    );
    assert!(near["permissionDecision"].is_null(), "it says no yes: {near}");
    assert_eq!(said(&recorded(&world, "claude/edit_beside")), Value::Null);
    // Its own intents are no news.
    let mut own = recorded(&world, "claude/edit");
    own["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c00a");
    world.done("claude-2b64a1f3c00a", &["intent", "declare", "mine", "--file", "docs/a.md"]);
    assert!(said(&own)["additionalContext"].as_str().is_some_and(|it| !it.contains("mine")));
}

#[test]
fn guard_answers_for_the_symbol_that_it_is_asked_about() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("ada", &["lock", "src/auth.ts:login"]);
    world.done("ada", &["intent", "declare", "new tokens", "--file", "src/auth.ts", "--symbol", "logout"]);
    let guard = |asked: &str| {
        let done = world.command(&["guard", asked, "--agent", "bob", "--json"]).output().unwrap();
        (done.status.code().unwrap(), serde_json::from_slice::<Value>(&done.stdout).unwrap())
    };
    assert_eq!(guard("src/auth.ts").0, 5);
    let (code, said) = guard("src/auth.ts:login");
    assert_eq!((code, &said["blocked"][0]["lock"]["holder"]), (5, &json!("ada")), "{said}");
    let (code, said) = guard("src/auth.ts:logout");
    assert_eq!((code, &said["near"][0]["agent"]), (0, &json!("ada")), "{said}");
    assert_eq!(guard("src/auth.ts:nobody").0, 0);
    // A file with a colon in its name is a file.
    world.write("src/a:b", "x");
    assert_eq!(guard("src/a:b").0, 0);
}

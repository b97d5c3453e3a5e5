//! Programs that lie in the workspace and run outside of every jail, because a setting names them: no worker
//! changes them, and none brings one that is missing.

use std::path::Path;

use crate::support::World;
use crate::support::repositories::{committed, ended, findings, well, write};
use crate::support::ways_outside::{
    By, SH, Way, editor_ways, file_ways, folder_ways, git_ways, notify_ways, put, server_ways, spelt_ways,
};

/// Returns a worker's attempts to change a file.
fn attack(path: &str) -> String {
    let folder = Path::new(path).parent().unwrap().display().to_string();
    let folder = if folder.is_empty() { ".".into() } else { folder };
    format!(
        "mkdir -p '{folder}'; echo bad > '{path}'; echo bad > n; mv -f n '{path}'; rm -f n; \
         [ '{folder}' = . ] || {{ mv '{folder}' gone && mkdir -p '{folder}' && echo bad > '{path}'; }}; true"
    )
}

fn failures(ways: Vec<Way>) -> Vec<String> {
    let mut failed = Vec::new();
    for way in ways {
        let world = World::new();
        let repo = committed(&world);
        for (path, text) in way.there {
            put(&repo, path, text);
        }
        let what = match way.by {
            By::Git(key, value) => {
                well(&repo, &["config", key, value]);
                format!("{key} = {value}")
            }
            By::Notify(line) => {
                let env = "[hooks.notify.env]\nGIVEN = \"tools\"\nPYTHONPATH = \"given\"\n";
                world.configure(&format!("[hooks.notify]\ncommand = {line:?}\n{env}"));
                format!("notify {line}")
            }
            By::File(path, text) => {
                put(&repo, path, text);
                path.to_owned()
            }
        };
        put(&repo, "tools/free.txt", "");
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        for path in way.held {
            let before = std::fs::read(repo.join(path)).ok();
            let result = ended(&client, "shell", &attack(path));
            let after = std::fs::read(repo.join(path)).ok();
            let told = findings(&result).iter().any(|it| it.contains(" protected ") && it.contains(path));
            if before != after {
                failed.push(format!(
                    "{what}: {path} {}{}",
                    if told { "(told)" } else { "" },
                    result["metadata"]["failure"]["explanation"]
                ));
                if let Some(before) = before {
                    let _ = std::fs::create_dir_all(repo.join(path).parent().unwrap());
                    std::fs::write(repo.join(path), before).unwrap();
                }
                let _ = std::fs::remove_dir_all(repo.join("gone"));
            } else if result["status"] == "failed" && !result["metadata"]["failure"]["explanation"].is_null()
            {
                failed
                    .push(format!("{what}: {path} REFUSED {}", result["metadata"]["failure"]["explanation"]));
            }
        }
        let result = ended(&client, "shell", "mkdir -p src && echo x >> src/a.rs && echo x > src/new.rs");
        if result["status"] != "completed" {
            failed.push(format!("{what}: sources cannot be written {result}"));
        }
        daemon.stop();
    }
    failed
}

#[test]
fn what_a_setting_of_gits_runs_is_changed_and_brought_by_no_worker() {
    let failed = failures(git_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_a_notification_hook_runs_is_changed_and_brought_by_no_worker() {
    let failed = failures(notify_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_settings_of_hosts_run_is_changed_by_no_worker() {
    let failed = failures(file_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_servers_of_hosts_are_started_by_is_changed_by_no_worker() {
    let failed = failures(server_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn the_scripts_of_a_folder_that_a_line_runs_by_a_pattern_are_changed_and_brought_by_no_worker() {
    let failed = failures(folder_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_script_that_is_named_by_a_default_value_braces_or_code_is_changed_by_no_worker() {
    let failed = failures(spelt_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_editors_and_hosts_start_in_a_folder_of_its_own_is_changed_by_no_worker() {
    let failed = failures(editor_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Folders that cannot be held: the one that the worker works in, and one that is not there.
#[test]
fn what_a_line_runs_by_a_pattern_where_its_folder_cannot_be_held_is_told() {
    let world = World::new();
    let repo = committed(&world);
    let hook = "#!/bin/sh\nfor f in *.sh; do sh \"$f\"; done\nfor f in later/*; do . \"./$f\"; done\n\
                find . -name 'x-*.py' -exec python3 {} \\;\nsh \"./hook-$NAME\"\n";
    put(&repo, ".git/hooks/pre-commit", hook);
    put(&repo, ".envrc", "source_env_if_exists .envrc.private\n");
    put(&repo, "there.sh", "");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for f in there.sh new.sh src/new.sh later/any src/x-1.py hook-a .envrc.private; do \
                mkdir -p $(dirname $f); echo x >> $f; done";
    let result = ended(&client, "shell", goal);
    assert_eq!(result["status"], "completed", "{result}");
    let mut found = findings(&result);
    found.sort_unstable();
    let expected = [
        "changed protected there.sh",
        "new protected .envrc.private",
        "new protected hook-a",
        "new protected later/any",
        "new protected new.sh",
        "new protected src/x-1.py",
    ];
    assert_eq!(found, expected, "{found:?}");
}

/// Lines and scripts that are longer than what used to be looked at of them.
#[test]
fn what_a_long_line_names_is_held_and_no_line_is_dropped_silently() {
    let world = World::new();
    let repo = committed(&world);
    put(&repo, "tools/last.sh", SH);
    put(&repo, "tools/late.sh", SH);
    (0..100).for_each(|number| write(repo.join(format!("folders/f{number}/x")), ""));
    let folders: String = (0..100).map(|number| format!("ls folders/f{number}; ")).collect();
    put(&repo, "folders/f99/there", SH);
    let words = "echo a b c d e f g h\n".repeat(1_000);
    write(repo.join(".husky/pre-commit"), &format!("{words}./tools/last.sh\n"));
    write(repo.join(".husky/pre-push"), &format!("{folders}\ncd folders/f99; ./there\n"));
    // Not everybody's comments are UTF-8.
    std::fs::write(repo.join("tools/latin"), b"# caf\xe9\n./tools/latin.sh\n").unwrap();
    put(&repo, "tools/latin.sh", SH);
    write(repo.join(".husky/pre-rebase"), "sh tools/latin\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    ended(
        &client,
        "shell",
        "echo bad > tools/last.sh; echo bad > tools/latin.sh; echo bad > folders/f99/there; true",
    );
    assert_eq!(std::fs::read_to_string(repo.join("tools/last.sh")).unwrap(), SH);
    assert_eq!(std::fs::read_to_string(repo.join("tools/latin.sh")).unwrap(), SH);
    assert_eq!(std::fs::read_to_string(repo.join("folders/f99/there")).unwrap(), SH);
    // What is longer still keeps workers out, and is named.
    let more = [
        ("words", "a ".repeat(70_000)),
        ("folders", (0..300).map(|number| format!("ls more/m{number}; ")).collect()),
        ("a script", format!("{}\n./tools/late.sh\n", "# a comment\n".repeat(30_000))),
        ("shells in shells", (0..10).fold("tools/late.sh".to_owned(), |line, _| format!("$({line})"))),
    ];
    (0..300).for_each(|number| write(repo.join(format!("more/m{number}/x")), ""));
    // A large file of settings is read.
    let filler = "\"x\": \"y\",\n".repeat(40_000);
    write(repo.join("sub/.mcp.json"), &format!("{{{filler}\"command\": \"./tools/in.sh\"}}"));
    put(&repo, "tools/in.sh", SH);
    ended(&client, "shell", "echo bad > tools/in.sh; true");
    assert_eq!(std::fs::read_to_string(repo.join("tools/in.sh")).unwrap(), SH);
    write(repo.join("sub/.mcp.json"), &filler.repeat(6));
    let result = ended(&client, "shell", "touch ran; true");
    assert!(result["artifacts"]["summary"].to_string().contains("sub/.mcp.json"), "{result}");
    std::fs::remove_file(repo.join("sub/.mcp.json")).unwrap();
    for (what, text) in more {
        write(repo.join("tools/long.sh"), &text);
        write(repo.join(".husky/pre-push"), "sh tools/long.sh\n");
        let result = ended(&client, "shell", "echo bad > tools/late.sh; true");
        assert_eq!(std::fs::read_to_string(repo.join("tools/late.sh")).unwrap(), SH, "{what}");
        assert!(result["artifacts"]["summary"].to_string().contains("tools/long.sh"), "{what}: {result}");
    }
}

#[test]
fn settings_and_repositories_around_a_tasks_folder_hold_what_they_name_in_it() {
    let world = World::new();
    let repo = committed(&world);
    for path in ["part/server.sh", "part/hook.sh", "part/other.sh"] {
        put(&repo, path, SH);
    }
    // Settings may be links.
    put(&repo, "conf/mcp", "{\"mcpServers\":{\"a\":{\"command\":\"./part/server.sh\"}}}");
    std::os::unix::fs::symlink("conf/mcp", repo.join(".mcp.json")).unwrap();
    put(
        &repo,
        "beside/.claude/settings.json",
        "{\"hooks\":[{\"command\":\"$CLAUDE_PROJECT_DIR/part/hook.sh\"}]}",
    );
    well(&repo, &["init", "-q", "beside/nested"]);
    well(&repo.join("beside/nested"), &["config", "core.fsmonitor", "../../part/other.sh"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for f in server hook other; do echo bad > $f.sh; done; echo free > free; true";
    let (task, reply) = client.delegate("shell", goal, serde_json::json!({ "working_dir": "part" }));
    reply.ack();
    let result = client.result_of(&task);
    assert!(repo.join("part/free").exists(), "{result}");
    for name in ["server", "hook", "other"] {
        let text = std::fs::read_to_string(repo.join(format!("part/{name}.sh"))).unwrap();
        assert_eq!(text, SH, "{name}: {result}");
    }
}

#[test]
fn a_program_that_the_daemon_runs_is_never_one_of_the_workspaces() {
    let world = World::new();
    let repo = committed(&world);
    put(&repo, "bin/o", "");
    for path in ["bin:", "./bin:", "REPO/bin:"] {
        let mut command = world.command(crate::support::UP);
        let own =
            command.get_envs().find(|it| it.0 == "PATH").unwrap().1.unwrap().to_str().unwrap().to_owned();
        command.env("PATH", path.replace("REPO", repo.to_str().unwrap()) + &own);
        let daemon = world.start_as(command);
        let client = world.client(&daemon, "orch:a");
        let goal = "mkdir -p bin; printf '#!/bin/sh\\ntouch \"%s/ran\"; exec /usr/bin/git \"$@\"\\n' \"$PWD\" > bin/git; chmod +x bin/git";
        ended(&client, "shell", goal);
        let result = ended(&client, "shell", "true");
        assert!(!repo.join("ran").exists(), "{path} {result}");
        daemon.stop();
    }
}

#[test]
fn what_a_repository_says_of_its_work_tree_and_its_place_is_followed() {
    let world = World::new();
    let repo = committed(&world);
    let mut failed = Vec::new();
    // A repository whose work tree lies elsewhere in the workspace: its attributes and its programs are there.
    well(&repo, &["init", "-q", "deep/tool"]);
    let tool = repo.join("deep/tool");
    put(&repo, "deep/tree/x/run.sh", SH);
    put(&repo, "deep/inc.cfg", "");
    well(&tool, &["config", "core.worktree", "../../tree"]);
    well(&tool, &["config", "core.fsmonitor", "x/run.sh"]);
    well(&tool, &["config", "include.path", "../../inc.cfg"]);
    well(&tool, &["config", "includeIf.gitdir:/nowhere/.path", "../../missing.cfg"]);
    // A file that leads to a repository under another name, outside of any `.git`.
    std::fs::create_dir_all(repo.join("stores")).unwrap();
    well(&repo, &["init", "-q", "--separate-git-dir", "stores/one", "linked"]);
    put(&repo, "linked/run.sh", SH);
    well(&repo.join("linked"), &["config", "core.fsmonitor", "./run.sh"]);
    put(&repo, "conf.inc", "[core]\n\tfsmonitor = ./more.sh\n[include]\n\tpath = second.inc\n");
    well(&repo, &["config", "include.path", "../conf.inc"]);
    put(&repo, "more.sh", SH);
    // One that is included on another branch, and what that one includes and runs.
    put(&repo, "branch.inc", "[core]\n\tsshCommand = tools/ssh.sh\n[include]\n\tpath = third.inc\n");
    put(&repo, "tools/ssh.sh", SH);
    well(&repo, &["config", "includeIf.onbranch:elsewhere.path", "../branch.inc"]);
    // A bare one under its own name.
    well(&repo, &["init", "-q", "--bare", "stores/bare"]);
    well(&repo.join("stores/bare"), &["config", "include.path", "../bare.inc"]);
    put(&repo, "stores/bare.inc", "");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for path in [
        "deep/tree/x/run.sh",
        "deep/inc.cfg",
        "deep/missing.cfg",
        "linked/run.sh",
        "stores/one/config",
        "stores/one/hooks/pre-commit",
        "conf.inc",
        "second.inc",
        "more.sh",
        "branch.inc",
        "third.inc",
        "tools/ssh.sh",
        "stores/bare.inc",
        "stores/bare/config",
        "deep/tool/.git/config",
        "linked/.git",
    ] {
        let before = std::fs::read(repo.join(path)).ok();
        let result = ended(&client, "shell", &attack(path));
        if std::fs::read(repo.join(path)).ok() != before {
            failed.push(format!("{path}: {}", result["metadata"]));
            if let Some(before) = before {
                let _ = std::fs::create_dir_all(repo.join(path).parent().unwrap());
                std::fs::write(repo.join(path), before).unwrap();
            }
            let _ = std::fs::remove_dir_all(repo.join("gone"));
        } else if result["status"] != "completed" && !path.contains("config") {
            // A copy of a repository is one more, which ends the run.
            failed.push(format!("{path}: refused: {}", result["metadata"]));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The report names a file that cannot be held, since the folder in which an interpreter is started names it.
#[test]
fn what_an_interpreter_would_load_first_is_told_where_it_cannot_be_held() {
    let world = World::new();
    let repo = committed(&world);
    well(&repo, &["config", "diff.f.textconv", "python3 -m nbstripout"]);
    put(&repo, "tools/server.py", "import json\n");
    put(&repo, "there.py", "");
    put(
        &repo,
        ".mcp.json",
        "{\"mcpServers\":{\"a\":{\"command\":\"python3\",\"args\":[\"tools/server.py\"]}}}",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo x > json.py; mkdir re && echo x > re/__init__.py; echo x > tools/json.py; echo x >> there.py; \
                mkdir src/x && echo x > src/x/json.py";
    let found = findings(&ended(&client, "shell", goal));
    let expected = ["new protected json.py", "new protected re/__init__.py", "new protected tools/json.py"];
    assert_eq!(found, expected, "{found:?}");
}

#[test]
fn a_usual_repository_stays_one_that_workers_edit() {
    let world = World::new();
    let repo = committed(&world);
    let files = [
        "package.json",
        "Makefile",
        "pyproject.toml",
        "requirements.txt",
        "tsconfig.json",
        ".git-blame-ignore-revs",
        ".lintignore",
        "src/pkg/__init__.py",
        "src/generated/x.ts",
        "mypkg/other.py",
    ];
    for file in files {
        put(&repo, file, "one\n");
    }
    put(&repo, ".lintignore", "src/generated/x.ts\n");
    put(&repo, "mypkg/lint.py", "");
    for (path, text) in [
        (
            ".mcp.json",
            "{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"@x/server\",\"--project\",\"tsconfig.json\"]},\
             \"b\":{\"command\":\"npm\",\"args\":[\"run\",\"mcp\"]}}}",
        ),
        (
            ".pre-commit-config.yaml",
            "repos:\n- repo: x\n  hooks:\n  - id: mypy\n    args: [--config-file, pyproject.toml]\n  - id: y\n    \
             entry: make lint\n    args: [\"-r\", \"requirements.txt\"]\n  - id: z\n    entry: python -m mypkg.lint\n",
        ),
        (".envrc", "export PYTHONPATH=$PWD/src\nexport NODE_PATH=src\n"),
        (
            "lefthook.yml",
            "pre-commit:\n  commands:\n    a:\n      run: npm run lint\n    b:\n      run: eslint --ignore-path .lintignore\n",
        ),
    ] {
        put(&repo, path, text);
    }
    let hook = "#!/bin/sh\nfor f in src/*.ts; do npx prettier --check \"$f\"; done\ncase \"$1\" in\n  src/*|lib/*) make ;;\n  \
                *) true ;;\nesac\nfind src -name '*.py' | xargs grep -l x\n\
                all=(src/*.ts)\nnpx eslint \"${all[@]}\" | grep -qE '^(src/.*|lib/.*) x'\n[[ $1 =~ ^(src/.*|lib/.*)$ ]]\nfor d in src lib; do ls \"$d\"; done\n";
    put(&repo, ".git/hooks/pre-commit", hook);
    let global = "[alias]\n\tb = !make build\n\tt = !npm test\n\tcount = !find ./lib -name '*.c' | xargs wc -l\n\
                  \tpat = format-patch -o ./patches\n\ttool = !./missing-tool\n[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n";
    write(world.home().join(".gitconfig"), global);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let edits: Vec<String> = files.iter().map(|it| format!("echo two >> {it}")).collect();
    let goal =
        format!("set -e; {}; mkdir lib patches; echo x > lib/a.c; echo x > src/new.py", edits.join("; "));
    let result = ended(&client, "shell", &goal);
    assert_eq!(result["status"], "completed", "{result}");
    let found = findings(&result);
    for told in ["pyproject.toml", "tsconfig.json", "package.json", "src/new.py"] {
        assert!(found.iter().any(|it| it.ends_with(told)), "{told}: {found:?}");
    }
    ended(&client, "shell", "echo x >> mypkg/lint.py; echo x > missing-tool; true");
    assert_eq!(std::fs::read_to_string(repo.join("mypkg/lint.py")).unwrap(), "");
    assert!(!repo.join("missing-tool").is_file());
}

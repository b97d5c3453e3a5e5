//! The ways by which a program that lies in the workspace runs outside of every jail, because a setting names
//! it.

use std::path::Path;

use crate::support::repositories::write;

/// One way of naming programs.
pub(crate) struct Way {
    /// Git's setting with its value, or a line for `[hooks.notify]`, or a file with its text.
    pub(crate) by: By,
    /// The files that are there.
    pub(crate) there: &'static [(&'static str, &'static str)],
    /// The files that no worker may change or make.
    pub(crate) held: &'static [&'static str],
}

pub(crate) enum By {
    Git(&'static str, &'static str),
    Notify(&'static str),
    File(&'static str, &'static str),
}

pub(crate) const SH: &str = "#!/bin/sh\ntrue\n";

pub(crate) fn git_ways() -> Vec<Way> {
    let way = |key, value, there, held| Way { by: By::Git(key, value), there, held };
    vec![
        way("core.fsmonitor", "./tools/m.sh", &[("tools/m.sh", SH)], &["tools/m.sh"]),
        way("core.fsmonitor", "\"my tools/m.sh\"", &[("my tools/m.sh", SH)], &["my tools/m.sh"]),
        way("core.fsmonitor", "my\\ tools/m.sh", &[("my tools/m.sh", SH)], &["my tools/m.sh"]),
        way(
            "filter.f.clean",
            "python3 tools/f.py %f",
            &[("tools/f.py", "import helper\n"), ("tools/helper.py", "")],
            &["tools/f.py", "tools/helper.py", "tools/json.py"],
        ),
        way("filter.f.clean", "python3 tools/missing.py %f", &[("tools/o", "")], &["tools/missing.py"]),
        way(
            "filter.f.process",
            "node tools/f.js",
            &[("tools/f.js", "require('./g')\n"), ("tools/g.js", "")],
            &["tools/f.js", "tools/g.js"],
        ),
        way("filter.f.smudge", "sh -c 'cd tools && ./y'", &[("tools/y", SH)], &["tools/y"]),
        way("filter.f.smudge", "sh -c 'cd tools && ./missing'", &[("tools/y", SH)], &["tools/missing"]),
        way(
            "diff.f.textconv",
            "python3 -m pkg",
            &[("pkg/__main__.py", ""), ("pkg/__init__.py", "")],
            &["pkg/__main__.py", "pkg/__init__.py", "pkg/new.py"],
        ),
        way(
            "diff.f.textconv",
            "python3 -m pkg.sub",
            &[("pkg/sub.py", ""), ("pkg/__init__.py", "")],
            &["pkg/sub.py", "pkg/__init__.py"],
        ),
        way(
            "diff.f.command",
            "make -C build show",
            &[("build/Makefile", "show:\n\ttrue\n")],
            &["build/Makefile"],
        ),
        way("diff.f.command", "make show", &[("Makefile", "show:\n\ttrue\n")], &["Makefile"]),
        way("diff.f.command", "D=tools; $D/f", &[("tools/f", SH)], &["tools/f"]),
        way("diff.f.command", "$NOT_KNOWN/f.sh", &[("tools/f.sh", SH)], &["tools/f.sh"]),
        way(
            "merge.f.driver",
            "./tools/m.sh %O %A %B",
            &[
                ("tools/m.sh", "#!/bin/sh\n. tools/lib.sh\n. \"$(dirname \"$0\")/lib2.sh\"\n"),
                ("tools/lib.sh", ""),
                ("tools/lib2.sh", ""),
            ],
            &["tools/m.sh", "tools/lib.sh", "tools/lib2.sh"],
        ),
        way("core.editor", "tools/ed", &[("tools/ed", SH)], &["tools/ed"]),
        way("gpg.program", "tools/gpg", &[("tools/gpg", SH)], &["tools/gpg"]),
        way("gpg.ssh.defaultKeyCommand", "tools/key", &[("tools/key", SH)], &["tools/key"]),
        way("credential.helper", "!tools/cred", &[("tools/cred", SH)], &["tools/cred"]),
        way("credential.helper", "!sh tools/missing-cred", &[("tools/o", SH)], &["tools/missing-cred"]),
        way("core.sshCommand", "ssh -F tools/ssh_config", &[("tools/ssh_config", "")], &["tools/ssh_config"]),
        way(
            "core.hooksPath",
            "tools/hooks",
            &[
                ("tools/hooks/pre-commit", "#!/bin/sh\n./tools/lint.sh\npython3 tools2/x.py\n"),
                ("tools/lint.sh", SH),
                ("tools2/x.py", ""),
            ],
            &["tools/hooks/pre-commit", "tools/lint.sh", "tools2/x.py"],
        ),
        way("trailer.x.cmd", "tools/t", &[("tools/t", SH)], &["tools/t"]),
        way("uploadpack.packObjectsHook", "tools/p", &[("tools/p", SH)], &["tools/p"]),
        way("sequence.editor", "tools/s", &[("tools/s", SH)], &["tools/s"]),
        way("alias.x", "!cd tools && ./x", &[("tools/x", SH)], &["tools/x"]),
        way("browser.b.cmd", "tools/b", &[("tools/b", SH)], &["tools/b"]),
        way("difftool.d.cmd", "tools/d", &[("tools/d", SH)], &["tools/d"]),
        way("mergetool.d.path", "tools/d", &[("tools/d", SH)], &["tools/d"]),
        way("core.askPass", "tools/b", &[("tools/b", SH)], &["tools/b"]),
        way("core.attributesFile", "tools/attrs", &[("tools/attrs", "")], &["tools/attrs"]),
        way("core.excludesFile", "tools/ignore", &[("tools/ignore", "")], &["tools/ignore"]),
        way(
            "init.templateDir",
            "tools/template",
            &[("tools/template/hooks/x", SH)],
            &["tools/template/hooks/x", "tools/template/hooks/new"],
        ),
        way("hook.lint.command", "tools/h", &[("tools/h", SH)], &["tools/h"]),
        way("filter.f.clean", "PATH=./tools:$PATH f", &[("tools/f", SH)], &["tools/f", "tools/cat"]),
        way(
            "filter.f.clean",
            "env PYTHONPATH=lib python3 -m json.tool",
            &[("lib/x.py", "")],
            &["lib/x.py", "lib/json.py"],
        ),
        way(
            "filter.f.clean",
            "perl -Ilib tools/f.pl",
            &[("tools/f.pl", ""), ("lib/x.pm", "")],
            &["tools/f.pl", "lib/x.pm"],
        ),
        way(
            "filter.f.clean",
            "tools/run --config=tools/c.ini",
            &[("tools/run", SH), ("tools/c.ini", "")],
            &["tools/run", "tools/c.ini"],
        ),
    ]
}

pub(crate) fn notify_ways() -> Vec<Way> {
    let way = |line, there, held| Way { by: By::Notify(line), there, held };
    vec![
        way("$GIVEN/n", &[("tools/n", SH), ("given/x.py", "")], &["tools/n", "given/x.py", "given/json.py"]),
        way(
            "tools/n.sh",
            &[
                ("tools/n.sh", "#!/bin/sh\n. ./lib/x.sh\nsource lib/y.sh\nbash lib/z.sh\n"),
                ("lib/x.sh", ". lib/deep.sh\n"),
                ("lib/y.sh", ""),
                ("lib/z.sh", ""),
                ("lib/deep.sh", ""),
            ],
            &["tools/n.sh", "lib/x.sh", "lib/y.sh", "lib/z.sh", "lib/deep.sh"],
        ),
        way("'my tools/n.sh' x", &[("my tools/n.sh", SH)], &["my tools/n.sh"]),
        way("sh tools/missing.sh", &[("tools/o", "")], &["tools/missing.sh"]),
        way(
            "python3 tools/n.py",
            &[("tools/n.py", ""), ("tools/o.py", "")],
            &["tools/n.py", "tools/o.py", "tools/json.py"],
        ),
        way("export D=$PWD/tools && sh -c \"$D/n\"", &[("tools/n", SH)], &["tools/n"]),
        way("if true; then ./tools/n; fi", &[("tools/n", SH)], &["tools/n"]),
        way("just notify", &[("justfile", "notify:\n\ttrue\n")], &["justfile"]),
        way("npm run notify", &[("package.json", "{}")], &["package.json"]),
        way(
            "./gradlew notify",
            &[("gradlew", SH), ("gradle/wrapper/gradle-wrapper.properties", "")],
            &["gradlew"],
        ),
    ]
}

pub(crate) fn file_ways() -> Vec<Way> {
    let way = |file, text, there, held| Way { by: By::File(file, text), there, held };
    vec![
        way(
            ".mcp.json",
            "{\"mcpServers\":{\"a\":{\"command\":\"python3\",\"args\":[\"tools/server.py\"]},\"b\":{\"command\":\"./tools/b.sh\"}}}",
            &[("tools/server.py", ""), ("tools/b.sh", SH)],
            &["tools/server.py", "tools/b.sh"],
        ),
        way(
            ".claude/settings.json",
            "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"\\\"$CLAUDE_PROJECT_DIR\\\"/tools/hook.sh\"}]}]}}",
            &[("tools/hook.sh", SH)],
            &["tools/hook.sh"],
        ),
        way(
            ".codex/config.toml",
            "notify = [\"python3\", \"tools/n.py\"]\n[mcp_servers.a]\ncommand = \"tools/a\"\nargs = [\"tools/b\"]\n",
            &[("tools/a", SH), ("tools/b", SH), ("tools/n.py", "")],
            &["tools/a", "tools/b", "tools/n.py"],
        ),
        way(
            ".pre-commit-config.yaml",
            "repos:\n- repo: local\n  hooks:\n  - id: x\n    entry: ./tools/lint.sh --fix\n    language: system\n",
            &[("tools/lint.sh", SH)],
            &["tools/lint.sh"],
        ),
        way(
            "lefthook.yml",
            "pre-commit:\n  commands:\n    a:\n      run: sh tools/lint.sh\n",
            &[("tools/lint.sh", SH)],
            &["tools/lint.sh"],
        ),
        way(
            ".envrc",
            "source tools/env.sh\nPATH_add tools/bin\n",
            &[("tools/env.sh", ""), ("tools/bin/x", SH)],
            &["tools/env.sh", "tools/bin/x", "tools/bin/git"],
        ),
        way(
            ".git/hooks/post-checkout",
            "#!/bin/sh\nsh tools/after.sh\n",
            &[("tools/after.sh", "")],
            &["tools/after.sh"],
        ),
        way(
            ".vscode/tasks.json",
            "{\"tasks\":[{\"label\":\"x\",\"command\":\"${workspaceFolder}/tools/t.sh\",\"runOptions\":{\"runOn\":\"folderOpen\"}}]}",
            &[("tools/t.sh", SH)],
            &["tools/t.sh"],
        ),
        way(".gdbinit", "source tools/gdb.py\n", &[("tools/gdb.py", "")], &["tools/gdb.py"]),
        way(".husky/pre-commit", "tools/check\n", &[("tools/check", SH)], &["tools/check"]),
        way(".husky/pre-push", "timeout 60 ./tools/t.sh\n", &[("tools/t.sh", SH)], &["tools/t.sh"]),
        way(
            ".husky/commit-msg",
            "uv run tools/u.py\nnpx tsx tools/x.ts\nbash -o pipefail tools/p\npython3 -X dev tools/d.py\n\
             poetry run python tools/o.py\nnice -n 10 sh tools/n\n",
            &[
                ("tools/u.py", ""),
                ("tools/x.ts", ""),
                ("tools/p", ""),
                ("tools/d.py", ""),
                ("tools/o.py", ""),
                ("tools/n", ""),
            ],
            &["tools/u.py", "tools/x.ts", "tools/p", "tools/d.py", "tools/o.py", "tools/n"],
        ),
        way(
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"a\":{\"command\":\"uv\",\"args\":[\"run\",\"tools/u.py\"]}}}",
            &[("tools/u.py", "")],
            &["tools/u.py"],
        ),
        way(".husky/post-merge", "bash -e tools/lint\n", &[("tools/lint", "")], &["tools/lint"]),
        way(".husky/post-rewrite", "python3 -E tools/x.py\n", &[("tools/x.py", "")], &["tools/x.py"]),
        way(
            ".envrc",
            "source_env_if_exists tools/e.sh\n. \"$(expand_path tools/f.sh)\"\ndotenv tools/g.env\n\
             dotenv_if_exists tools/h.env\n",
            &[("tools/e.sh", ""), ("tools/f.sh", ""), ("tools/g.env", ""), ("tools/h.env", "")],
            &["tools/e.sh", "tools/f.sh", "tools/g.env", "tools/h.env"],
        ),
        way(".husky/post-checkout", "for f in d/*; do\n  sh \"$f\"\ndone\n", FOLDER, IN_FOLDER),
        way(
            ".lintstagedrc.json",
            "{\"*.c\": \"tools/c.sh\", \"*.h\": [\"./tools/h\"]}",
            &[("tools/c.sh", SH), ("tools/h", SH)],
            &["tools/c.sh", "tools/h"],
        ),
    ]
}

/// Settings of editors and hosts that start programs in a folder that is named beside them, or which name
/// programs in words of their own.
pub(crate) fn editor_ways() -> Vec<Way> {
    let way = |file, text, there, held| Way { by: By::File(file, text), there, held };
    let there: &[_] = &[("t5/server.py", ""), ("t5/run.sh", SH)];
    vec![
        way(
            ".mcp.json",
            "{\"mcpServers\":{\"a\":{\"command\":\"python3\",\"args\":[\"server.py\"],\"cwd\":\"t5\"}}}",
            there,
            &["t5/server.py"],
        ),
        way(
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"a\":{\"cwd\":\"./t5\",\"command\":\"python3\",\"args\":[\"server.py\"]}}}",
            there,
            &["t5/server.py"],
        ),
        way(
            ".gemini/settings.json",
            "{\"mcpServers\":{\"a\":{\"command\":\"./run.sh\",\"cwd\":\"t5\"}}}",
            there,
            &["t5/run.sh"],
        ),
        way(
            ".codex/config.toml",
            "[mcp_servers.a]\ncommand = \"python3\"\nargs = [\"server.py\"]\ncwd = \"t5\"\n",
            there,
            &["t5/server.py"],
        ),
        way(
            ".vscode/tasks.json",
            "{\"tasks\":[{\"label\":\"x\",\"command\":\"./run.sh\",\"options\":{\"cwd\":\"${workspaceFolder}/t5\"},\
             \"runOptions\":{\"runOn\":\"folderOpen\"}}]}",
            there,
            &["t5/run.sh"],
        ),
        way(
            ".vscode/mcp.json",
            "{\"servers\":{\"a\":{\"command\":\"python3\",\"args\":[\"server.py\"],\"cwd\":\"${workspaceFolder}/t5\"},\
             \"b\":{\"command\":\"tools/b.sh\"}}}",
            &[("t5/server.py", ""), ("tools/b.sh", SH)],
            &["t5/server.py", "tools/b.sh"],
        ),
        way(
            ".zed/tasks.json",
            "[{\"label\":\"x\",\"command\":\"./run.sh\",\"cwd\":\"$ZED_WORKTREE_ROOT/t5\"}]",
            there,
            &["t5/run.sh"],
        ),
        way(
            ".zed/settings.json",
            "{\"lsp\":{\"x\":{\"binary\":{\"path\":\"tools/ls\",\"arguments\":[\"tools/arg.sh\"]}}},\
             \"context_servers\":{\"a\":{\"command\":\"python3\",\"args\":[\"tools/c.py\"]}}}",
            &[("tools/ls", SH), ("tools/arg.sh", SH), ("tools/c.py", "")],
            &["tools/ls", "tools/arg.sh", "tools/c.py"],
        ),
        way(
            ".helix/languages.toml",
            "[language-server.x]\ncommand = \"tools/ls\"\nargs = [\"tools/arg.sh\"]\n",
            &[("tools/ls", SH), ("tools/arg.sh", SH)],
            &["tools/ls", "tools/arg.sh"],
        ),
        way(".nvim.lua", "dofile('tools/x.lua')\n", &[("tools/x.lua", "")], &["tools/x.lua"]),
        way(".vimrc", "source tools/x.vim\n", &[("tools/x.vim", "")], &["tools/x.vim"]),
        way(".exrc", "so ./tools/x.vim\n", &[("tools/x.vim", "")], &["tools/x.vim"]),
    ]
}

/// A folder with a script, and that script and a new one beside it.
const FOLDER: &[(&str, &str)] = &[("d/10-a.sh", "")];
const IN_FOLDER: &[&str] = &["d/10-a.sh", "d/20-new.sh"];

/// Lines by which the scripts of a folder run, without the name of each.
pub(crate) fn folder_ways() -> Vec<Way> {
    const HOOKS: [&str; 10] = [
        "for f in d/*; do sh \"$f\"; done\n",
        "for f in d/*\ndo\n  [ -r \"$f\" ] && . ./\"$f\"\ndone\n",
        "cd d && for f in *.sh; do sh \"$f\"; done\n",
        "ls d | while read f; do sh \"d/$f\"; done\n",
        "for f in $(ls d); do sh d/$f; done\n",
        "find d -name \"*.sh\" -exec sh {} \\;\n",
        "find d -type f | sort | xargs -n 1 sh\n",
        "cat d/*.sh | sh\n",
        "sh d/10*.sh\n",
        "run-parts d\n",
    ];
    let hook = |text| Way { by: By::File(".git/hooks/pre-commit", text), there: FOLDER, held: IN_FOLDER };
    let git = |key, value| Way { by: By::Git(key, value), there: FOLDER, held: IN_FOLDER };
    let ways = HOOKS.into_iter().map(hook);
    ways.chain([
        git("filter.q.clean", "for f in d/*; do . ./$f; done; cat"),
        git("filter.q.clean", "cat d/*.sh | sh"),
        git("core.fsmonitor", "sh d/*"),
        git("alias.q", "!find d -name '*.sh' -exec sh -c '. \"$1\"' _ {} \\;"),
    ])
    .collect()
}

/// Words that name one file in another way.
pub(crate) fn spelt_ways() -> Vec<Way> {
    const LINES: [&str; 8] = [
        "sh \"${HOOK:-d/10-a.sh}\"\n",
        "sh d/{10-a,30}.sh\n",
        "sh -c ./d/10-a.sh\n",
        "eval \"$(cat d/10-a.sh)\"\n",
        ": \"${HOOK:=d/10-a.sh}\"\nsh $HOOK\n",
        "sh ~+/d/10-a.sh\n",
        "sh $'d/10\\x2da.sh'\n",
        "python3 -c \"exec(open('d/10-a.sh').read())\"\n",
    ];
    let held: &[&str] = &["d/10-a.sh"];
    let hook = |text| Way { by: By::File(".git/hooks/pre-commit", text), there: FOLDER, held };
    let clean = Way { by: By::Git("filter.q.clean", "sh \"${Q:-d/10-a.sh}\""), there: FOLDER, held };
    LINES.into_iter().map(hook).chain([clean]).collect()
}

/// Ways in which hosts start servers, as they stand in many repositories.
pub(crate) fn server_ways() -> Vec<Way> {
    let way = |text, there, held| Way { by: By::File(".mcp.json", text), there, held };
    vec![
        way(
            "{\"mcpServers\":{\"a\":{\"command\":\"node\",\"args\":[\"--import\",\"./tools/x.mjs\",\"./tools/server\"]},\
             \"b\":{\"command\":\"node\",\"args\":[\"--import=./tools/y.mjs\",\"-r\",\"./tools/z\",\"tools/other.js\"]}}}",
            &[
                ("tools/x.mjs", ""),
                ("tools/server.js", ""),
                ("tools/y.mjs", ""),
                ("tools/z.cjs", ""),
                ("tools/other.js", ""),
            ],
            &["tools/x.mjs", "tools/server.js", "tools/y.mjs", "tools/z.cjs", "tools/other.js"],
        ),
        way(
            "{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"./tools/run\"]},\
             \"b\":{\"command\":\"npx -y tsx tools/x.ts\"},\"c\":{\"command\":\"deno\",\"args\":[\"run\",\"-A\",\"tools/d.ts\"]},\
             \"d\":{\"command\":\"bun\",\"args\":[\"run\",\"tools/b.ts\"]}}}",
            &[("tools/run", SH), ("tools/x.ts", ""), ("tools/d.ts", ""), ("tools/b.ts", "")],
            &["tools/run", "tools/x.ts", "tools/d.ts", "tools/b.ts"],
        ),
        way(
            "{\"mcpServers\":{\"a\":{\"command\":\"uv\",\"args\":[\"--directory\",\"tools\",\"run\",\"server.py\"]},\
             \"b\":{\"command\":\"uv\",\"args\":[\"run\",\"--with\",\"mcp\",\"tools/w.py\"]},\
             \"c\":{\"command\":\"pipenv\",\"args\":[\"run\",\"tools/p.py\"]},\
             \"d\":{\"command\":\"uv\",\"args\":[\"run\",\"python\",\"-m\",\"pkg.server\"]}}}",
            &[("tools/server.py", ""), ("tools/w.py", ""), ("tools/p.py", ""), ("pkg/server.py", "")],
            &["tools/server.py", "tools/w.py", "tools/p.py", "pkg/server.py"],
        ),
        way(
            "{\"mcpServers\":{\"a\":{\"command\":\"${workspaceFolder}/tools/a b\",\"args\":[]},\
             \"b\":{\"command\":\"sh\",\"args\":[\"-c\",\"cd \\\"$CLAUDE_PROJECT_DIR/tools\\\" && exec ./b\"]},\
             \"c\":{\"command\":\"env\",\"args\":[\"A=1\",\"${HERE:-.}/tools/c.sh\"]},\
             \"d\":{\"args\":[\"tools/d.py\"],\"command\":\"python3\"}}}",
            &[("tools/a b", SH), ("tools/b", SH), ("tools/c.sh", SH), ("tools/d.py", "")],
            &["tools/a b", "tools/b", "tools/c.sh", "tools/d.py"],
        ),
        way(
            "{\"mcpServers\":{\"a\":{\"command\":\"node\",\"args\":[\"/usr/lib/x.js\"],\
             \"env\":{\"NODE_OPTIONS\":\"--require ./tools/first.js\",\"PATH\":\"tools/bin:/usr/bin\"}}}}",
            &[("tools/first.js", ""), ("tools/bin/x", SH)],
            &["tools/first.js", "tools/bin/x", "tools/bin/node"],
        ),
    ]
}

pub(crate) fn put(repo: &Path, path: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    write(repo.join(path), text);
    if text.starts_with("#!") {
        std::fs::set_permissions(repo.join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

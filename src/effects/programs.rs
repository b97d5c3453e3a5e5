//! Programs by what they do with their words: tables for reading command lines that run outside of every jail.
#![forbid(unsafe_code)]

/// Variables whose values are folders, or files, that programs are loaded from.
pub(super) const LOADED_FROM: [&str; 17] = [
    "BASH_ENV",
    "CLASSPATH",
    "ENV",
    "GIT_EXEC_PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LUA_PATH",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERLLIB",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "ZDOTDIR",
];

/// Those of them that lead to modules of an interpreter's, which are a project's own sources more often than not.
pub(super) const SOURCES: [&str; 8] =
    ["CLASSPATH", "LUA_PATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "PYTHONPATH", "RUBYLIB", "RUBYOPT"];

/// Beginnings of the names of interpreters that load what lies beside a script.
const LOADERS: [&str; 13] = [
    "bun", "deno", "lua", "node", "perl", "php", "pypy", "python", "ruby", "Rscript", "tclsh", "ts-node",
    "tsx",
];

/// Shells, and their words for reading a script.
pub(super) const SHELLS: [&str; 12] =
    [".", "ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "source", "source_env", "zsh", "pwsh"];

/// Hooks that git runs.
pub(super) const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Programs that read a file of one of these names where they are started.
pub(super) const RUNNERS: [(&[&str], &[&str]); 8] = [
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["just"], &["justfile", ".justfile", "Justfile"]),
    (&["npm", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["rake"], &["Rakefile", "rakefile", "Rakefile.rb"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"]),
    (&["nox"], &["noxfile.py"]),
    (&["inv", "invoke"], &["tasks.py"]),
    (&["composer"], &["composer.json"]),
];

/// Programs that run another one, which stands behind their options and those options' values.
pub(super) const WRAPPERS: [&str; 19] = [
    "bunx", "chrt", "doas", "dotenv", "hatch", "ionice", "nice", "npx", "pdm", "pipx", "pnpm", "poetry",
    "rye", "stdbuf", "sudo", "taskset", "timeout", "uv", "xargs",
];

/// Whether a program is an interpreter that loads what lies beside a script.
pub(super) fn is_loader(name: &str) -> bool {
    LOADERS.iter().any(|it| name.starts_with(it))
}

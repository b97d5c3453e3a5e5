//! Programs by the meaning of their arguments: tables for reading command lines that run outside of every jail.
#![forbid(unsafe_code)]

/// Variables whose values are folders, or files, that programs are loaded from.
pub(super) const LOADED_FROM: [&str; 16] = [
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
    "ZDOTDIR",
];

/// Those variables that lead to modules of an interpreter: these are often a project's own sources.
pub(super) const SOURCES: [&str; 7] =
    ["CLASSPATH", "LUA_PATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "PYTHONPATH", "RUBYLIB"];

/// Beginnings of the names of interpreters that load files beside a script.
const LOADERS: [&str; 17] = [
    "bun",
    "deno",
    "dotnet",
    "java",
    "julia",
    "lua",
    "node",
    "osascript",
    "perl",
    "php",
    "pypy",
    "python",
    "ruby",
    "Rscript",
    "tclsh",
    "ts-node",
    "tsx",
];

/// Options of interpreters, without their first dash, whose value is loaded before the script, or is searched for modules.
pub(super) const LOAD_OPTIONS: [&str; 14] = [
    "-experimental-loader",
    "-import",
    "-init-file",
    "-loader",
    "-preload",
    "-rcfile",
    "-require",
    "I",
    "L",
    "S",
    "classpath",
    "cp",
    "jar",
    "r",
];

/// Extensions that interpreters add to the name of a script or a module that they do not find as written.
pub(super) const RESOLVED: [&str; 11] = [
    "",
    ".js",
    ".cjs",
    ".mjs",
    ".ts",
    ".py",
    "/index.js",
    "/index.cjs",
    "/index.mjs",
    "/index.ts",
    "/__main__.py",
];

/// Options with a value, of wrappers that are told to `run` another program.
pub(super) const RUN_VALUED: [&str; 18] = [
    "--cache-dir",
    "--config-file",
    "--directory",
    "--env",
    "--env-file",
    "--extra",
    "--from",
    "--group",
    "--index",
    "--only-group",
    "--package",
    "--project",
    "--python",
    "--with",
    "--with-editable",
    "--with-requirements",
    "-p",
    "-w",
];

/// Variables with options of an interpreter, each with the interpreter's name.
pub(super) const OPTIONS_IN: [(&str, &str); 4] =
    [("NODE_OPTIONS", "node"), ("PERL5OPT", "perl"), ("RUBYOPT", "ruby"), ("BUN_OPTIONS", "bun")];

/// Commands of direnv that put a folder into `PATH`, or into another variable.
pub(super) const ADD_TO_PATH: [&str; 3] = ["PATH_add", "path_add", "load_prefix"];

/// Shells, and their commands for reading a script.
pub(super) const SHELLS: [&str; 14] = [
    ".",
    "ash",
    "bash",
    "dash",
    "dotenv_if_exists",
    "fish",
    "ksh",
    "mksh",
    "pwsh",
    "sh",
    "source",
    "source_env",
    "source_env_if_exists",
    "zsh",
];

/// Rows of settings of editors that are scripts in the editor's own language.
pub(super) const SCRIPTS_OF_EDITORS: [&str; 11] = [
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".exrc",
    ".gvimrc",
    ".lazy.lua",
    ".lvimrc",
    ".nvim",
    ".nvim.lua",
    ".nvimrc",
    ".vim",
    ".vimrc",
];

/// Rows of settings in which a command line stands behind any key: the name of a hook, or a kind of files.
pub(super) const LINES_BY_ANY_KEY: [&str; 7] = [
    "*simple-git-hooks.*",
    ".huskyrc*",
    ".lintstagedrc*",
    ".rusty-hook.toml",
    "captainhook.json",
    "hk.pkl",
    "lint-staged.config.*",
];

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

/// Programs that read a file with one of these names in the folder where they start.
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

/// Wrappers: programs that start another one, whose name stands behind their options and those options' values.
pub(super) const WRAPPERS: [&str; 25] = [
    "bunx", "chrt", "direnv", "doas", "dotenv", "hatch", "ionice", "mise", "nice", "npm", "npx", "pdm",
    "pipenv", "pipx", "pnpm", "poetry", "rtx", "rye", "stdbuf", "sudo", "taskset", "timeout", "uv", "uvx",
    "xargs",
];

/// Checks whether a program is an interpreter that loads files beside a script.
pub(super) fn is_loader(name: &str) -> bool {
    LOADERS.iter().any(|it| name.starts_with(it))
}

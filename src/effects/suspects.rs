//! Which names of a workspace run later: by themselves, when somebody builds, or on a build server.
//!
//! By name alone, so that a look at a directory is enough. Settings that run by themselves are in the table of
//! [`later`]; here is what is run on purpose. A list like this is never complete; what it cannot know, the configuration
//! adds with `protect`.

use crate::base::later::{self, Whose};
use crate::domain::FindingKind;
use crate::jail::Parts;

/// What a directory is, for what lies in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Zone {
    /// The top of the workspace.
    Top,
    /// Any directory.
    Plain,
    /// A repository's own directory, under whatever name.
    Git,
    /// A part of one in which nothing is started.
    GitInner,
    /// A repository's own directory, or a part of it, of which everything matters.
    Whole,
    /// The objects of such a one.
    Objects,
    /// Objects in files of their own, named by their content: a new one hides nothing, a changed one does.
    Loose,
    /// Everything below matters for this reason.
    All(FindingKind),
}

/// What is said about a name in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Said {
    /// What it is as a directory; `None` for one that is not looked into.
    pub(super) zone: Option<Zone>,
    /// Why it matters as a file or link.
    pub(super) kind: Option<FindingKind>,
}

/// What servers run, at the top of a workspace.
const CI: [&str; 17] = [
    ".appveyor.yml",
    ".azure-pipelines",
    ".buildkite",
    ".circleci",
    ".cirrus.yml",
    ".drone.yml",
    ".forgejo",
    ".gitea",
    ".github",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".woodpecker",
    ".woodpecker.yml",
    "Jenkinsfile",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
];

/// What builds, tests and package managers run.
const BUILD: [&str; 71] = [
    ".bazelrc",
    ".npmrc",
    ".pnpmfile.cjs",
    ".python-version",
    ".tool-versions",
    ".yarnrc",
    ".yarnrc.yml",
    "BUILD",
    "BUILD.bazel",
    "Brewfile",
    "CMakeLists.txt",
    "CMakePresets.json",
    "Cargo.toml",
    "Containerfile",
    "Dockerfile",
    "Earthfile",
    "GNUmakefile",
    "Gemfile",
    "Justfile",
    "MODULE.bazel",
    "Makefile",
    "Makefile.am",
    "Makefile.in",
    "Pipfile",
    "Procfile",
    "Rakefile",
    "SConstruct",
    "Taskfile.yml",
    "Tiltfile",
    "Vagrantfile",
    "WORKSPACE",
    "bun.toml",
    "bunfig.toml",
    "build.gradle",
    "build.gradle.kts",
    "build.rs",
    "build.sbt",
    "build.xml",
    "build.zig",
    "compose.yaml",
    "compose.yml",
    "composer.json",
    "configure",
    "configure.ac",
    "conftest.py",
    "default.nix",
    "deno.json",
    "devbox.json",
    "devenv.nix",
    "devenv.yaml",
    "docker-compose.yml",
    "dune-project",
    "flake.nix",
    "go.mod",
    "gradle.properties",
    "justfile",
    "makefile",
    "meson.build",
    "mix.exs",
    "noxfile.py",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.cfg",
    "setup.py",
    "shell.nix",
    "tox.ini",
];

/// Directories of the same.
const BUILD_DIRS: [&str; 3] = [".cargo", ".mvn", "gradle"];

/// Beginnings and ends of names of the same: `vite.config.ts`, `rules.mk`.
const BUILD_ENDS: [&str; 9] = [
    ".mk",
    ".cmake",
    ".gemspec",
    ".pth",
    ".config.js",
    ".config.cjs",
    ".config.mjs",
    ".config.ts",
    ".config.mts",
];

/// Ends of hidden names of the same: `.eslintrc.js`.
const PROGRAM_RC_ENDS: [&str; 4] = ["rc.js", "rc.cjs", "rc.mjs", "rc.ts"];

/// What pins what is fetched.
const LOCKS: [&str; 19] = [
    "Cargo.lock",
    "Gemfile.lock",
    "MODULE.bazel.lock",
    "Package.resolved",
    "Pipfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

/// Files of a repository that name programs or lead to others that do.
const GIT_FILES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];

/// Directories of a repository with what is run: hooks, and operations that were begun and go on later.
const GIT_DIRS: [&str; 4] = ["hooks", "rebase-merge", "rebase-apply", "sequencer"];

/// Files of a work tree that say what git shows of it, and how.
const HIDING: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];

/// Why a row of the table matters.
pub(super) fn kind_of(row: &later::Row) -> FindingKind {
    match row.whose {
        Whose::Instructions => FindingKind::Instructions,
        Whose::Agents
        | Whose::Editors
        | Whose::Shells
        | Whose::Hooks
        | Whose::VersionControl
        | Whose::Interpreters => FindingKind::Setting,
    }
}

/// What something in a directory is, by its path from the workspace, of which the name is the last part; `row` is the
/// table's for it.
pub(super) fn said(zone: Zone, name: &[u8], row: Option<&later::Row>) -> Said {
    let name = std::str::from_utf8(name).unwrap_or_default();
    let whole = |kind| Said { zone: Some(Zone::All(kind)), kind: Some(kind) };
    // What servers run holds more than that, and so does what builds do.
    let open = matches!(zone, Zone::Top | Zone::Plain | Zone::All(FindingKind::Ci | FindingKind::Build));
    if let Some(row) = row.filter(|_| open) {
        return whole(kind_of(row));
    }
    let nothing = |zone| Said { zone: Some(zone), kind: None };
    match zone {
        Zone::All(kind) => whole(kind),
        // Objects are data, many, and named by their content.
        Zone::Git if name == "objects" => Said { zone: None, kind: None },
        Zone::Git if GIT_DIRS.contains(&name) => whole(FindingKind::Git),
        Zone::Git if GIT_FILES.contains(&name) => Said { kind: Some(FindingKind::Git), ..nothing(zone) },
        Zone::Git | Zone::GitInner => nothing(Zone::GitInner),
        Zone::Whole if name == "objects" => nothing(Zone::Objects),
        Zone::Whole => Said { kind: Some(FindingKind::Git), ..nothing(Zone::Whole) },
        Zone::Objects if name.len() == 2 => nothing(Zone::Loose),
        Zone::Objects => Said { kind: Some(FindingKind::Git), ..nothing(Zone::Whole) },
        Zone::Loose => Said { kind: Some(FindingKind::Git), ..nothing(Zone::Loose) },
        Zone::Top if CI.contains(&name) => whole(FindingKind::Ci),
        Zone::Top | Zone::Plain if name == ".git" => {
            Said { zone: Some(Zone::Git), kind: Some(FindingKind::Git) }
        }
        Zone::Top | Zone::Plain if BUILD_DIRS.contains(&name) => {
            Said { zone: Some(Zone::All(FindingKind::Build)), kind: None }
        }
        Zone::Top | Zone::Plain if HIDING.contains(&name) => {
            Said { kind: Some(FindingKind::Git), ..nothing(Zone::Plain) }
        }
        Zone::Top | Zone::Plain => Said { kind: file(name), ..nothing(Zone::Plain) },
    }
}

fn file(name: &str) -> Option<FindingKind> {
    let is_build = BUILD.contains(&name)
        || BUILD_ENDS.iter().any(|end| name.ends_with(end))
        || (name.starts_with('.') && PROGRAM_RC_ENDS.iter().any(|end| name.ends_with(end)))
        || name.starts_with("Dockerfile.")
        || name.starts_with("docker-compose.");
    let is_lock = LOCKS.contains(&name) || (name.starts_with("requirements") && name.ends_with(".txt"));
    if is_build {
        return Some(FindingKind::Build);
    }
    is_lock.then_some(FindingKind::Lock)
}

/// Whether a directory with these names is a repository's own, whatever it is called: git takes a directory for
/// one when it looks like this.
pub(super) fn is_repository<'a>(names: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut parts = Parts::default();
    names.for_each(|name| parts.add(name));
    parts.are_a_repository()
}

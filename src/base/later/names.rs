//! Names of files that a build server, a build, a package manager or git reads by itself, for the scan report.
//! They are not settings that run later: a worker may change them.

/// Files that build servers run, at the top of a workspace.
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

/// Files that builds, tests and package managers run.
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

/// Directories whose files builds and package managers run.
const BUILD_DIRS: [&str; 3] = [".cargo", ".mvn", "gradle"];

/// Beginnings and ends of names of files that builds run: `vite.config.ts`, `rules.mk`.
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

/// Ends of hidden names of files that builds run: `.eslintrc.js`.
const PROGRAM_RC_ENDS: [&str; 4] = ["rc.js", "rc.cjs", "rc.mjs", "rc.ts"];

/// Lock files, which pin the packages that a build fetches.
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

/// Files of a work tree that determine what git shows of it, and how.
const HIDING: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];

/// The suffix for the name of a pipe that a worker has made in a place where a program of the host would block on
/// it.
pub const PIPE_ASIDE: &str = ".pipe-set-aside-by-provost";

/// Checks whether build servers run the file or folder with this name at the top of a workspace.
pub fn is_ci(name: &str) -> bool {
    CI.contains(&name)
}

/// Checks whether builds, tests and package managers run a file with this name.
pub fn is_build(name: &str) -> bool {
    BUILD.contains(&name)
        || BUILD_ENDS.iter().any(|end| name.ends_with(end))
        || (name.starts_with('.') && PROGRAM_RC_ENDS.iter().any(|end| name.ends_with(end)))
        || name.starts_with("Dockerfile.")
        || name.starts_with("docker-compose.")
}

/// Checks whether builds and package managers run the files of a folder with this name.
pub fn is_build_folder(name: &str) -> bool {
    BUILD_DIRS.contains(&name)
}

/// Checks whether a file with this name pins the packages that a build fetches.
pub fn is_lock(name: &str) -> bool {
    LOCKS.contains(&name) || (name.starts_with("requirements") && name.ends_with(".txt"))
}

/// Checks whether a file with this name determines what git shows of a work tree, and how.
pub fn is_hiding(name: &str) -> bool {
    HIDING.contains(&name)
}

/// Checks whether a program of the host opens the file with this path without being given its name: git, an editor,
/// an agent, a build.
pub fn is_opened_by_itself(path: &[u8]) -> bool {
    let is_such = |name: &str| is_ci(name) || is_build(name) || is_lock(name) || is_hiding(name);
    let mut names = path.split(|it| *it == b'/').filter_map(|it| std::str::from_utf8(it).ok());
    let is_gits = |name: &str| name.eq_ignore_ascii_case(".git") || is_build_folder(name) || is_ci(name);
    super::row_over(path).is_some() || names.clone().any(is_gits) || names.next_back().is_some_and(is_such)
}

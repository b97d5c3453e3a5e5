//! Bounds of the handling of git repositories in a workspace.

/// Repositories in one workspace, submodules and work trees among them: each is protected by a mount and
/// asked for its configuration. Where there are more, no worker works in it.
pub const REPOSITORIES_MAX: usize = 256;

/// Repositories that a worker has made which are named in the sentence about its end; the report names the
/// others.
pub const REPOSITORIES_NAMED_MAX: usize = 4;

/// Folders of one workspace in which the kernel is asked to tell at once of a new repository. Each takes a
/// kibibyte of the kernel's memory; those beyond are walked through once a second.
pub const FOLDERS_HEARD_MAX: usize = 4_096;

/// One worker's share of what the kernel lets a user watch: one in so many.
pub const FOLDERS_HEARD_PART: usize = 64;

/// News of such folders that are looked at in a tenth of a second; those beyond wait for the next one.
pub const NEWS_PER_TICK_MAX: usize = 512;

/// Nested folders about which git is asked whether it tracks a file in them, to name one that
/// a worker has left.
pub const TRACKED_LEVELS_MAX: usize = 16;

/// Nested repositories that a worker has made. Each is found when the one around it is out of force.
pub const REPOSITORY_LAYERS_MAX: usize = 16;

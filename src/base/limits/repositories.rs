//! Bounds of the handling of git repositories in a workspace.

/// Repositories in one workspace, submodules and work trees among them: each is protected by a mount and asked for
/// its configuration. If there are more, no worker works in it.
pub const REPOSITORIES_MAX: usize = 256;

/// Repositories made by a worker that the sentence about its end names; the report names the others.
pub const REPOSITORIES_NAMED_MAX: usize = 4;

/// Folders of one workspace in which the kernel reports a new repository at once. Each takes a kibibyte of the
/// kernel's memory; further ones are walked once a second.
pub const FOLDERS_HEARD_MAX: usize = 4_096;

/// One worker's share of the kernel's limit of watches for a user: one part in so many.
pub const FOLDERS_HEARD_PART: usize = 64;

/// Reports about such folders that are handled in a tenth of a second; further ones wait for the next one.
pub const NEWS_PER_TICK_MAX: usize = 512;

/// Nested folders about which git is asked whether it tracks a file in them, to name the folder that a worker has
/// left.
pub const TRACKED_LEVELS_MAX: usize = 16;

/// Nested repositories made by a worker. Each is found once the one around it is disabled.
pub const REPOSITORY_LAYERS_MAX: usize = 16;

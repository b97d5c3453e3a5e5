//! Bounds of what is done about git repositories in a workspace.

/// Repositories in one workspace, submodules and work trees among them: each is protected by a mount and asked for its
/// configuration. Where there are more, no worker works in it.
pub const REPOSITORIES_MAX: usize = 256;

/// Repositories that a worker has made which are named in the sentence about its end; the report names the others.
pub const REPOSITORIES_NAMED_MAX: usize = 4;

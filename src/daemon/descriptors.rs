//! How many files and connections the daemon may hold at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes as many descriptors as the system lets this user have: shells allow few by default, and every client takes
/// two. What a worker may have is set for each.
pub(super) fn take_all() {
    let most = getrlimit(Resource::Nofile).maximum;
    // It is raised to what is allowed; if that fails after all, fewer clients find room.
    let _raised = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
}

//! The user's work trees: what is written into them, what is kept of them, and what git does there.

mod applies_outside;
mod artifacts;
mod folder_watch;
mod git_hooks;
mod git_merges;
mod kept_copies;
mod merging;
mod renamed_files;
mod shared_copies;
mod taking_in;
mod walks;
mod watching;
#[cfg(target_os = "linux")]
mod work_trees;

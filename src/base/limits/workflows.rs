//! Bounds of workflows and scans that editors ask for.

/// Workflows of a configuration; a person must be able to choose among them.
pub const WORKFLOWS_MAX: usize = 100;

/// Files of workflows in one folder. A person has to read each before it counts.
pub const WORKFLOW_FILES_MAX: usize = 64;

/// Steps of one workflow: each is a job, and has a row in an editor's window.
pub const WORKFLOW_STEPS_MAX: usize = 20;

/// Rounds of a repeated part; each of them runs agents, which take time and may cost money.
pub const WORKFLOW_ROUNDS_MAX: u32 = 20;

/// Rounds if a workflow does not say it.
pub const WORKFLOW_ROUNDS: u32 = 5;

/// Bytes from the end of an answer, or of a check's output, that the next step gets.
pub const WORKFLOW_TOLD_BYTES_MAX: usize = 64 << 10;

/// The longest name of a workflow's domain, of a workflow in it, and of a step, in bytes.
pub const WORKFLOW_NAME_BYTES_MAX: usize = 64;

/// Findings of one scan's report.
pub const SCAN_FINDINGS_MAX: usize = 200;

/// The longest title of a finding, in characters; details are as long as a review's.
pub const SCAN_TITLE_MAX: usize = 300;

/// The size of `.git/config`, in bytes, in which the address of the repository's origin is looked up.
pub const GIT_CONFIG_BYTES_MAX: u64 = 1 << 20;

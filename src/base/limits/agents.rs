//! Bounds of agents that editors ask: of their configuration, their prompts, their answers and their changes.

/// Agents of a configuration; a person must be able to keep an eye on them.
pub const AGENTS_CONFIGURED_MAX: usize = 64;

/// Commands that tidy up or check the changes of one agent; a longer list belongs in a script.
pub const AGENT_COMMANDS_MAX: usize = 16;

/// The size of a template of prompts, in bytes; templates have a page at most.
pub const TEMPLATE_BYTES_MAX: usize = 64 << 10;

/// The size of a rendered prompt, in bytes: the bound of a worker's standard input.
pub const PROMPT_BYTES_MAX: usize = super::STDIN_BYTES_MAX;

/// The size of the JSON Schema that a worker's answer has to satisfy, in bytes.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Files and links of a workspace that is copied for an agent, those that git ignores not counted, at some
/// two hundred bytes of memory each while it runs.
pub const HARVEST_FILES_MAX: usize = 200_000;

/// The size of git's index that is read to know what it tracks, in bytes: of half a million files.
pub const GIT_INDEX_BYTES_MAX: u64 = 64 << 20;

/// Entries of the copy that are examined after the run, including those that git ignores.
pub const HARVEST_ENTRIES_MAX: u64 = 1_000_000;

/// The size of a file whose content is kept as it was when it was copied, in bytes; a larger file is not source code.
pub const BASE_FILE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of all such contents, on the disk and for the time of one run.
pub const BASE_BYTES_MAX: u64 = 1 << 30;

/// Changed files of one run that are kept, if `changes.files` is missing. No person looks through a larger change.
pub const CHANGED_FILES_USUAL: usize = 200;

/// The largest value of `changes.files`: each pair of them is compared for whether one takes the place of the
/// other.
pub const CHANGED_FILES_MAX: usize = 2_000;

/// Bytes of the contents of one run's changed files, if `changes.size` is missing.
pub const CHANGED_BYTES_USUAL: u64 = 8 << 20;

/// The largest value of `changes.size`, in bytes; the contents are read into memory together.
pub const CHANGED_BYTES_MAX: u64 = 64 << 20;

/// Changed files that a task's result names; further ones are counted, and the difference has them all.
pub const CHANGED_FILES_NAMED_MAX: usize = 200;

/// Changes that are not artifacts and are named beside them; further ones are counted.
pub const LEFT_OUT_MAX: usize = 50;

/// Runs whose changes are kept, if `changes.runs` is missing; the oldest go first.
pub const CHANGESETS_KEPT_MAX: usize = 500;

/// The time for which changes are kept, in days, if `changes.days` is missing; and private copies of runs whose
/// daemon was killed.
pub const CHANGESETS_KEPT_DAYS: u64 = 7;

/// The most that the time between two starts of the machine adds to an age, in seconds: the clock may have been set
/// meanwhile.
pub const AGE_OVER_A_START_S_MAX: u64 = 24 * 60 * 60;

/// The number of private copies that are kept of runs whose daemon was killed; the newest ones.
pub const REMAINS_KEPT_MAX: usize = 10;

/// The longest line of an agent's stream that is read as a message, in bytes: one line may hold an edit of a large file.
pub const STREAM_LINE_BYTES_MAX: usize = 4 << 20;

/// The longest answer of an agent, in bytes.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Bytes of lines for people that wait to be taken from a stream's reader; the oldest give way.
pub const STREAM_LOG_BYTES_MAX: usize = 256 << 10;

/// The longest of these lines, in bytes.
pub const STREAM_LOG_LINE_MAX: usize = 2_000;

/// Lines of a difference that people are shown, for the old and the new text each; the run's output has the whole difference.
pub const STREAM_DIFF_LINES_MAX: usize = 12;

/// The size of a reply that is searched for JSON, in bytes.
pub const REPLY_BYTES_MAX: usize = ANSWER_BYTES_MAX;

/// Places in a reply at which JSON may begin that are tried.
pub const REPLY_STARTS_MAX: usize = 1_000;

/// Issues of one review.
pub const REVIEW_ISSUES_MAX: usize = 200;

/// The longest message of one issue, and longest suggestion, in characters.
pub const REVIEW_TEXT_MAX: usize = 4_000;

/// Lines about changes in the workspace in an agent's prompt; the agent can ask git itself for more.
pub const SURROUNDINGS_LINES_MAX: usize = 200;

/// Bytes of these lines together.
pub const SURROUNDINGS_BYTES_MAX: usize = 16 << 10;

/// Bytes from the end of a check's output that are shown with its outcome; the job's log has the rest.
pub const CHECK_TOLD_BYTES_MAX: usize = 4 << 10;

/// The longest name of a model that is passed to a program, in bytes.
pub const MODEL_NAME_BYTES_MAX: usize = 256;

/// The longest description of a package (`package.json`) that `provost agent add` reads, in bytes.
pub const PACKAGE_BYTES_MAX: u64 = 1 << 20;

/// The longest answer of a program that is asked for its version, in bytes.
pub const PROGRAM_VERSION_BYTES_MAX: u64 = 4_096;

//! Bounds of the hooks of hosts, which find out the files that a tool call writes. A host gives a hook half a
//! minute, and some hosts let the write through after that, so a hook ends earlier. A call beyond a bound counts as
//! one that writes every file.

/// Obstacles that a refusal names; a model reads it, and that costs.
pub const HOOK_OBSTACLES_NAMED_MAX: usize = 8;

/// The time for which a hook works out the writes of a call, in milliseconds, and as long again for others' holds
/// on them; the rest of [`HOOK_MS_MAX`] is for questions to the daemon.
pub const HOOK_WORK_MS_MAX: u64 = 6_000;

/// The time for which one question to the daemon about a permission waits, in milliseconds, before it is asked
/// again: less than a connection may be silent.
pub const HOOK_ASK_MS: u64 = 20_000;

/// Stack of the threads that work out a call, in bytes: nesting is bounded, and this is far more than it takes.
pub const HOOK_STACK_BYTES: usize = 16 << 20;

/// Links that are followed one after the other to the file that a call means; the kernel follows forty.
pub const HOOK_LINKS_MAX: usize = 16;

/// Depth of brackets in JSON with comments; the reader takes stack for each level. Real files stay under ten.
pub const JSONC_DEPTH_MAX: usize = 128;

/// Bytes of git's list of differences that are read; a longer list counts as every file.
pub const HOOK_GIT_BYTES_MAX: usize = 1 << 20;

/// Writes to many files that are compared individually with others' holds; more count as writes to everything.
pub const HOOK_WIDE_MAX: usize = 500;

/// The number of these about which git is asked: each question takes some milliseconds.
pub const HOOK_CHANGED_MAX: usize = 24;

/// The longest time that a hook may take to put aside files that others hold, in milliseconds; a command that takes
/// longer to prepare is not watched.
pub const HOOK_ASIDE_MS_MAX: u64 = 1_000;

/// Files that are put aside before one shell command, since others hold them.
pub const HOOK_ASIDE_FILES_MAX: usize = 200;

/// Bytes of files that are too large to be compared by their parts, and are copied before one shell command.
pub const HOOK_ASIDE_BYTES_MAX: u64 = 64 << 20;

/// The time for which files that were put aside for a command stay there, in milliseconds: six hours, if its host reports no end.
pub const HOOK_ASIDE_AGE_MS_MAX: u64 = 6 * 60 * 60 * 1_000;

/// Running commands of other agents for which a write puts its file aside.
pub const HOOK_CALLS_TOLD_MAX: usize = 64;

/// Overwritten files whose two versions are kept; the daemon removes the oldest first.
pub const HOOK_ASIDE_KEPT_MAX: usize = 500;

/// The delays after which a hook that waits for an answer checks whether the daemon's process is stopped, in
/// milliseconds: the first before the 100 ms are over that a hook may take if the daemon is down, and a few later.
pub const HOOK_STOPPED_LOOKS_MS: [u64; 5] = [25, 175, 800, 3_000, 6_000];

/// Refusals that are remembered, each with its agent and file: a lock that is taken after one ends with a commit.
pub const ADVISED_MAX: usize = 2_000;

/// The size of the note about the results of writes to a file, in bytes, beyond which it begins again: some hundred writes.
pub const HOOK_NOTES_BYTES_MAX: u64 = 8 << 10;

/// Files that are examined at a session's end; there is one for each question that waits.
pub const HOOK_SHOWN_FILES_MAX: usize = 1_000;

/// Messages that a model is shown at once; its tool shows the ones before them.
pub const HOOK_NEWS_TOLD_MAX: usize = 8;

/// Characters of a message that a model is shown; its tool shows the rest.
pub const HOOK_NEWS_CHARS_MAX: usize = 600;

/// Pages of an inbox that a hook reads at once.
pub const HOOK_NEWS_PAGES_MAX: usize = 20;

/// Functions that one line defines; each call is compared with each.
pub const SHELL_FUNCTIONS_MAX: usize = 100;

/// Folders that one line enters and has to return from: as many brackets that are open at once.
pub const SHELL_PLACES_MAX: usize = 1_000;

/// Lines that are read for one command, including those in scripts and loops; the scripts of a project have fewer.
pub const SHELL_LINES_MAX: usize = 500;

/// Levels of commands within commands that a hook reads. Each level takes stack; real lines have fewer.
pub const SHELL_DEPTH_MAX: usize = 8;

/// Bytes that may be read for one command, each counted as often as it is read. No system takes a line half as long.
pub const SHELL_COST_MAX: usize = 8 << 20;

/// The cost of asking another program, counted as bytes that are read: it takes milliseconds.
pub const SHELL_ASKING_COST: usize = SHELL_COST_MAX / 32;

/// Writes of one command that are distinguished: more than one agent holds.
pub const SHELL_FOUND_MAX: usize = 4_000;

/// The number of times that a command is evaluated with other values of its variables, as in a loop.
pub const SHELL_ROUNDS_MAX: usize = 256;

/// The longest word that results from variables, in bytes: texts double quickly.
pub const SHELL_WORD_BYTES_MAX: usize = 1 << 20;

/// Words that a word with braces may stand for; braces in braces multiply.
pub const SHELL_CHOICES_MAX: usize = 256;

/// The most bytes that such a word may have.
pub const SHELL_CHOICES_BYTES_MAX: usize = 8 << 10;

/// The longest expression of code that is examined, in words and signs; each call that writes has one.
pub const CODE_SPAN_MAX: usize = 2_048;

/// Calls that write, and names that get a value, in one piece of code.
pub const CODE_PLACES_MAX: usize = 4_000;

/// Texts that one expression may be; parts that vary multiply.
pub const CODE_TEXTS_MAX: usize = 512;

/// Words and signs that are examined to find the values of names, each counted as often as it is examined: a second
/// at most.
pub const CODE_WORK_MAX: usize = 1_000_000;

/// The longest text in code that may be a path or a line for a shell, in bytes; no path is longer.
pub const CODE_TEXT_BYTES_MAX: usize = 4_096;

/// The longest name of a file, and longest line for a shell, that is searched in programs for `sed` and `awk`, in bytes.
pub const SCRIPT_NAME_BYTES_MAX: usize = 4_096;

/// Places in programs for `sed` and `awk` that may name a file; more are not read.
pub const SCRIPT_PLACES_MAX: usize = 2_000;

/// The largest file of a project that is read for its scripts, in bytes.
pub const PROJECT_FILE_BYTES_MAX: u64 = 1 << 20;

/// The part of [`SHELL_COST_MAX`] that one script which a command starts may cost; for scripts that take more, the
/// writes found by then count.
pub const SHELL_SCRIPT_COST_MAX: usize = SHELL_COST_MAX / 4;

/// Input of a host to a hook, in bytes: a whole file as an argument, with its escapes in JSON.
pub const HOOK_INPUT_BYTES_MAX: usize = 16 << 20;

/// Bytes that are read from the end of a session's record to find the settings of its last turn.
pub const HOOK_RECORD_BYTES_MAX: u64 = 8 << 20;

/// The largest configuration of a host that is read, in bytes; real ones have some kilobytes.
pub const HOOK_CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Daemons of one user that are asked for work that needs their user; the entries of more are not read.
pub const DAEMONS_ASKED_MAX: usize = 256;

/// The largest entry of a daemon in the folder of all daemons, in bytes: two paths and some numbers.
pub const DAEMON_ENTRY_BYTES_MAX: u64 = 16 << 10;

/// The longest time that a daemon may take for its answer about work that needs its user, in milliseconds; then it
/// is listed as one that does not answer.
pub const DAEMON_ASKED_MS: u64 = 1_000;

/// Words of one line in which a rule looks for commands; a longer line may run anything.
pub const CALL_WORDS_MAX: usize = 20_000;

/// Words of one command that are compared with a pattern; patterns have fewer.
pub const CALL_WORDS_FOLLOWED_MAX: usize = 64;

/// Words of a pattern for commands.
pub const COMMAND_PATTERN_WORDS_MAX: usize = 16;

/// Paths of one tool call whose targets are looked up; each takes some system calls. A call that names more may
/// touch any file.
pub const TOOL_PATHS_MAX: usize = 2_048;

/// Files of one tool call about which a hook asks the daemon. A command that changes more counts as a write
/// to everything.
pub const HOOK_FILES_MAX: usize = 2_000;

/// The longest that a hook takes to find out whether a write may go on, in milliseconds. Hosts are told to give it
/// thirty seconds.
pub const HOOK_MS_MAX: u64 = 20_000;

/// Calls of an agent for which a hook puts files aside at one time; the oldest goes first.
pub const HOOK_CALLS_ASIDE_MAX: usize = 16;

/// Open sessions of Codex that are examined to find the screen of one.
pub const CODEX_SESSIONS_MAX: usize = 1_000;

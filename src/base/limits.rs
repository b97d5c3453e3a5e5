//! Fixed bounds. Settings are in `config/table.rs`.
//!
//! Each bound has a unit in its name or its sentence, and the reason why it is not larger.

mod acp;
mod agents;
mod applies;
mod clock;
mod coordination;
mod crew;
mod descriptors;
mod held;
mod hooks;
mod hosts;
mod jobs;
mod loopback;
mod mcp;
mod merges;
mod metrics;
mod notices;
mod outside;
mod passkeys;
mod postgres;
mod posts;
mod programs;
mod push;
mod queue;
mod repositories;
mod scip;
mod sockets;
mod store;
mod walks;
mod watching;
mod web;
mod work_trees;
mod workflows;

pub use acp::*;
pub use agents::*;
pub use applies::*;
pub use clock::*;
pub use coordination::*;
pub use crew::*;
pub use descriptors::*;
pub use held::*;
pub use hooks::*;
pub use hosts::*;
pub use jobs::*;
pub use loopback::*;
pub use mcp::*;
pub use merges::*;
pub use metrics::*;
pub use notices::*;
pub use outside::*;
pub use passkeys::*;
pub use postgres::*;
pub use posts::*;
pub use programs::*;
pub use push::*;
pub use queue::*;
pub use repositories::*;
pub use scip::*;
pub use sockets::*;
pub use store::*;
pub use walks::*;
pub use watching::*;
pub use web::*;
pub use work_trees::*;
pub use workflows::*;

/// The longest identifier, in bytes. DevIt's are UUIDs and short names; the broker allows 200.
pub const ID_LEN_MAX: usize = 200;

/// The longest name of a repository in a shared database, in bytes. Files of the state folder that are read up to 4 KiB have it.
pub const REPOSITORY_NAME_LEN_MAX: usize = 500;

/// The longest path from a peer, in bytes; Linux' own `PATH_MAX`.
pub const PATH_LEN_MAX: usize = 4096;

/// Folders on the ways of absolute paths that one request may have the file system examine.
pub const WAY_FOLDERS_MAX: usize = 4_096;

/// The longest duration, in milliseconds: a week. No request of a peer may outlive it.
pub const TTL_MAX_MS: u32 = 7 * 24 * 60 * 60 * 1000;

/// The longest frame of a line protocol, in bytes. A DELEGATE may carry a large diff; larger content belongs in a file.
pub const FRAME_LEN_MAX: usize = 1 << 20;

/// The deepest nesting of JSON from a peer. Real messages stay under ten.
pub const JSON_DEPTH_MAX: usize = 64;

/// Commands that may wait for the engine; beyond that, callers are told that the daemon is busy.
pub const ENGINE_QUEUE_MAX: usize = 4096;

/// Commands applied before a commit is forced, so that the first of a crowd does not wait for the last.
pub const BATCH_MAX: usize = 512;

/// Tasks that may be unfinished at once; memory holds all of them.
pub const TASKS_LIVE_MAX: usize = 10_000;

/// Finished tasks that a status answer lists (DevIt keeps as many).
pub const STATUS_FINISHED_MAX: usize = 1_000;

/// The size of a status answer, in bytes, without the short rows of unfinished tasks, which are always complete.
/// DevIt's client waits one second for the line.
pub const STATUS_BYTES_MAX: usize = 1 << 20;

/// Notes kept per task: the first and the newest.
pub const NOTES_MAX: usize = 16;

/// The longest summary kept in a note, in bytes; the rest is in its details.
pub const SUMMARY_LEN_MAX: usize = 4096;

/// Messages queued for one agent.
pub const MAIL_MAX: usize = 1_000;

/// Bytes queued for one agent.
pub const MAIL_BYTES_MAX: usize = 8 << 20;

/// Bytes queued for all agents together; beyond it the daemon accepts no work until an
/// agent has collected mail.
pub const MAIL_TOTAL_BYTES_MAX: usize = 256 << 20;

/// Notification hooks owed at once; beyond that, the oldest progress gives way.
pub const HOOKS_OWED_MAX: usize = 1_000;

/// Bytes of the notices for owed hooks, held in memory and in the store.
pub const HOOKS_OWED_BYTES_MAX: usize = 64 << 20;

/// The longest JSON value in a variable of a hook, in bytes. Three of them and the other members make up the
/// payload, for which Linux allows 128 KiB; a larger value is in a file.
pub const HOOK_VALUE_BYTES_MAX: usize = 30 << 10;

/// The part of a failed hook's standard error that is logged, in bytes.
pub const HOOK_COMPLAINT_MAX: usize = 2_000;

/// The longest time that the processes of an ended hook may take to die, in milliseconds. They are killed, so it takes one.
pub const HOOK_END_MS_MAX: u64 = 5_000;

/// Connections that wait at one hook's ACK socket; a hook needs one. The oldest gives way.
pub const ACK_PEERS_MAX: usize = 16;

/// The longest path of an ACK socket, in bytes: the size of `sun_path` without the zero at its end.
pub const ACK_SOCKET_PATH_MAX: usize = 107;

/// Agents remembered at once.
pub const AGENTS_MAX: usize = 4_096;

/// The number of these that may be names of one tree of processes.
pub const AGENTS_OF_ONE_MAX: usize = AGENTS_MAX / 4;

/// Commands that may wait for approval at once.
pub const PARKED_MAX: usize = 256;

/// Capabilities announced by one agent.
pub const CAPS_MAX: usize = 64;

/// Uses of a rate-limited rule that are remembered per agent; a rate above it counts as this rate.
pub const RATE_USES_MAX: usize = 1_000;

/// Questions to the store at once; further ones wait for their turn. Each costs three open files.
pub const STORE_READERS_MAX: usize = 4;

/// Events per page of a feed or an export.
pub const EVENT_PAGE_MAX: u16 = 500;

/// Bytes after which such a page ends. A broker message may have two million.
pub const EVENT_PAGE_BYTES_MAX: usize = 4 << 20;

/// Events that a listener may be behind before it has to go back to the store.
pub const EVENTS_BUFFERED: usize = 4_096;

/// The size from which an event counts as large, in bytes; smaller ones take at most 16 MiB together.
pub const LARGE_EVENT_BYTES_MIN: usize = 4 << 10;

/// Bytes of large events that are kept for listeners that are behind; a broker message may have two million.
pub const EVENTS_BUFFERED_BYTES_MAX: usize = 16 << 20;

/// Connections of one door. Beyond it, the oldest that has proved nothing is closed.
pub const CONNECTIONS_MAX: usize = 2_048;

/// Addresses of one daemon: two of its own, and one for each client that insists on another.
pub const ADDRESSES_MAX: usize = 16;

/// Bytes held for peers that have not proved anything yet, over all connections of a door.
pub const UNPROVEN_BYTES_MAX: usize = 32 << 20;

/// Nonces remembered; the oldest second is dropped first and raises the floor below which frames are refused.
pub const NONCES_MAX: usize = 1 << 18;

/// Frames with a future date that are kept over starts. Clocks on one machine agree, so that there are few.
pub const FRAMES_AHEAD_MAX: usize = 4_096;

/// Output kept of one stream of a worker, in bytes: the first half and the newest half.
pub const OUTPUT_BYTES_MAX: usize = 2 << 20;

/// Session tokens remembered; as many as there are agents, since one per agent is in use.
pub const TOKENS_MAX: usize = AGENTS_MAX;

/// Pictures of the screen that are ordered and not taken yet. They are taken one after the other, each within
/// [`CAPTURE_MS_MAX`]; the agent that ordered a fifth would wait in vain.
pub const CAPTURES_MAX: usize = 4;

/// The time that a program may take for one picture, in milliseconds. It takes 50 to 300.
pub const CAPTURE_MS_MAX: u64 = 10_000;

/// The size of one picture, in bytes. A screen of 8,000 by 4,000 in PNG has up to this.
pub const PICTURE_BYTES_MAX: u64 = 64 << 20;

/// Tries to take a picture per picture that the rate allows: a program that always fails is not run endlessly.
pub const CAPTURE_TRIES: u32 = 4;

/// The size of a key file, in bytes: a few keys and their dates take one or two thousand, and the list of passkeys
/// up to a hundred thousand, with the signed words of each.
pub const KEY_FILE_BYTES_MAX: usize = 256 << 10;

/// The time for which a process waits for the lock of a folder of keys, in milliseconds: a change takes a few, and
/// a process that holds it longer blocks others.
pub const FOLDER_LOCK_MS_MAX: u64 = 3_000;

/// The time for which a thread sleeps between two tries for that lock, in milliseconds.
pub const FOLDER_LOCK_TRY_MS: u64 = 20;

/// Keys of one ident that may be valid at once: two, and the few of a hasty second rotation.
pub const KEYS_PER_IDENT_MAX: usize = 8;

/// The shortest secret that a key file may hold, in bytes; less can be guessed.
pub const SECRET_LEN_MIN: usize = 16;

/// Lines of the daemon's own log that wait for the disk; further ones are left out. Room for all of them is
/// made at the start, at 32 bytes each.
pub const LOG_LINES_WAITING_MAX: usize = 8_192;

/// By how much memory may grow before its free part is given back to the system, in bytes: less is not worth the
/// milliseconds that it takes.
pub const MEMORY_SLACK_BYTES: u64 = 32 << 20;

/// The time for which a statement waits for another program's lock on the store, in milliseconds: only a person
/// with a database shell can hold one.
pub const STORE_BUSY_MS: u64 = 5_000;

/// The longest standard output in a result, in bytes, even if the worker's profile allows more. Twice as long where
/// every byte is escaped, it still fits into one frame of [`FRAME_LEN_MAX`].
pub const RESPONSE_BYTES_MAX: usize = 256 << 10;

/// The longest standard error in a result, in bytes: the first half and the last half.
pub const STDERR_BYTES_MAX: usize = 64 << 10;

/// The longest `exit_reason` in a result, in bytes. It is one sentence.
pub const REASON_LEN_MAX: usize = 1_000;

/// The size of a worker's plan as it travels to its supervisor, in bytes. A plan is paths and an environment.
pub const PLAN_BYTES_MAX: usize = 1 << 20;

/// Bytes given to a worker on its standard input: a prompt with a mebibyte of code in it, its lines numbered;
/// anything larger is a file in the workspace.
pub const STDIN_BYTES_MAX: usize = 4 << 20;

/// Workers at once, if the setting `limits.workers` is missing.
pub const WORKERS_USUAL: u32 = 4;

/// The time in which a jail has to be built, in milliseconds. It takes 5 to 30; a loaded machine gets a hundredfold.
pub const JAIL_SETUP_MS_MAX: u64 = 30_000;

/// The time in which a worker that is told to end has to do so by itself, in milliseconds; then it is killed. A6s 6.3.
pub const JAIL_GRACE_MS: u64 = 5_000;

/// The time in which a supervisor has to end every process of its jail and report it, in milliseconds; then it is killed, too.
pub const JAIL_END_MS_MAX: u64 = 10_000;

/// Directories whose placeholders are kept between runs, some forty empty folders each; the directory with the
/// oldest last use is forgotten.
pub const SPARE_FOLDERS_MAX: usize = 32;

/// The time for which the measuring of a workspace may keep its worker from starting, in milliseconds. A hundred
/// thousand files take about as long; the rest of larger ones is measured while the worker runs.
pub const GROWTH_FIRST_LOOK_MS_MAX: u64 = 500;

/// Output in one answer about a running task, in bytes; the next request continues there.
pub const OUTPUT_PAGE_BYTES_MAX: usize = 256 << 10;

/// Tasks whose output is held in memory at once; the one added first gives way, preferably one whose run is over.
pub const OUTPUT_TASKS_MAX: usize = 64;

/// Memory that the output of ended runs may take, in bytes.
pub const OUTPUT_OVER_BYTES_MAX: usize = 32 << 20;

/// The size of a rule file, in bytes; a person must be able to read what they trust.
pub const POLICY_BYTES_MAX: usize = 1 << 20;

/// Rules of one file, so that a decision remains a matter of microseconds.
pub const POLICY_RULES_MAX: usize = 2_000;

/// The longest argument of a worker, in bytes; Linux' own `MAX_ARG_STRLEN` without its closing zero.
pub const ARGUMENT_BYTES_MAX: usize = (128 << 10) - 1;

/// The longest goal that a worker finds in its environment, too, in bytes; the arguments hold it in any case.
pub const GOAL_ENV_BYTES_MAX: usize = 8 * PATH_LEN_MAX;

/// The size of a private copy of a working directory, in bytes. A larger one is a mistake, or a disk full.
pub const COPY_BYTES_MAX: u64 = 4 << 30;

/// Files, directories and links of a private copy.
pub const COPY_ENTRIES_MAX: u64 = 500_000;

/// The deepest directory of a private copy; two descriptors are open for each level.
pub const COPY_DEPTH_MAX: usize = 128;

/// The largest answer that Provost's client takes from the daemon, in bytes: a thousand tasks with all their notes.
pub const OWN_ANSWER_BYTES_MAX: usize = 64 << 20;

/// The time for which Provost's client waits for an answer beyond the wait that it requested, in milliseconds. A
/// busy daemon answers within one; only one that hangs takes this long.
pub const OWN_ANSWER_MS_MAX: u64 = 30_000;

/// Connections to the own API that one client keeps for its next questions: a host's calls are rarely more at
/// once.
pub const OWN_KEPT_MAX: usize = 4;

/// The time for which such a connection is kept, in milliseconds: half of the silence that the daemon tolerates.
pub const OWN_IDLE_MS_MAX: u64 = 5_000;

/// The longest time that a daemon may take to open its doors, in milliseconds. It takes 50; a long journal to
/// verify on a slow disk gets the rest.
pub const READY_MS_MAX: u64 = 60_000;

/// Names of tasks that a task's result lists as having run beside it; more names would not help.
pub const BESIDE_MAX: usize = 16;

/// The longest name of a model that is accepted from a worker's report about itself, in bytes.
pub const MODEL_LEN_MAX: usize = 200;

/// Files, directories and links that are examined for a scan report. At a microsecond or two each, this takes a
/// second at most; in a larger workspace the report is incomplete, and says so.
pub const SURVEY_ENTRIES_MAX: u64 = 500_000;

/// The factor by which [`SURVEY_ENTRIES_MAX`] is larger after a run: a worker may have added files, and their number
/// must not hide them.
pub const SURVEY_AFTER_TIMES: u64 = 4;

/// Files that matter for a scan report, held in memory while their task runs: some 20 MB.
pub const SURVEY_KEPT_MAX: usize = 100_000;

/// Symbolic links that lead over each other, as many as Linux follows.
pub const LINKS_FOLLOWED_MAX: u32 = 40;

/// The longest time that the examination of a workspace may take, in milliseconds: a network's disk may be slow,
/// and a task waits for it.
pub const SURVEY_MS_MAX: u64 = 20_000;

/// Local sockets that are covered for one worker; each takes a mount.
pub const SOCKETS_COVERED_MAX: usize = 1_024;

/// The longest path in a scan report or among watched files, in bytes.
pub const FINDING_PATH_BYTES_MAX: usize = 512;

/// Words of progress about one task that wait for one agent, if they come from inside a jail; newer ones replace
/// older ones.
pub const PROGRESS_WAITING_MAX: usize = 16;

/// The size of one report from inside a jail, in bytes. Larger content is a file in the workspace.
pub const WORKER_REPORT_BYTES_MAX: usize = 64 << 10;

/// Connections at once at the door of one run. A worker and a few of its tools; each may hold one frame.
pub const WORKER_CONNECTIONS_MAX: usize = 8;

/// Lines that the door of one run takes at once; after them it takes one every [`WORKER_LINE_EVERY_MS`].
pub const WORKER_LINES_BURST: u32 = 100;

/// Lines that a report counts as: it is stored, passed on, and may start a hook.
pub const WORKER_REPORT_LINES: u32 = 5;

/// Pause between two lines at the door of one run, in milliseconds, once the burst is used up: a worker
/// cannot keep the daemon busy, and progress is for people to read.
pub const WORKER_LINE_EVERY_MS: u64 = 100;

/// Bytes held for one run's connections before they have proved anything.
pub const WORKER_UNPROVEN_BYTES_MAX: usize = 4 << 20;

/// Nonces remembered for one run; within the window of time there cannot be many more lines.
pub const WORKER_NONCES_MAX: usize = 1 << 13;

/// Refused claims of one run that are recorded individually; further ones are counted and reported at its end.
pub const WORKER_CLAIMS_MAX: u32 = 8;

/// Ports inside of a jail at which the daemon answers; each takes two listeners, and one message between
/// processes carries 253 descriptors.
pub const OUTLETS_MAX: usize = 64;

/// Connections that one run may have open to the outside at once; more wait to be accepted.
pub const EGRESS_CONNECTIONS_MAX: usize = 64;

/// The size of the head of a request or answer that passes the proxy, in bytes; browsers' cookies included it stays below.
pub const EGRESS_HEAD_BYTES_MAX: usize = 64 << 10;

/// The time in which a worker has to send the head of a request, and in which a host has to be found, connected to
/// and agreed with on keys, in milliseconds. Slow links take two or three seconds.
pub const EGRESS_MS_MAX: u64 = 15_000;

/// Names of refused destinations that one run leaves on record, and bytes of each; further ones are counted.
pub const EGRESS_REFUSED_MAX: usize = 16;
/// See [`EGRESS_REFUSED_MAX`].
pub const EGRESS_NAME_LEN_MAX: usize = 100;

/// Git's answer about its configuration, in bytes; a large one has some ten thousand.
pub const GIT_ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Git's list of an index, in bytes: a hundred for an entry, so some five million entries.
pub const GIT_LIST_BYTES_MAX: u64 = 1 << 29;

/// One entry of git's index, in bytes.
pub const GIT_ENTRY_BYTES_MAX: u64 = 1 << 16;

/// Places in one index where other repositories belong. Each is protected by a mount.
pub const GIT_LINKS_MAX: usize = 4_096;

/// The longest time that git may take to answer, in milliseconds. It takes five; if it takes longer, an included file blocks.
pub const GIT_ANSWER_MS_MAX: u64 = 5_000;

/// The longest line of a worker that speaks MCP, in bytes. A result is cut at [`RESPONSE_BYTES_MAX`]; the rest is
/// room for its spelling.
pub const MCP_LINE_BYTES_MAX: usize = 4 << 20;

/// Bytes that a worker that speaks MCP may say during one run, notifications included.
pub const MCP_BYTES_MAX: usize = 64 << 20;

/// Lines of a worker that speaks MCP that are not messages; some write a greeting before they begin.
pub const MCP_GARBAGE_LINES_MAX: usize = 100;

/// The longest time that a worker that speaks MCP may take for the handshake, in milliseconds. Programs that load
/// much before they speak take seconds.
pub const MCP_HANDSHAKE_MS_MAX: u64 = 60_000;

/// The longest name of a secret that workers may be given, in bytes.
pub const SECRET_NAME_LEN_MAX: usize = 64;

/// The size of such a secret, in bytes. The longest are files with a key pair or two.
pub const SECRET_VALUE_BYTES_MAX: usize = 32 << 10;

/// Secrets that are kept; a person must be able to keep an eye on them.
pub const SECRETS_MAX: usize = 256;

/// Secrets that one worker may be given.
pub const SECRETS_PER_WORKER_MAX: usize = 16;

/// The longest name of a symbol within its file, in bytes. Generated code has some of a few hundred.
pub const SYMBOL_LEN_MAX: usize = 1_024;

/// Warnings in one answer, and conflicts in one report; the number of further ones is given, too.
pub const WARNINGS_MAX: usize = 200;

/// Callers of one symbol that are examined when it is locked.
pub const CALLERS_MAX: usize = 4_096;

/// The longest description of an intent or reason of a lock, in bytes.
pub const DESCRIPTION_LEN_MAX: usize = 4_096;

/// The longest signature of a contract, in bytes. A type's body is one, and some have a hundred members.
pub const SIGNATURE_LEN_MAX: usize = 16 << 10;

/// The size of a source file that is read, in bytes. Larger ones are generated or bundled, and no agent locks a
/// symbol there; this much takes a second or two.
pub const SOURCE_BYTES_MAX: usize = 4 << 20;

/// The longest time that the reading of one source file may take, in milliseconds. Four megabytes of code take one
/// second; noise of that size takes twenty, since a parser tries to make sense of it.
pub const SOURCE_READ_MS_MAX: u64 = 10_000;

/// The time after which a source file that took longer is tried again, in milliseconds.
pub const SOURCE_RETRY_MS: u64 = 60_000;

/// The deepest nesting in a source file, in nodes; it costs a few bytes per level. Long chains of `+` or `else if`
/// reach hundreds.
pub const SOURCE_DEPTH_MAX: usize = 10_000;

/// Symbols, and calls, imports and exports alike, that are kept of one source file.
pub const SOURCE_FACTS_MAX: usize = 100_000;

/// Bytes of names and signatures kept of one source file, per byte of it. Signatures within others, and
/// paths, make it more than one.
pub const SOURCE_TEXT_PER_BYTE: usize = 8;

/// Bytes of names and signatures that even a small file may have.
pub const SOURCE_TEXT_MIN: usize = 64 << 10;

/// Base classes that are remembered of one class.
pub const CLASS_BASES_MAX: usize = 16;

/// Classes that are searched for a member, from one upwards.
pub const CLASSES_ABOVE_MAX: usize = 16;

/// Functions around a call in which its name is searched; beyond that, the top of the file.
pub const SCOPES_MAX: usize = 64;

/// Symbols with one name among which the called one is searched. Among more, it cannot be determined.
pub const NAMESAKES_MAX: usize = 64;

/// Names that are remembered from parts that do not parse; beyond that, any name may be among them.
pub const LOST_NAMES_MAX: usize = 1_000;

/// Bytes of readings that are kept for repeated requests: some thousands of ordinary files.
pub const READINGS_BYTES_MAX: usize = 128 << 20;

/// The largest body of a request at the wit door, in bytes: the staged contents of a thousand files. wit's own
/// daemon takes twice as much.
pub const WIT_BODY_BYTES_MAX: usize = 64 << 20;

/// Bytes held for bodies at the wit door, over all its connections and sockets; further ones wait for their
/// turn.
pub const WIT_BODIES_BYTES_MAX: usize = 160 << 20;

/// A body up to this size is not counted: the highest number of connections takes as much as two large bodies.
pub const WIT_SMALL_BODY_BYTES: usize = 32 << 10;

/// The time for one whole body, in milliseconds, waiting for its turn included. The largest takes a second.
pub const WIT_BODY_MS_MAX: u64 = 30_000;

/// The longest id of a request at the wit door, in bytes, since it is sent back. wit's are UUIDs.
pub const WIT_ID_LEN_MAX: usize = 4_096;

/// Work trees of one repository that have a wit socket; no agent works in more at once.
pub const WIT_WORKTREES_MAX: usize = 64;

/// Files that are parsed at once; more only wait for the same cores.
pub const CODE_READERS_MAX: usize = 4;

/// Files whose content at the last request is remembered.
pub const CODE_STAMPS_MAX: usize = 20_000;

/// Files of one check of contracts; a commit that touches more is a rewrite.
pub const STAGED_FILES_MAX: usize = 10_000;

/// Source files whose calls are followed across files. The largest repositories have ten thousands in these
/// languages.
pub const GRAPH_FILES_MAX: usize = 50_000;

/// Bytes of names and calls of those files; an ordinary file takes five to ten thousand.
pub const GRAPH_BYTES_MAX: usize = 512 << 20;

/// Modules, members and classes that are examined to find the target of one call. Modules may pass on each other's
/// names in circles.
pub const RESOLVE_STEPS_MAX: u32 = 2_000;

/// The most steps from one to the next; each level takes some of the stack.
pub const RESOLVE_DEPTH_MAX: u32 = 48;

/// Files that are followed before a query is answered, at some 50 microseconds each; more would only be waiting
/// while a repository is read for the first time.
pub const GRAPH_SETTLE_MAX: usize = 2_000;

/// Settings of modules that extend one another.
pub const SETTINGS_CHAIN_MAX: u32 = 16;

/// Rows of one table in settings of modules.
pub const SETTINGS_ROWS_MAX: usize = 1_000;

/// Symbols that are offered to a caller whose symbol does not exist.
pub const GRAPH_CANDIDATES_MAX: usize = 20;

/// Files that were not read whole and are named in one answer; the answer says how many there are.
pub const GRAPH_NOT_WHOLE_MAX: usize = 5_000;

/// Entries of folders that are examined to find source files; at a microsecond or two each.
pub const INDEX_ENTRIES_MAX: u64 = 2_000_000;

/// The deepest folder in which source files are searched.
pub const INDEX_DEPTH_MAX: usize = 64;

/// Messages about changed files that wait for one listener; a listener with more looks at everything.
pub const INDEX_NEWS_MAX: usize = 256;

/// The size of a `.gitignore`, in bytes.
pub const IGNORE_BYTES_MAX: usize = 1 << 20;

/// The size of a `tsconfig.json` or `package.json`, in bytes.
pub const SETTINGS_BYTES_MAX: usize = 1 << 20;

/// Files of any kind whose time of writing is remembered, at some 150 bytes each.
pub const SEEN_FILES_MAX: usize = 50_000;

/// The interval at which files are examined if the system does not report changes, in milliseconds.
pub const INDEX_LOOK_EVERY_MS: u64 = 20_000;

/// Files that are read by one thread in a row before another one helps.
pub const INDEX_ALONE_MAX: usize = 64;

/// Files whose calls are followed before other requests are served in between: some milliseconds.
pub const INDEX_SETTLE_STEP: usize = 64;

/// The largest body of a request of Provost's client that carries contents of files, in bytes. A commit with more
/// is sent in pieces.
pub const OWN_FILES_BYTES_MAX: usize = 24 << 20;

/// Contents of files in one such request, in bytes, before the encoding adds a third; or one file, if it is larger.
pub const FILES_AT_ONCE_BYTES: usize = 8 << 20;

/// The interval at which the daemon checks whether its rules have changed and whether its repository still exists,
/// in seconds: about the time until a person who has saved a file goes on.
pub const POLICY_LOOK_S: u64 = 2;

//! Limits of agents that speak the Agent Client Protocol.

/// The longest line of an agent that speaks ACP, in bytes: it holds a file before and after a change.
pub const ACP_LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes that an agent that speaks ACP may say during one run. A long session repeats the output of its tools.
pub const ACP_BYTES_MAX: usize = 512 << 20;

/// Lines of an agent that speaks ACP that are not messages, and updates that may come before its session has an id.
pub const ACP_GARBAGE_LINES_MAX: usize = 100;

/// The longest time that an agent that speaks ACP may take to begin a session, in milliseconds.
pub const ACP_HANDSHAKE_MS_MAX: u64 = 60_000;

/// Permission requests of one agent that may wait at once.
pub const ACP_QUESTIONS_MAX: usize = 16;

/// Tool calls for which an agent's statements are kept for a permission request about them.
pub const ACP_CALLS_KNOWN_MAX: usize = 64;

/// The number of times in one run that an agent's mode is set again before the run ends.
pub const ACP_MODE_CHANGES_MAX: usize = 3;

/// The longest text that is sent to an agent at once, in bytes: a long message by hand; files are named instead.
pub const SAY_BYTES_MAX: usize = 16 << 10;

/// Sayings that may wait for one agent: each is kept on the disk with its task.
pub const SAYINGS_WAITING_MAX: usize = 16;

/// Sayings that are shown with a task; older ones that were delivered are forgotten.
pub const SAYINGS_KEPT_MAX: usize = 64;

/// The part of a delivered saying that is kept with its task, in bytes: its whole text is in the run's output.
pub const SAID_TEXT_KEPT: usize = 1 << 10;

/// The longest time that an agent that speaks ACP may take to end a turn that was cancelled, in milliseconds.
pub const ACP_CANCEL_MS_MAX: u64 = 10_000;

/// The longest id of an agent's session, in bytes; those of real agents are UUIDs.
pub const ACP_SESSION_ID_MAX: usize = 256;

/// Pages of an agent's list of sessions that are read if it could not continue one.
pub const ACP_SESSION_PAGES_MAX: usize = 20;

/// The time for which a question of an agent waits for its answer, in milliseconds; then it is declined, and the agent goes on.
pub const ACP_ANSWER_MS_MAX: u64 = 600_000;

/// Sessions of agents whose homes are kept for a follow-up; the oldest go first.
pub const SESSIONS_KEPT_MAX: usize = 50;

/// The longest line that `provost acp` passes on, in bytes: a prompt may hold pictures in Base64.
pub const ACP_PROXY_LINE_BYTES_MAX: usize = 32 << 20;

/// Bytes that one side has not read yet, beyond which `provost acp` reads no more from the other side.
pub const ACP_PROXY_UNREAD_BYTES_MAX: usize = 1 << 20;

/// Bytes of lines that wait for a judgement about an earlier one of their session, beyond which the agent is not read.
pub const ACP_PROXY_WAITING_BYTES_MAX: usize = 8 << 20;

/// Requests of one side that may be open at once; an editor has one for each turn.
pub const ACP_PROXY_OPEN_MAX: usize = 4_096;

/// Permission requests and writes of one agent that may wait at once: a hundred sessions with several each.
pub const ACP_PROXY_QUESTIONS_MAX: usize = 512;

/// Sessions of one agent; an editor has one for each of its threads.
pub const ACP_PROXY_SESSIONS_MAX: usize = 1_024;

/// Tool calls of all sessions for which the agent's statements are kept.
pub const ACP_PROXY_CALLS_MAX: usize = 1_024;
/// The bytes of all of these statements; see [`ACP_PROXY_CALLS_MAX`].
pub const ACP_PROXY_CALLS_BYTES_MAX: usize = 32 << 20;

/// The longest id of a message, in bytes, and longest id of a session; those in use are numbers and UUIDs.
pub const ACP_ID_BYTES_MAX: usize = 1 << 10;

/// The longest time that an agent may take to end after its editor has gone, in milliseconds, before it gets a
/// signal, and again before it is killed.
pub const ACP_PROXY_END_MS: u64 = 2_000;

/// The time for which `provost acp` waits for its turns after the editor has gone, in milliseconds: their tasks are cancelled meanwhile.
pub const ACP_JAILED_LEAVE_MS: u64 = 5_000;

/// The time for which the daemon waits for the end of a run whose task is over, in milliseconds: before that, its changes are not known.
pub const ACP_JAILED_LATE_MS: u64 = 10_000;

/// The part of a turn's differences that an editor's dialog shows, in bytes.
pub const ACP_JAILED_DIFF_BYTES_MAX: usize = 64 << 10;

/// Turns that an editor is shown again when it takes up a session: as many as one page of tasks has.
pub const ACP_JAILED_PAST_MAX: usize = 50;

/// Updates of earlier turns that it is shown again, in bytes; of older turns it is shown the words alone.
pub const ACP_JAILED_PAST_BYTES_MAX: usize = 8 << 20;

/// Pages of tasks in which `provost acp` looks for a session's turns, if all sessions speak as one agent.
pub const ACP_JAILED_PAST_PAGES_MAX: usize = 20;

/// The part of each turn's text that it is shown again, in bytes, if there is only the turn's record.
pub const ACP_JAILED_PAST_TEXT_MAX: usize = 64 << 10;

/// The longest time that the preparation of a session may delay the editor's messages, in milliseconds: it looks for the repository.
pub const ACP_PROXY_SETUP_MS_MAX: u64 = 2_000;

/// The time for which a permission request waits in the queue, in milliseconds: as long as its editor shows it, and at most a day.
pub const ACP_PROXY_PATIENCE_MS: u64 = 24 * 60 * 60 * 1000;

/// The part of one turn of an editor's session that is kept, in bytes, once the turn is over: the words and calls of a
/// long turn, whose whole output has left memory.
pub const TURN_KEPT_BYTES_MAX: usize = 1 << 20;

/// The size of the file of a turn, in bytes, at which the daemon takes out what the agent has said twice.
pub const TURN_ROUGH_BYTES_MAX: usize = 4 << 20;

/// The longest text of one message of a kept turn, in bytes.
pub const TURN_TEXT_KEPT: usize = 64 << 10;

/// The size of all kept turns of one session, in bytes; the oldest turns go first.
pub const CONVERSATION_BYTES_MAX: u64 = 8 << 20;

/// The size of the kept turns of all sessions, in bytes; the oldest turns go first.
pub const CONVERSATIONS_BYTES_MAX: u64 = 64 << 20;

/// Kept turns of all sessions; the oldest go first.
pub const CONVERSATIONS_TURNS_MAX: usize = 2_000;

/// The longest time for which a reader of a turn waits until the turn is on the disk, in milliseconds.
pub const CONVERSATION_WRITTEN_MS_MAX: u64 = 2_000;

/// Updates of a turn on one page, in bytes; a longer update has a page of its own.
pub const CONVERSATION_PAGE_BYTES: usize = 256 << 10;

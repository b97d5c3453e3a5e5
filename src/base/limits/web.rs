//! Bounds of the page for people.

/// The largest body of a request to the page's door, in bytes: a new passkey with its attestation object, in base64url.
pub const WEB_BODY_BYTES_MAX: usize = 64 << 10;

/// Rows of one list; further ones are counted, and found by the filter. A browser draws a thousand within a tenth of a second.
pub const WEB_ROWS_MAX: usize = 1_000;

/// Finished tasks of one page: some screens of them.
pub const WEB_FINISHED_PAGE: usize = 100;

/// Events of one page: some screens of them.
pub const WEB_EVENTS_PAGE: u16 = 100;

/// The newest events among which the outcome of an approval is searched.
pub const WEB_EVENTS_LOOKED_AT: u64 = 2_000;

/// Events that a returning page gets individually; a page that has missed more asks for everything again.
pub const WEB_RESUME_MAX: u64 = 1_000;

/// Seconds after which a page that has got no event gets a beat, so that both ends know that the other is alive.
pub const WEB_BEAT_EVERY_S: u64 = 1;

/// The longest text in a cell of a list, in characters: more than a screen is wide.
pub const WEB_CELL_CHARS_MAX: usize = 300;

/// Shown lines of one file of a difference; further ones are counted.
pub const WEB_DIFF_LINES_MAX: usize = 5_000;

/// The time for which a browser waits before it comes back to the stream, in milliseconds.
pub const WEB_RETRY_MS: u64 = 1_000;

/// Messages of one page: some screens of them.
pub const WEB_MESSAGES_PAGE: usize = 200;

/// Decisions that are shown: some screens.
pub const WEB_DECISIONS_SHOWN: usize = 50;

/// Applies that are listed for a person to undo: older ones are in `provost apply list`.
pub const WEB_APPLIES_SHOWN: usize = 20;

/// Events of one file that a browser saves: some megabytes. `provost journal export` writes all.
pub const WEB_EXPORT_EVENTS_MAX: usize = 5_000;

/// Changes that the page over all repositories keeps for returning readers: those of some minutes at work.
pub const HUB_CHANGES_MAX: usize = 4_096;

/// Events that wait for one reader of the page over all repositories; a reader that is further behind asks for everything again.
pub const HUB_QUEUE_MAX: usize = 1_024;

/// The longest time that a daemon may take to answer for a view of the page over all repositories, in milliseconds;
/// then it counts as one that does not answer, and nothing waits for it.
pub const HUB_VIEW_MS: u64 = 5_000;

/// The interval at which the page over all repositories asks a daemon how old what it shows is, while the page is read, in seconds.
pub const HUB_AGE_EVERY_S: u64 = 3;

/// The change of a daemon's data time that the page over all repositories tells its readers, in milliseconds.
pub const HUB_AGE_STEP_MS: u64 = 2_000;

/// The time over which the page sums up the usage of runs, in milliseconds: two weeks, a bar for each day.
pub const WEB_COST_MS: u64 = 14 * 24 * 3_600_000;

/// Earlier decisions by the same rule that are shown beside an approval: more are in the audit view.
pub const WEB_EARLIER_SHOWN: usize = 5;

/// Earlier questions of a rule that are examined for those: other workers' are left out.
pub const WEB_EARLIER_LOOKED_AT: usize = 15;

/// Events after a question among which its answer is searched, if no task's record has it.
pub const WEB_ANSWER_WITHIN: u16 = 200;

/// The longest text whose tokens are coloured, in bytes: a grammar reads it in some tens of milliseconds.
pub const COLOURED_BYTES_MAX: usize = 256 << 10;

/// Tokens of one text that are coloured, so that an answer stays below some megabytes.
pub const COLOURED_TOKENS_MAX: usize = 60_000;

/// Tasks, and messages and events, of each repository in a search over all of them.
pub const SEARCH_EACH_MAX: usize = 20;

/// The longest time that the colouring of one answer may take, in milliseconds; the rest then stays plain.
pub const COLOURED_MS_MAX: u64 = 500;

/// Places touched by an apply that are named beside its approval; a longer list is not read.
pub const TOUCHED_SHOWN_MAX: usize = 200;

/// Browsers that are signed in, and invitations that wait, at one time.
pub const WEB_SESSIONS_MAX: usize = 16;

/// The time for which a browser without requests stays signed in, in milliseconds: from one working day to the next it signs in again.
pub const WEB_SESSION_IDLE_MS_MAX: u64 = 12 * 60 * 60 * 1_000;

/// The longest time that a browser stays signed in, in seconds: seven days.
pub const WEB_SESSION_S_MAX: u64 = 7 * 24 * 60 * 60;

/// The greatest age of the last use in the file, in milliseconds: the most that a restart adds to the idle time.
pub const WEB_SESSION_NOTED_MS_MAX: u64 = 5 * 60 * 1_000;

/// Bytes of the secret of a session.
pub const WEB_SECRET_BYTES: usize = 32;

/// The largest file of sessions that is read, in bytes: many times what sixteen of them need.
pub const WEB_SESSIONS_FILE_BYTES_MAX: u64 = 256 << 10;

/// Streams of browsers that are signed in, at a time: four for each of them.
pub const WEB_STREAMS_MAX: usize = 64;

/// The time for which an invitation is valid without a setting, in seconds: a day.
pub const WEB_INVITE_S: u64 = 24 * 60 * 60;

/// Decisions about which other rules are asked, from the newest back, if no number is given.
pub const REPLAY_LAST: usize = 1_000;

/// The highest number of decisions about which other rules are asked.
pub const REPLAY_LAST_MAX: usize = 10_000;

/// The newest events among which those decisions are searched: some seconds of reading.
pub const REPLAY_EVENTS_MAX: u64 = 200_000;

/// The longest time that a look at earlier decisions may take, in milliseconds; the findings by then are reported.
pub const REPLAY_MS: u64 = 3_000;

/// Requests in one answer that other rules would decide otherwise; further ones are counted.
pub const REPLAY_SHOWN: usize = 200;

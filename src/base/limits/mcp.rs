//! Bounds of answers to agents' hosts over MCP.

/// The longest that one call of a tool waits, in seconds: hosts give up after sixty.
pub const MCP_WAIT_S_MAX: u64 = 45;

/// Output of a worker in one answer, in bytes: the answer has it twice, as text and as a member of the structure.
pub const MCP_OUTPUT_BYTES_MAX: usize = 16 << 10;

/// The text of one answer, in bytes. It repeats the structure, for hosts that hand only the text to their model.
pub const MCP_TEXT_BYTES_MAX: usize = 24 << 10;

/// Finished tasks in one answer.
pub const MCP_TASKS_MAX: usize = 100;

/// Tasks that a caller has asked for, on one page.
pub const MY_TASKS_MAX: usize = 50;

/// Finished tasks that are examined for one page of a caller's own; a page may be short, and then says where to
/// continue.
pub const MY_TASKS_SCANNED_MAX: usize = 1_000;

/// The interval at which a host is asked to look at a task, in milliseconds.
pub const MCP_POLL_MS: u64 = 2_000;

/// Tasks that one server process watches for its host, to report changes. A host polls as well.
pub const MCP_WATCHED_MAX: usize = 64;

/// The size of a whole answer, in bytes: text and structure together. The strictest host cuts at 25,000 tokens, and
/// the most compact text has about two bytes to each.
pub const MCP_ANSWER_BYTES_MAX: usize = 48 << 10;

/// The size of all arguments of a tool, in bytes as JSON: the daemon's bound for one request, less the part around
/// them.
pub const MCP_ARGUMENTS_BYTES_MAX: usize = (1 << 20) - (16 << 10);

/// Rows of one page of a list, in bytes as JSON; the text repeats them once.
pub const MCP_PAGE_BYTES_MAX: usize = 16 << 10;

/// Rows of one page of a list.
pub const MCP_PAGE_ROWS_MAX: usize = 100;

/// Rows of a page if the request names no number.
pub const MCP_PAGE_ROWS: usize = 20;

/// The longest text that an agent writes to another in one message, in bytes: it is shown whole.
pub const MESSAGE_LEN_MAX: usize = 8 << 10;

/// The part of an entry of an inbox that is shown, in bytes.
pub const INBOX_TEXT_MAX: usize = 8 << 10;

/// Entries of an inbox in one answer.
pub const INBOX_PAGE_MAX: usize = 100;

/// The largest request to the door over HTTP, and largest line over standard input, in bytes: twice the daemon's
/// bound for one request, since JSON may be nested in JSON.
pub const MCP_BODY_BYTES_MAX: usize = 2 << 20;

/// The longest id of a request that an answer about a faulty request repeats, in bytes.
pub const MCP_ID_BYTES_MAX: usize = 256;

/// The length of the reason why a message is refused, in characters: it may quote the message.
pub const MCP_WHY_CHARS_MAX: usize = 300;

/// Answers that a host has not read yet, in lines; then the server waits for the host.
pub const MCP_LINES_UNREAD_MAX: usize = 64;

/// Sessions of hosts of the older era at the door over HTTP; a further one ends the one that has been silent for
/// longest.
pub const MCP_SESSIONS_MAX: usize = 512;

/// The longest time that a session of the older era may be silent, in seconds: a night with an agent that waits for a person.
pub const MCP_SESSION_S_MAX: u64 = 12 * 60 * 60;

/// Resources about whose changes one host is told.
pub const MCP_SUBSCRIPTIONS_MAX: usize = 64;

/// The longest argument of a prompt, and longest piece of data in one, in characters.
pub const MCP_PROMPT_CHARS_MAX: usize = 8_000;

/// The largest text of a resource, in bytes.
pub const MCP_RESOURCE_BYTES_MAX: usize = 64 << 10;

/// The interval at which a stream without news sends a comment, in seconds; hosts give up silent ones after some minutes.
pub const MCP_COMMENT_EVERY_S: u64 = 15;

/// The part of each member of a result that DevIt's tools show, in bytes.
pub const DEVIT_TEXT_MAX: usize = 10 << 10;

/// The longest arguments of a host's tool, in bytes of JSON, that go into a question and on record. A hook shortens
/// longer ones.
pub const PERMISSION_BYTES_MAX: usize = 64 << 10;

/// The longest member of such arguments, in bytes of JSON, that a hook leaves whole when it shortens them.
pub const PERMISSION_MEMBER_BYTES_MAX: usize = 4 << 10;

/// The part of a longer member that the hook keeps, in bytes.
pub const PERMISSION_MEMBER_KEPT_BYTES: usize = 2 << 10;

/// Commands of one agent that may wait for approval at once, so that there is room for others: a quarter of all.
/// Agents without a key or a token count by their tree of processes, since they can use any number of names.
pub const PARKED_OF_ONE_MAX: usize = 64;

/// The processes above one that are examined; no real chain is a tenth as long.
pub const ANCESTORS_MAX: usize = 1_000;

/// Processes that are remembered because an agent has spoken from them. Beyond that, ended ones are
/// forgotten; each takes a few bytes.
pub const SPEAKERS_MAX: usize = 10_000;

/// The longest file of such processes that is read from another daemon, in bytes: more than any daemon writes.
pub const SPEAKERS_FILE_BYTES_MAX: u64 = 4 << 20;

/// The time for which a host gets no sign of life about a call that waits, in milliseconds: some time out after twenty seconds.
pub const MCP_BEAT_MS: u64 = 10_000;

/// Pages of a worker's output that are skipped before a host is told of new lines.
pub const MCP_CATCH_UP_PAGES: usize = 256;

/// The request that a form for approval shows, in characters; no form asks about a longer one.
pub const MCP_FORM_CHARS_MAX: usize = 4_000;

/// The time for which a dialog at a host can be answered, in milliseconds.
pub const HOST_DIALOG_MS_MAX: u64 = 600_000;

/// Dialogs about one approval that may be answered within that time; further ones are refused.
pub const HOST_DIALOGS_MAX: usize = 100;

/// Pixels of a picture from which a small one is made: a screen of 16,000 by 8,000.
pub const PICTURE_PIXELS_MAX: u64 = 128 << 20;

/// The highest width of a small picture, in pixels.
pub const THUMB_WIDTH_MAX: u32 = 1_280;

/// The size of a small picture in an answer, in bytes as Base64.
pub const THUMB_BYTES_MAX: usize = 700 << 10;

/// The interval at which a server process reports that its host is still alive, in seconds: the crew misses a
/// silent member after a minute by default, and after a second at the shortest.
pub const MCP_BEAT_EVERY_S: u64 = 20;

/// Places that one piece of work locks.
pub const MCP_PLACES_MAX: usize = 50;

/// Folders above absolute paths that one call of a tool may have the file system examine.
pub const MCP_FOLDERS_MAX: usize = 4_096;

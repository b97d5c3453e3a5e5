//! Prints the table of endpoints as a document.

use std::fmt::Write as _;

use super::{ENDPOINTS, Reach};

const HEAD: &str = "\
# Provost's own API

This page is printed from `src/api/table.rs`; the types are in `src/api/wire/`.

The daemon answers HTTP/1.1 with JSON on a Unix socket (a named pipe on Windows); `provost status` prints where it is. A `GET` takes
the members of its request as a query, a `POST` as a body. A client sends the header `x-provost-api: 1`, and the daemon answers
another version with status 426. Proof is the connection: a process of the same user that is not in a jail. A caller that speaks as an
agent names it in `x-provost-agent`, and shows the token of a name that has one in `authorization: Bearer`.

A refusal is `{ \"error\": WORD, \"message\": SENTENCE, \"hint\": NEXT STEP, \"data\": … }` with a status of 400 or above. A request with
`wait_ms` is answered when there is news, and after that time at the latest. While a shared database does not answer, an answer has the
header `x-provost-age-ms`: what the answer says may be that old.

## The stream of events

`GET /event-stream` answers with server-sent events that go on until the reader closes its connection: `id` is the number of the event in the journal, `event`
its kind, and `data` the same JSON as at `/events`. A reader that names the last number it has, in the header `last-event-id` or in
`after`, gets each event behind it once and in order, also over a restart of the daemon; without one it begins at the newest.
`kinds=lock_acquired,lock_freed` chooses kinds. The daemon refuses a number beyond the end of the journal with 409 `cursor_ahead`. When the
proof of the reader ends, or the daemon cannot go on, the last event is `error`, with a refusal in `data`. A comment comes after
15 seconds of silence.

```sh
curl --no-buffer --unix-socket \"$(provost status --json | jq -r '.doors[] | select(.door == \"own\").address')\" \\
    -H 'x-provost-api: 1' -H 'last-event-id: 0' http://provost/event-stream
```

## Endpoints

| endpoint | request | answer | what it does | tools of MCP | commands |
|---|---|---|---|---|---|
";

/// Returns the page `docs/protocols/own.md`.
pub fn print_markdown() -> String {
    let mut page = HEAD.to_owned();
    for row in ENDPOINTS {
        let asked = if row.asked.is_empty() { "–".into() } else { format!("`{}`", row.asked) };
        let (method, path, answer, sentence) =
            (row.which.method(), row.path, row.answer, row.sentence.trim());
        let (tools, commands) = (reach(row.tools, ""), reach(row.commands, "provost "));
        writeln!(page, "| `{method} {path}` | {asked} | `{answer}` | {sentence} | {tools} | {commands} |")
            .expect("a string takes everything");
    }
    page
}

fn reach(reach: Reach, before: &str) -> String {
    match reach {
        Reach::By(names) => names.iter().map(|it| format!("`{before}{it}`")).collect::<Vec<_>>().join(", "),
        Reach::Not(why) => format!("none: {why}"),
    }
}

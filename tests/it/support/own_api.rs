//! Provost's own API, asked under any name and with any token.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::World;

/// One request to the own API as an agent: the status and the error's code.
pub(crate) fn own(world: &World, call: (&str, &str), headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
    asked(world, call, headers, body).unwrap_or_else(|| panic!("{} {}: no whole answer", call.0, call.1))
}

/// The same, where the daemon may die meanwhile: then there is no answer.
pub(crate) fn asked(
    world: &World,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &Value,
) -> Option<(u16, Value)> {
    let mut stream = UnixStream::connect(world.own_socket()).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let body = body.to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let _until_closed = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).unwrap_or_default()))
}

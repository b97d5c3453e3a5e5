//! Messages that Provost does not judge pass to the byte, in order.

use std::fs;

use super::{Editor, world};
use crate::support::eventually;

/// Messages that a reader who writes them again would write in another way.
const ODD: [&str; 9] = [
    r#"{"jsonrpc":"2.0","method":"_vendor/told","params":{"z":1,"a":2,"z2":1.0,"n":1e3,"big":123456789012345678901234567890}}"#,
    r#"{ "method" : "_vendor/told" , "params" : [ 1 , 2.50 , "ä\u00e4\/" ] , "jsonrpc" : "2.0" }"#,
    r#"{"params":{"_meta":{"traceparent":"00-1"}},"id":"x/1","method":"_vendor/ask","jsonrpc":"2.0","extra":{"a":null}}"#,
    r#"{"jsonrpc":"2.0","id":7.0,"method":"_vendor/ask"}"#,
    r#"{"jsonrpc":"2.0","id":-3,"method":"_vendor/ask","params":null}"#,
    r#"{"jsonrpc":"2.0","id":"é","method":"session/set_mode","params":{"sessionId":"s1","modeId":"x"}}"#,
    "{\"jsonrpc\":\"2.0\",\"method\":\"_vendor/crlf\"}\r",
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?","data":[0.10]}}"#,
    r#"{"result":{"b":1,"a":0.30},"id":4711,"jsonrpc":"2.0"}"#,
];

#[test]
fn messages_that_are_none_of_its_business_pass_to_the_byte_in_both_directions() {
    let world = world();
    let mut editor = Editor::new(&world);
    for line in ODD {
        editor.raw(line.as_bytes());
    }
    editor.agent_gets("4711");
    let got = fs::read(&editor.log).unwrap();
    let got: Vec<&[u8]> = got.split(|it| *it == b'\n').filter(|it| !it.is_empty()).collect();
    let expected: Vec<&[u8]> = ODD.iter().map(|it| it.as_bytes()).collect();
    assert_eq!(got[got.len() - ODD.len()..], expected, "{}", String::from_utf8_lossy(&got.concat()));
    // Those that the agent refuses.
    let refused = ODD.iter().filter(|it| it.contains("\"method\"") && it.contains("\"id\"")).count();
    for _ in 0..refused {
        editor.until("a refusal", |it| it["error"]["code"] == -32601);
    }
    let lines: Vec<String> = ODD.iter().map(|it| format!("raw {it}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    editor.prompt("s1", &lines);
    for line in ODD {
        let came = editor.line();
        assert_eq!(String::from_utf8_lossy(&came), format!("{line}\n"));
    }
}

#[test]
fn a_last_message_without_an_end_passes() {
    use std::io::Write as _;
    let world = world();
    let mut editor = Editor::new(&world);
    editor.to.as_mut().unwrap().write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"_vendor/last\"}").unwrap();
    assert_eq!(editor.close().code(), Some(0));
    eventually("it has come", || editor.agent_got().iter().any(|it| it.contains("_vendor/last")));
}

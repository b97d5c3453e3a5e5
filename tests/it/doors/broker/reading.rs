//! The short way on which common messages are read takes and refuses what the general way does, in the same
//! words.

use provost::protocols::broker::wire::BrokerMessage;

/// Payloads of the kinds that are read on the short way, with what may be wrong or unusual in them.
const PAYLOADS: [&str; 22] = [
    r#"{"status":"working","modified_files":["src/a.rs"],"message":null}"#,
    r#"{"status":"working"}"#,
    r#"{"message":"x","status":"w\u006frking","cli":"claude","phase":"audit"}"#,
    r#"{"status":"working","cli":null,"modified_files":[]}"#,
    r#"{"status":"working","detail":{"a":[1,2.5,-3,18446744073709551615]}}"#,
    r#"{"status":"working","detail":null}"#,
    r#"{"status":"working","status":"done"}"#,
    r#"{"status":"working","other":1,"other":2}"#,
    r#"{"status":null}"#,
    r#"{"status":"working","modified_files":null}"#,
    r#"{"status":"working","modified_files":["a",1]}"#,
    r#"["working",["a"],null]"#,
    r#"["working"]"#,
    r#"{"status":"done","exports":["f"],"modified_files":["a"]}"#,
    r#"{"needs":"the parser","from":"feat-b"}"#,
    r#"{"needs":"the parser"}"#,
    r#"{"from":"feat-b","errors":["x","y"]}"#,
    r#"{"from":"feat-b","errors":[]}"#,
    r#"{}"#,
    "null",
    "1e400",
    r#"{"status":"\ud800"}"#,
];

const KINDS: [&str; 8] = [
    "agent.status",
    "agent.artifact",
    "agent.blocked",
    "agent.feedback",
    "agent.question",
    r"agent\u002estatus",
    "agent.unknown",
    "",
];

fn envelopes(kind: &str, payload: &str) -> [String; 11] {
    [
        format!(r#"{{"type":"{kind}","agent_id":"feat-a","payload":{payload}}}"#),
        format!(r#"{{"payload":{payload},"agent_id":"feat-a","type":"{kind}"}}"#),
        format!(" {{\"type\" : \"{kind}\",\n\"agent_id\":\"feat\\u002da\",\"payload\": {payload} }} "),
        format!(r#"{{"type":"{kind}","agent_id":"feat-a","payload":{payload},"more":[{{}}]}}"#),
        format!(r#"{{"type":"{kind}","agent_id":"feat-a","payload":{payload},"agent_id":"feat-b"}}"#),
        format!(r#"{{"type":"{kind}","type":"agent.blocked","agent_id":"feat-a","payload":{payload}}}"#),
        format!(r#"{{"type":"{kind}","agent_id":null,"payload":{payload}}}"#),
        format!(r#"{{"type":"{kind}","payload":{payload}}}"#),
        format!(r#"{{"type":"{kind}","agent_id":"feat-a","payload":{payload}}}x"#),
        format!(r#"{{"type":"{kind}","agent_id":"feat-a","payload":{payload}"#),
        format!(r#"["{kind}","feat-a",{payload}]"#),
    ]
}

#[test]
fn common_messages_are_read_as_all_others_are() {
    let mut good = 0;
    for text in KINDS.iter().flat_map(|kind| PAYLOADS.map(|payload| envelopes(kind, payload))).flatten() {
        let general = serde_json::from_str::<BrokerMessage>(&text).map_err(|err| err.to_string());
        good += u32::from(general.is_ok());
        assert_eq!(BrokerMessage::read(&text).map_err(|err| err.to_string()), general, "{text}");
    }
    assert!(good > 100, "{good}");
}

#[test]
fn details_have_one_bound_of_depth() {
    for depth in 100..140 {
        let detail = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let payload = format!(r#"{{"status":"working","detail":{detail}}}"#);
        let text = format!(r#"{{"type":"agent.status","agent_id":"feat-a","payload":{payload}}}"#);
        let general = serde_json::from_str::<BrokerMessage>(&text).map_err(|err| err.to_string());
        assert_eq!(BrokerMessage::read(&text).map_err(|err| err.to_string()), general, "{depth}");
    }
}

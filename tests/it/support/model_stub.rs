//! A stand-in for models' services on the loopback: Anthropic's messages, OpenAI's responses and chat completions, Gemini. It answers as
//! the query of a request wants it, and keeps what it heard and said.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// The head of a call, and its answer's body as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct StubCall {
    pub(crate) head: String,
    pub(crate) said: Vec<u8>,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<Vec<StubCall>>,
    released: Mutex<bool>,
    bell: Condvar,
}

/// The service. Its threads end with the test's process.
pub(crate) struct ModelStub {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl ModelStub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stub = Self { port: listener.local_addr().unwrap().port(), shared: Arc::default() };
        let shared = stub.shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(stream.unwrap(), &shared));
            }
        });
        stub
    }

    /// The calls so far, in the order in which they came.
    pub(crate) fn calls(&self) -> Vec<StubCall> {
        self.shared.calls.lock().unwrap().clone()
    }
}

/// Reads a request: its head, and as much of a body as that says.
fn heard(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.to_lowercase().split("content-length: ").nth(1).and_then(|it| {
        let digits: String = it.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8_lossy(&body).into_owned()))
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let Some((head, body)) = heard(&mut stream) else { return };
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let asks = |what: &str| target.contains(what);
    if asks("/release") {
        *shared.released.lock().unwrap() = true;
        shared.bell.notify_all();
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        return;
    }
    if asks("/how-many") {
        let count = shared.calls.lock().unwrap().len().to_string();
        let said =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{count}", count.len());
        let _gone = stream.write_all(said.as_bytes());
        return;
    }
    let request: Value = serde_json::from_str(&body).unwrap_or_default();
    let (kind, mut said) = answer(&target, &request);
    if asks("zip=1") {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&said).unwrap();
        said = packed.finish().unwrap();
    }
    // On record before the client can have it, and so before the client asks for more.
    shared.calls.lock().unwrap().push(StubCall { head, said: said.clone() });
    if asks("late=1") {
        // Until its client has gone.
        let _gone = stream.read(&mut [0]);
        return;
    }
    let packed = if asks("zip=1") { "Content-Encoding: gzip\r\n" } else { "" };
    let status = if asks("fail=1") { "529 Overloaded" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{packed}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
    let _gone = stream.set_nodelay(true).and_then(|()| stream.write_all(head.as_bytes()));
    let size = if asks("split=1") { 1 } else { said.len().max(1) };
    let half = said.len() / 2;
    for (n, piece) in said.chunks(size).enumerate() {
        if asks("wait=1") && n == half {
            let released = shared.released.lock().unwrap();
            drop(shared.bell.wait_while(released, |released| !*released).unwrap());
        }
        if asks("cut=1") && n == half {
            return;
        }
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        if stream.write_all(&chunk).is_err() {
            return;
        }
    }
    let _gone = stream.write_all(b"0\r\n\r\n");
}

/// An answer's type and text.
fn answer(target: &str, request: &Value) -> (&'static str, Vec<u8>) {
    let (whole, events) = ("application/json", "text/event-stream; charset=utf-8");
    // What a service, or who stands in its place, may say that is no count.
    if let Some(odd) = request["odd"].as_str() {
        return (whole, odd.as_bytes().to_vec());
    }
    // A service need not say which model has answered.
    let model = if target.contains("nameless=1") { &Value::Null } else { &request["model"] };
    let streams = request["stream"] == true;
    let sse = |all: &[(&str, Value)]| {
        let one = |(name, data): &(&str, Value)| match *name {
            "" => format!("data: {data}\r\n\r\n"),
            name => format!("event: {name}\ndata: {data}\n\n"),
        };
        all.iter().map(one).collect::<String>().into_bytes()
    };
    let path = target.split('?').next().unwrap_or_default();
    if path.ends_with("/messages") {
        let usage = json!({ "input_tokens": 100, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 25 });
        if !streams {
            let said = json!({ "type": "message", "model": model, "content": [{ "type": "text", "text": "{\"usage\":{\"input_tokens\":9}}" }], "usage": usage });
            return (whole, said.to_string().into_bytes());
        }
        let begun = json!({ "input_tokens": 100, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 1 });
        let said = [
            (
                "message_start",
                json!({ "type": "message_start", "message": { "id": "m", "model": model, "content": [], "usage": begun } }),
            ),
            ("ping", json!({ "type": "ping" })),
            (
                "content_block_delta",
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "data: {\"usage\":{\"output_tokens\":900}}\n\n" } }),
            ),
            (
                "message_delta",
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 25 } }),
            ),
            ("message_stop", json!({ "type": "message_stop" })),
        ];
        return (events, sse(&said));
    }
    if path.ends_with("/responses") {
        let usage = json!({ "input_tokens": 100, "input_tokens_details": { "cached_tokens": 7 }, "output_tokens": 25, "output_tokens_details": { "reasoning_tokens": 5 }, "total_tokens": 125 });
        let response = json!({ "id": "r", "model": model, "output": [{ "usage": { "input_tokens": 5000 } }], "usage": usage, "metadata": { "usage": { "input_tokens": 1 } } });
        if !streams {
            return (whole, response.to_string().into_bytes());
        }
        let said = [
            (
                "response.created",
                json!({ "type": "response.created", "response": { "id": "r", "model": model, "usage": null } }),
            ),
            ("response.output_text.delta", json!({ "type": "response.output_text.delta", "delta": "Done." })),
            ("response.completed", json!({ "type": "response.completed", "response": response })),
        ];
        return (events, sse(&said));
    }
    if path.ends_with("/chat/completions") {
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 25, "total_tokens": 125, "prompt_tokens_details": { "cached_tokens": 7 } });
        if !streams {
            let said = json!({ "model": model, "choices": [{ "index": 0, "message": { "content": "ok" } }], "usage": usage });
            return (whole, said.to_string().into_bytes());
        }
        let piece = |text: &str| {
            (
                "",
                json!({ "model": model, "choices": [{ "index": 0, "delta": { "content": text } }], "usage": null }),
            )
        };
        let mut said = vec![piece("I write"), piece(" it.")];
        if request["stream_options"]["include_usage"] == true {
            said.push(("", json!({ "model": model, "choices": [], "usage": usage })));
        }
        return (events, [sse(&said), b"data: [DONE]\r\n\r\n".to_vec()].concat());
    }
    let piece = |candidates: u64, thoughts: u64| {
        json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "args": { "usageMetadata": { "promptTokenCount": 9000 } } } }] } }],
                "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": candidates, "thoughtsTokenCount": thoughts, "cachedContentTokenCount": 7 },
                "modelVersion": model })
    };
    if path.contains(":streamGenerateContent") {
        let all = [piece(3, 5), piece(20, 5)];
        if target.contains("alt=sse") {
            return (events, sse(&all.map(|it| ("", it))));
        }
        return (whole, Value::from(all.to_vec()).to_string().into_bytes());
    }
    (whole, piece(20, 5).to_string().into_bytes())
}

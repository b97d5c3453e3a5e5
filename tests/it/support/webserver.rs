//! A web server on the loopback that keeps what it was asked, for tests of what comes out of a jail.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server that answers every request with the same answer. Its thread ends with the test's process.
pub(crate) struct Server {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers `200` with these words.
    pub(crate) fn saying(words: &str) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), words)
    }

    pub(crate) fn at(address: IpAddr, words: &str) -> Self {
        let body =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{words}", words.len());
        Self::answering(address, body)
    }

    /// Answers every request with these bytes.
    pub(crate) fn answering(address: IpAddr, answer: String) -> Self {
        let listener = TcpListener::bind(SocketAddr::new(address, 0)).unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), heard: Arc::default() };
        let heard = server.heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (heard, answer) = (heard.clone(), answer.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &heard, &answer));
            }
        });
        server
    }

    /// The heads of the requests so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, heard: &Mutex<Vec<String>>, answer: &str) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            // Connected, and said nothing.
            _ => break,
        }
    }
    heard.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
    // The worker may be gone already.
    let _ = stream.write_all(answer.as_bytes());
}

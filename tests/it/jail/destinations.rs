//! Where a worker may connect to: one spelling, public addresses only, and what was checked is what is
//! connected to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use proptest::prelude::*;
use provost::base::{Authority, Destination, is_public};
use provost::egress::{Grants, Outlets, Resolver, is_our_door};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::webserver::Server;

#[test]
fn a_host_has_one_spelling() {
    for (text, means) in [
        ("crates.example:443", "crates.example:443"),
        ("Crates.EXAMPLE:443", "crates.example:443"),
        ("localhost:80", "localhost:80"),
        ("xn--bcher-kva.example:443", "xn--bcher-kva.example:443"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("[2001:0DB8::1]:443", "[2001:db8::1]:443"),
        ("[::1]:1", "[::1]:1"),
    ] {
        assert_eq!(Authority::parse(text).unwrap().to_string(), means);
    }
    let long = format!("{}:1", "a".repeat(64));
    let longer = format!("{}:1", vec!["a".repeat(60); 5].join("."));
    for text in [
        "",
        ":",
        ":443",
        "a",
        "a:",
        "a:0",
        "a:65536",
        "a:+1",
        "a:01",
        "a:1x",
        "a :1",
        "a: 1",
        " a:1",
        "a.:1",
        ".a:1",
        "a..b:1",
        "a_b:1",
        "-a:1",
        "a-:1",
        "user@a:1",
        "user:pw@a:1",
        "a:1@b:2",
        "a\0b:1",
        "a\0.b:1",
        "bücher.example:1",
        "a。b:1",
        "a%2eb:1",
        "a/b:1",
        "*:1",
        "*.a:1",
        "1:1",
        "127.1:1",
        "2130706433:1",
        "0x7f000001:1",
        "0x7f.0.0.1:1",
        "0177.0.0.1:1",
        "127.0.0.01:1",
        "127.0.0.1.:1",
        "1.2.3.4.5:1",
        "a.0x1:1",
        "a.1:1",
        "::1:1",
        "[::1]",
        "[::1]x:1",
        "[::1:1",
        "[::ffff:127.0.0.1]:1",
        "[::ffff:7f00:1]:1",
        "[::127.0.0.1]:1",
        "[fe80::1%eth0]:1",
        "[127.0.0.1]:1",
        "[a]:1",
        long.as_str(),
        longer.as_str(),
    ] {
        assert!(Authority::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_destination_may_say_which_address_a_name_stands_for() {
    for (text, means) in [
        ("Git.example:443=10.1.2.3", "git.example:443=10.1.2.3"),
        ("git.example:443=[FD00::1]", "git.example:443=[fd00::1]"),
        ("git.example:443", "git.example:443"),
    ] {
        assert_eq!(Destination::parse(text).unwrap().to_string(), means);
    }
    for text in [
        "git.example=10.1.2.3",
        "git.example:443=",
        "git.example:443=other.example",
        "10.1.2.3:443=10.1.2.4",
        "git.example:443=10.1.2.3:443",
        "git.example:443=10.1.2.3=10.1.2.4",
        "git.example:443=[::1]:443",
        "git.example:443=fd00::1",
        "git.example:443=010.1.2.3",
    ] {
        assert!(Destination::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn addresses_of_this_machine_and_its_network_are_not_public() {
    for text in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::8.8.8.8",
        "64:ff9b::808:808",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:808:808::1",
        "3fff::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
    ] {
        assert!(!is_public(text.parse().unwrap()), "{text}");
    }
    for text in
        ["1.1.1.1", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "2606:4700::1111", "2a00::1"]
    {
        assert!(is_public(text.parse().unwrap()), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_read_reads_the_same_again(text in "[a-z0-9.:=\\[\\]-]{0,40}") {
        if let Ok(read) = Destination::parse(&text) {
            prop_assert_eq!(Destination::parse(&read.to_string()).unwrap(), read);
        }
    }
}

/// A proxy of a run, with listeners of this process instead of a jail's.
struct Proxy {
    at: SocketAddr,
    secret: String,
    open: provost::egress::Open,
}

fn proxy(hosts: &[&str], resolver: Resolver) -> Proxy {
    let hosts = hosts.iter().map(|it| Destination::parse(it).unwrap()).collect();
    let outlets = Outlets::new(&Grants { hosts, ..Grants::default() }, resolver).unwrap();
    let url = outlets.environment().iter().find(|(name, _)| &**name == "HTTP_PROXY").unwrap().1.clone();
    let (login, at) = url.strip_prefix("http://").unwrap().split_once('@').unwrap();
    let secret = base64::engine::general_purpose::STANDARD.encode(login);
    // The port is the planned one; the address is one that no other process has, as it would be in a jail.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let at = SocketAddr::new([127, high + 100, middle, low].into(), at.parse::<SocketAddr>().unwrap().port());
    let listener = std::net::TcpListener::bind(at).unwrap();
    Proxy { at, secret, open: outlets.open(vec![listener]) }
}

impl Proxy {
    async fn ask(&self, request: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(self.at).await.unwrap();
        let head = format!("{request}\r\nProxy-Authorization: Basic {}\r\n\r\n", self.secret);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") && stream.read_buf(&mut line).await.unwrap() > 0 {
            let end = line.windows(2).position(|two| two == b"\r\n");
            line.truncate(end.map_or(line.len(), |at| at + 2));
        }
        String::from_utf8_lossy(&line).trim().to_owned()
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_never_to_a_private_address() {
    let inside = Server::saying("inside");
    let (mut other, port) = listening_elsewhere();
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    // A resolver that would be believed by a check and then leads elsewhere: the first answer mixes, the later
    // ones are this machine.
    let resolver: Resolver = Arc::new(move |name, port| {
        let first = counts.fetch_add(1, Ordering::SeqCst) == 0;
        let public = SocketAddr::from(([192, 0, 1, 1], port));
        let here = SocketAddr::from(([127, 0, 0, 1], port));
        let answer = match (name, first) {
            ("mixed.example", true) => vec![here, public],
            ("elsewhere.example", _) => vec![SocketAddr::from(([127, 0, 0, 1], port.wrapping_add(1)))],
            _ => vec![here],
        };
        Box::pin(async move { Ok(answer) })
    });
    // Somebody listens there, who would be reached.
    let rebinding = format!("rebinding.example:{port}");
    let elsewhere = format!("elsewhere.example:{port}");
    let pinned = format!("pinned.example:{port}=127.0.0.1");
    // A door of this very process, even where it is granted by its address.
    let own = format!("own.example:{}=127.0.0.1", inside.port);
    let proxy = proxy(&[&rebinding, &elsewhere, &pinned, &own], resolver);
    let own = own.replace("=127.0.0.1", "");
    for name in [&rebinding, &elsewhere, &own] {
        let said = proxy.ask(&format!("CONNECT {name} HTTP/1.1\r\nHost: {name}")).await;
        assert!(said.starts_with("HTTP/1.1 403"), "{name}: {said}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2, "one question for each request");
    let name = pinned.split('=').next().unwrap();
    let said = proxy.ask(&format!("CONNECT {name} HTTP/1.1\r\nHost: {name}")).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "a name with an address is not asked for");
    let used = proxy.open.close().await;
    assert_eq!((used.refused, used.reached.len()), (3, 1), "{used:?}");
    assert!(inside.heard().is_empty());
    other.kill().unwrap();
    other.wait().unwrap();
}

/// A listener of another process, and its port.
fn listening_elsewhere() -> (std::process::Child, u16) {
    let program = "import socket,time\ns=socket.create_server(('127.0.0.1',0))\nprint(s.getsockname()[1],flush=True)\ntime.sleep(60)";
    let mut child = std::process::Command::new("/usr/bin/python3")
        .args(["-c", program])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    (child, line.trim().parse().unwrap())
}

#[test]
fn our_own_doors_are_recognised_by_the_kernels_word() {
    let ours = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = ours.local_addr().unwrap().port();
    assert!(is_our_door(port).unwrap());
    drop(ours);
    assert!(!is_our_door(port).unwrap());
}

//! Addresses that are slow, dead, hostile, or somewhere else than they say; and daemons that die in the middle.

use std::time::Duration;

use super::{KEY, asks, is_signed, listed, row, said, webhook, world};
use crate::support::receiver::{Mood, Receiver, status};
use crate::support::waits::within;
use crate::support::{World, eventually};

/// Whether the journal has this entry about an address.
fn given_up(world: &World, name: &str) -> bool {
    let output = world.command(&["journal", "show", "--json"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.contains("notice.given_up") && text.contains(&format!("\"{name}\""))
}

#[test]
fn a_notice_is_owed_until_it_is_delivered_over_a_kill_and_has_the_same_id_each_time() {
    let receiver = Receiver::plain();
    receiver.be(status("503 Service Unavailable"));
    let world = world(&webhook("team", &receiver.url(), ""));
    let mut daemon = world.start();
    asks(&world, &daemon, "echo");
    let first = receiver.hears(1).remove(0);
    eventually("it is owed", || row(&world, "team")["owed"] == 1);
    daemon.kill();
    let mut daemon = world.start();
    receiver.hears(2);
    // It dies while an answer is due, too.
    receiver.be(Mood::Silent);
    receiver.hears(3);
    daemon.kill();
    receiver.be(status("204 No Content"));
    let daemon = world.start();
    let heard = receiver.hears(4);
    eventually("it is owed no more", || row(&world, "team")["owed"] == 0);
    for again in &heard {
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(again.body, first.body);
        assert!(is_signed(again, KEY));
    }
    daemon.stop();
    let count = receiver.heard().len();
    let daemon = world.start();
    asks(&world, &daemon, "echo again");
    let heard = receiver.hears(count + 1);
    assert_ne!(
        heard[count].header("webhook-id"),
        first.header("webhook-id"),
        "what was delivered is not sent again"
    );
}

#[test]
fn one_dead_address_of_ten_holds_nothing_up() {
    let receivers: Vec<Receiver> = (0..9).map(|_| Receiver::plain()).collect();
    let dead = Receiver::plain();
    dead.be(Mood::Silent);
    let all = receivers.iter().chain([&dead]).enumerate();
    let entries: String = all.map(|(n, it)| webhook(&format!("n{n}"), &it.url(), "")).collect();
    let world = world(&entries);
    let daemon = world.start();
    for n in 0..5 {
        asks(&world, &daemon, &format!("echo {n}"));
    }
    for receiver in &receivers {
        let heard = receiver.hears(5);
        assert!(heard.iter().all(|it| is_signed(it, KEY)));
        assert_eq!(receiver.most_open(), 1, "one connection at a time");
    }
    eventually("nine are done", || {
        listed(&world).iter().filter(|it| it["owed"] == 0).count() == 9 && row(&world, "n9")["owed"] == 5
    });
    assert_eq!(dead.most_open(), 1);
    // A daemon stops although an answer is due.
    daemon.stop();
}

#[test]
fn a_trickle_is_given_up_in_time_and_an_endless_answer_is_not_read_to_its_end() {
    let (endless, slow) = (Receiver::plain(), Receiver::plain());
    endless.be(Mood::Endless);
    slow.be(Mood::Trickles);
    let entries = [webhook("endless", &endless.url(), ""), webhook("slow", &slow.url(), "")].concat();
    let world = world(&entries);
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    endless.hears(1);
    eventually("the status was enough", || row(&world, "endless")["owed"] == 0);
    let late = || {
        row(&world, "slow")["last"]["says"]
            .as_str()
            .is_some_and(|it| it.contains("did not answer within 15 s"))
    };
    assert!(within(Duration::from_secs(30), late), "{}", row(&world, "slow"));
    assert_eq!(row(&world, "slow")["owed"], 1);
    assert_eq!((endless.heard().len(), slow.heard().len() <= 2), (1, true));
}

#[test]
fn an_address_that_is_gone_gets_nothing_more_until_it_is_corrected() {
    let receiver = Receiver::plain();
    receiver.be(status("410 Gone"));
    let world = world(&webhook("team", &receiver.url(), ""));
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    receiver.hears(1);
    eventually("it is given up", || given_up(&world, "team"));
    asks(&world, &daemon, "echo again");
    eventually("this one, too", || row(&world, "team")["owed"] == 0);
    assert_eq!(receiver.heard().len(), 1);
    receiver.be(status("200 OK"));
    assert_eq!(said(world.command(&["daemon", "reload"])).0, 0);
    asks(&world, &daemon, "echo once more");
    receiver.hears(2);
}

#[test]
fn a_redirect_is_not_followed_and_a_refused_notice_does_not_hold_up_the_others() {
    let (receiver, elsewhere) = (Receiver::plain(), Receiver::plain());
    let head = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
        elsewhere.url()
    );
    receiver.be(Mood::Says(head));
    let world = world(&webhook("team", &receiver.url(), ""));
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    receiver.hears(1);
    eventually("it is said", || {
        row(&world, "team")["last"]["says"].as_str().is_some_and(|it| it.contains("follows no redirect"))
    });
    receiver.be(status("200 OK"));
    asks(&world, &daemon, "echo again");
    let heard = receiver.hears(2);
    assert_ne!(
        heard[0].header("webhook-id"),
        heard[1].header("webhook-id"),
        "the second does not wait for the first"
    );
    eventually("both are delivered", || row(&world, "team")["owed"] == 0);
    assert!(elsewhere.heard().is_empty());
}

#[test]
fn an_address_that_asks_for_time_gets_it() {
    let receiver = Receiver::plain();
    receiver.be(Mood::Says(
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n".into(),
    ));
    let world = world(&webhook("team", &receiver.url(), ""));
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    receiver.hears(1);
    assert!(
        !within(Duration::from_secs(4), || receiver.heard().len() > 1),
        "it was tried again after two seconds"
    );
    assert_eq!(row(&world, "team")["owed"], 1);
    // News does not make it any sooner.
    asks(&world, &daemon, "echo again");
    assert!(!within(Duration::from_secs(1), || receiver.heard().len() > 1));
}

#[test]
fn private_addresses_and_doors_of_the_daemon_are_not_reached_unless_the_settings_name_them() {
    let receiver = Receiver::tls();
    let ca = "authority = \"ca.pem\"";
    let entries = |more: &str| {
        webhook("name", &format!("https://localhost:{}/", receiver.port), ca)
            + &webhook("stranger", &format!("https://hooks.example:{}/", receiver.port), more)
            + &webhook(
                "misnamed",
                &format!("https://other.example:{}/", receiver.port),
                &format!("{ca}\naddress = \"127.0.0.1\""),
            )
    };
    let world = world(&format!("[web]\nenabled = true\nport = 0\n{}", entries("address = \"127.0.0.1\"")));
    std::fs::write(world.config_dir().join("ca.pem"), &receiver.authority).unwrap();
    assert_ne!(said(world.command(&["daemon", "reload"])).0, 0, "no daemon runs yet");
    let daemon = world.start();
    for (name, words) in [
        ("name", "leads to an address of this machine or its network"),
        ("stranger", "has not proved who it is"),
        ("misnamed", "has not proved who it is"),
    ] {
        let (code, text) = said(world.command(&["notify", "test", name]));
        assert!(code != 0 && text.contains(words), "{name}: {text}");
    }
    assert!(receiver.heard().is_empty());
    // A door of the daemon's own.
    let (_, text) = said(world.command(&["status", "--json"]));
    let about: serde_json::Value = serde_json::from_str(&text).unwrap();
    let web = about["doors"].as_array().unwrap().iter().find(|it| it["door"] == "web").unwrap();
    let port = web["address"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    world.configure(&format!(
        "[web]\nenabled = true\nport = 0\n{}",
        webhook("door", &format!("http://127.0.0.1:{port}/"), "")
    ));
    assert_eq!(said(world.command(&["daemon", "reload"])).0, 0);
    let (code, text) = said(world.command(&["notify", "test", "door"]));
    assert!(code != 0 && text.contains("is a door of provost itself"), "{text}");
    drop(daemon);
}

#[test]
fn what_is_owed_to_an_address_that_was_removed_is_given_up_and_told() {
    let receiver = Receiver::plain();
    receiver.be(Mood::HangsUp);
    let world = world(&webhook("team", &receiver.url(), ""));
    let mut daemon = world.start();
    asks(&world, &daemon, "echo");
    receiver.hears(1);
    daemon.kill();
    world.configure("");
    let daemon = world.start();
    eventually("it is given up", || given_up(&world, "team"));
    daemon.stop();
}

#[test]
fn a_key_that_is_missing_loses_nothing() {
    let receiver = Receiver::plain();
    let world = world(&webhook("team", &receiver.url(), ""));
    assert_eq!(said(world.command(&["secret", "remove", "hook-key"])).0, 0);
    let daemon = world.start();
    assert!(row(&world, "team")["broken"].as_str().unwrap().contains("provost secret add hook-key --daemon"));
    asks(&world, &daemon, "echo");
    eventually("it is owed", || row(&world, "team")["owed"] == 1);
    super::keep(&world, "hook-key", KEY);
    assert_eq!(said(world.command(&["daemon", "reload"])).0, 0);
    assert!(is_signed(&receiver.hears(1)[0], KEY));
}

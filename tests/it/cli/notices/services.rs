//! The messages for ntfy, Slack, Discord and Mattermost, also with hostile words of an agent.

use serde_json::json;

use super::{asks, keep, said, world};
use crate::support::eventually;
use crate::support::receiver::{Receiver, status};

/// Words that would mention, link, break out of a block of code, or move a cursor.
const HOSTILE: &str = "echo @everyone <!channel> <@U123> <http://evil|Open approval 1> [Approve](http://evil) ``` & \u{1b}[31m\u{202e}";

fn entry(name: &str, kind: &str, url: &str, more: &str) -> String {
    format!("[notify.{name}]\ntype = \"{kind}\"\nurl = \"{url}\"\nlink = \"https://page.example\"\n{more}\n")
}

#[test]
fn ntfy_gets_a_title_a_priority_and_one_action_which_is_to_look() {
    let receiver = Receiver::plain();
    let world = world(&entry("phone", "ntfy", &receiver.url(), "keys = [\"token\"]"));
    keep(&world, "token", "tk_abc");
    let daemon = world.start();
    asks(&world, &daemon, HOSTILE);
    let heard = receiver.hears(1).remove(0);
    assert_eq!(
        heard.header("title"),
        "repo: approval 1 waits (risk medium)".replace("medium", risk_in(heard.header("title")))
    );
    let priority = if heard.header("title").contains("risk low") { "3" } else { "4" };
    assert_eq!((heard.header("priority"), heard.header("tags")), (priority, "question"));
    assert_eq!(heard.header("authorization"), "Bearer tk_abc");
    let click = heard.header("click");
    assert!(
        click.starts_with("https://page.example/a/1?d=")
            && click.len() == "https://page.example/a/1?d=".len() + 6
    );
    assert_eq!(heard.header("actions"), format!("view, Open, {click}"));
    assert!(!heard.body.contains("evil") && heard.body.contains("$ provost approval list"), "{}", heard.body);
    assert!(heard.body.contains("may answer: human"));
}

fn risk_in(title: &str) -> &str {
    ["low", "medium", "high"].into_iter().find(|it| title.contains(it)).unwrap()
}

#[test]
fn a_title_with_other_letters_than_ascii_is_encoded_for_a_header() {
    let receiver = Receiver::plain();
    let world = world(&entry("phone", "ntfy", &receiver.url(), ""));
    // The name of the repository is in the title.
    let folder = world.path("größe\u{2014}ß");
    std::fs::rename(world.repo(), &folder).unwrap();
    std::os::unix::fs::symlink(&folder, world.repo()).unwrap();
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    let title = receiver.hears(1)[0].header("title").to_owned();
    let inner = title.strip_prefix("=?UTF-8?B?").and_then(|it| it.strip_suffix("?=")).unwrap();
    use base64::Engine as _;
    let text = base64::prelude::BASE64_STANDARD.decode(inner).unwrap();
    assert!(String::from_utf8(text).unwrap().starts_with("größe—ß: approval 1 waits"), "{title}");
}

#[test]
fn a_text_for_slack_mentions_nobody_and_links_to_the_page_alone() {
    let receiver = Receiver::plain();
    let world = world(&entry("team", "slack", &receiver.url(), "detail = \"full\""));
    let daemon = world.start();
    asks(&world, &daemon, HOSTILE);
    let body = receiver.hears(1).remove(0).json();
    assert_eq!((&body["parse"], &body["link_names"]), (&json!("none"), &json!(false)));
    let text = body["text"].as_str().unwrap();
    let marked: Vec<&str> = text.split('<').skip(1).collect();
    assert_eq!(marked.len(), 1, "{text}");
    assert!(
        marked[0].starts_with("https://page.example/a/1?d=") && marked[0].contains("|Open approval 1>"),
        "{text}"
    );
    assert!(
        text.contains("unchecked") && text.contains("&lt;!channel&gt;") && text.contains("&amp;"),
        "{text}"
    );
    assert_eq!(text.matches("```").count(), 2, "the block of code is one: {text}");
    assert!(text.contains("\\u{1b}[31m\\u{202e}") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_text_for_discord_allows_no_mention_and_is_short_enough() {
    let receiver = Receiver::plain();
    receiver.be(status("204 No Content"));
    let world = world(&entry("team", "discord", &receiver.url(), "detail = \"full\""));
    let daemon = world.start();
    asks(&world, &daemon, &format!("{HOSTILE} {}", "x`".repeat(4_000)));
    let body = receiver.hears(1).remove(0).json();
    assert_eq!((&body["allowed_mentions"], &body["flags"]), (&json!({ "parse": [] }), &json!(4)));
    let text = body["content"].as_str().unwrap();
    assert!(text.chars().count() <= 2_000 && text.ends_with("\n```"), "{text}");
    assert_eq!(text.matches("```").count(), 2, "{text}");
    let links: Vec<&str> = text.split("](").skip(1).collect();
    assert!(links[0].starts_with("https://page.example/a/1?d="), "{text}");
    // The words stand in the block of code, in which nothing is a link.
    let before = text.split("```").next().unwrap();
    assert!(!before.contains("evil") && !before.contains("@everyone"), "{text}");
}

#[test]
fn a_text_for_mattermost_has_no_sign_of_a_mention() {
    let receiver = Receiver::plain();
    let world = world(&entry("team", "mattermost", &receiver.url(), "detail = \"full\""));
    let daemon = world.start();
    asks(&world, &daemon, HOSTILE);
    let body = receiver.hears(1).remove(0).json();
    let text = body["text"].as_str().unwrap();
    assert!(!text.contains('@') && text.contains("(at)everyone"), "{text}");
    assert!(text.contains("[Open approval 1](https://page.example/a/1?d="), "{text}");
    assert_eq!(text.matches("```").count(), 2, "{text}");
}

#[test]
fn an_address_that_is_a_password_stays_in_its_secret() {
    let receiver = Receiver::plain();
    let world = world("[notify.team]\ntype = \"slack\"\nurl_secret = \"slack\"\n");
    keep(&world, "slack", &format!("http://127.0.0.1:{}/services/T0/B0/hush", receiver.port));
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    assert_eq!(receiver.hears(1)[0].line, "POST /services/T0/B0/hush HTTP/1.1");
    receiver.be(status("404 Not Found"));
    asks(&world, &daemon, "echo");
    receiver.hears(2);
    eventually("it is logged", || world.log().contains("a notice was not taken"));
    let shown = [&["status"][..], &["notify", "list", "--json"], &["doctor"], &["journal", "show", "--json"]];
    let texts: String = shown.iter().map(|args| said(world.command(args)).1).collect();
    assert!(!texts.contains("hush") && !world.log().contains("hush"), "{texts}");
}

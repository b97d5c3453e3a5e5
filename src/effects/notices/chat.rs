//! Chats: a text with a link. No person is mentioned, no link but ours is one, and nothing that an agent wrote is
//! markup: it stands in a block of code, in which no chat looks for any of these.

use serde_json::json;

use super::Request;
use super::told::{Told, UNCHECKED};
use provost_base::limits::NOTICE_TEXT_CHARS_MAX;

/// Slack's own escapes. What begins with `<` would be a link or a mention.
pub(super) fn slack(told: &Told) -> Request {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let link = |url: &str, name: &str| format!("<{url}|{}>", escape(name));
    let text = text(told, escape, link);
    // `parse: none` keeps Slack from looking for names and addresses in what is not marked as one.
    body(&json!({
        "text": text, "parse": "none", "link_names": false, "mrkdwn": true, "unfurl_links": false, "unfurl_media": false,
    }))
}

/// Discord's Markdown; mentions are off for the whole message, and so are previews of links (flag 4).
pub(super) fn discord(told: &Told) -> Request {
    let text = text(told, markdown, |url, name| format!("[{}]({url})", markdown(name)));
    body(&json!({ "content": text, "allowed_mentions": { "parse": [] }, "flags": 4 }))
}

/// Mattermost's Markdown. It looks for mentions in every text, so that no `@` is left.
pub(super) fn mattermost(told: &Told) -> Request {
    let escape = |text: &str| markdown(&text.replace('@', "(at)"));
    let text = text(told, escape, |url, name| format!("[{}]({url})", markdown(name)));
    body(&json!({ "text": text }))
}

/// Every sign that Markdown may act upon, behind a backslash. An address is none where its colon is.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\`*_{}[]()<>#+-.!|~:&".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The whole text: the link and the facts come first. What is too long is cut at the end, where agents' words are, and a
/// block of code is closed all the same.
fn text(told: &Told, escape: impl Fn(&str) -> String, link: impl Fn(&str, &str) -> String) -> String {
    let mut lines = vec![escape(&told.title)];
    lines.extend(told.facts.iter().map(|it| escape(it)));
    lines.extend(told.commands.iter().map(|it| format!("`{}`", escape_in_code(it, &escape))));
    lines.extend(told.link.iter().map(|(url, name)| link(url, name)));
    let mut whole: String = lines.join("\n").chars().take(NOTICE_TEXT_CHARS_MAX).collect();
    for words in &told.words {
        let frame = format!("\n{} ({})\n```\n", escape(UNCHECKED), words.what);
        let used = whole.chars().count() + frame.chars().count() + "\n```".len();
        let Some(room) = NOTICE_TEXT_CHARS_MAX.checked_sub(used).filter(|room| *room > 0) else { break };
        let inside = escape_in_code(&words.text, &escape);
        let inside: String = inside.chars().take(room).collect();
        whole.push_str(&format!("{frame}{inside}\n```"));
    }
    whole
}

/// Within code nothing is markup but its end. Slack reads its escapes there, too, and Mattermost is trusted with no `@`.
fn escape_in_code(text: &str, escape: &impl Fn(&str) -> String) -> String {
    let reads_entities = escape("<") == "&lt;";
    let leaves_no_at = !escape("@").contains('@');
    let mut text = text.replace('`', "'");
    if reads_entities {
        text = escape(&text);
    }
    if leaves_no_at {
        text = text.replace('@', "(at)");
    }
    text
}

fn body(value: &serde_json::Value) -> Request {
    (vec![("content-type", "application/json".to_owned())], value.to_string().into_bytes())
}

//! Chats: a text with a link. The text mentions no person, its only link is ours, and no text of an agent is
//! markup: agents' texts stand in a block of code, in which no chat looks for mentions, links or markup.

use serde_json::json;

use super::Request;
use super::notice_text::{NoticeText, UNCHECKED};
use provost_base::limits::NOTICE_TEXT_CHARS_MAX;

/// Makes a message with Slack's own escapes. A text that begins with `<` would be a link or a mention.
pub(super) fn slack(told: &NoticeText) -> Request {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let link = |url: &str, name: &str| format!("<{url}|{}>", escape(name));
    let text = text(told, escape, link);
    // `parse: none` keeps Slack from looking for names and addresses in plain text.
    body(&json!({
        "text": text, "parse": "none", "link_names": false, "mrkdwn": true, "unfurl_links": false, "unfurl_media": false,
    }))
}

/// Makes a message in Discord's Markdown; mentions are off for the whole message, and so are previews of links (flag 4).
pub(super) fn discord(told: &NoticeText) -> Request {
    let text = text(told, markdown, |url, name| format!("[{}]({url})", markdown(name)));
    body(&json!({ "content": text, "allowed_mentions": { "parse": [] }, "flags": 4 }))
}

/// Makes a message in Mattermost's Markdown. Mattermost looks for mentions in every text, so each `@` is replaced.
pub(super) fn mattermost(told: &NoticeText) -> Request {
    let escape = |text: &str| markdown(&text.replace('@', "(at)"));
    let text = text(told, escape, |url, name| format!("[{}]({url})", markdown(name)));
    body(&json!({ "text": text }))
}

/// Puts a backslash before every sign that Markdown may act upon, also the colon, without which an address is no link.
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

/// Returns the whole text: the link and the facts come first. A text that is too long is cut at its end, where agents' words are,
/// and a block of code is closed all the same.
fn text(told: &NoticeText, escape: impl Fn(&str) -> String, link: impl Fn(&str, &str) -> String) -> String {
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

/// Escapes the end of a block of code, the only markup within it. Slack reads its escapes there, too, and `@` is replaced for Mattermost.
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

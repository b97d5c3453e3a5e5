//! ntfy: a text with headers. The only action opens the link: an action of kind `http` would answer without a person.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::Request;
use super::notice_text::{NoticeText, UNCHECKED};
use provost_base::limits::NOTICE_TEXT_CHARS_MAX;
use provost_base::{Secret, clipped};
use provost_domain::{NoticeAbout, NoticeKind, OutgoingNotice, Risk};

/// Longest title, in bytes.
const TITLE_BYTES_MAX: usize = 200;

pub(super) fn request(notice: &OutgoingNotice, told: &NoticeText, token: Option<&Secret>) -> Request {
    let mut headers = vec![
        ("content-type", "text/plain; charset=utf-8".to_owned()),
        ("title", header(&clipped(&told.title, TITLE_BYTES_MAX))),
        ("priority", priority(notice).to_string()),
        ("tags", tag(notice.kind).to_owned()),
    ];
    if let Some((url, _)) = &told.link {
        headers.push(("click", url.clone()));
        headers.push(("actions", format!("view, Open, {url}")));
    }
    if let Some(token) = token.and_then(|it| std::str::from_utf8(it.expose()).ok()) {
        headers.push(("authorization", format!("Bearer {}", token.trim())));
    }
    let mut text = told.lines().join("\n");
    for words in &told.words {
        text.push_str(&format!("\n\n{UNCHECKED}\n({}) {}", words.what, words.text));
    }
    let text: String = text.chars().take(NOTICE_TEXT_CHARS_MAX).collect();
    (headers, text.into_bytes())
}

/// Returns a text in the form of a header: letters outside of ASCII as RFC 2047 writes them, which ntfy reads.
fn header(text: &str) -> String {
    match text.bytes().all(|it| matches!(it, b' '..=b'~')) {
        true => text.to_owned(),
        false => format!("=?UTF-8?B?{}?=", BASE64_STANDARD.encode(text)),
    }
}

/// Returns the priority: 3 is usual, 4 is high. 5 rings through silence, and no agent's question gets it.
fn priority(notice: &OutgoingNotice) -> u8 {
    match (&notice.about, notice.kind) {
        (NoticeAbout::Approval(_), NoticeKind::Answered) => 2,
        (NoticeAbout::Approval(facts), _) if facts.risk == Risk::Low => 3,
        (NoticeAbout::Approval(_), _) => 4,
        (_, NoticeKind::Passkey | NoticeKind::Tainted) => 4,
        _ => 3,
    }
}

fn tag(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Approval | NoticeKind::Permission => "question",
        NoticeKind::Answered => "ballot_box_with_check",
        NoticeKind::Failed => "x",
        NoticeKind::Done => "white_check_mark",
        NoticeKind::Tainted => "warning",
        NoticeKind::Passkey => "key",
    }
}

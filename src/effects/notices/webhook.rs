//! Standard Webhooks 1.0: a JSON body, signed with each key, under an id that is the same for each attempt.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::Request;
use super::notice_text::{NoticeText, UNCHECKED};
use provost_base::limits::NOTICE_BODY_BYTES_MAX;
use provost_base::{Secret, Timestamp};
use provost_domain::{ApprovalFacts, NoticeAbout, OutgoingNotice};

/// The prefix of each key, as its owner hands it out.
const PREFIX: &str = "whsec_";
/// Shortest and longest key, in bytes.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Makes the request for one attempt.
///
/// # Errors
/// A key cannot be used; the sentence quotes no part of it.
pub(super) fn request(
    notice: &OutgoingNotice,
    told: &NoticeText,
    (id, now): (&str, Timestamp),
    keys: &[Secret],
) -> Result<Request, String> {
    let body = body(notice, told);
    let seconds = now.seconds();
    let headers = vec![
        ("content-type", "application/json".to_owned()),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", signatures(keys, id, seconds, &body)?),
    ];
    Ok((headers, body))
}

/// Returns the header `webhook-signature`: one signature for each key, so that a receiver with either of two keys accepts it while
/// one replaces the other.
///
/// # Errors
/// No key is given, or one is not `whsec_` and 24 to 64 bytes in Base64.
pub fn signatures(keys: &[Secret], id: &str, seconds: u64, body: &[u8]) -> Result<String, String> {
    if keys.is_empty() {
        return Err("it has no key that signs: name one in `keys`".into());
    }
    let sign = |key: &Secret| {
        let wrong =
            || format!("its key is not `{PREFIX}` and 24 to 64 bytes in Base64, as receivers hand them out");
        let text = std::str::from_utf8(key.expose()).ok().and_then(|it| it.trim().strip_prefix(PREFIX));
        let bytes = text.and_then(|it| BASE64_STANDARD.decode(it).ok()).map(Secret::new).ok_or_else(wrong)?;
        if !KEY_BYTES.contains(&bytes.expose().len()) {
            return Err(wrong());
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(bytes.expose()).map_err(|_| wrong())?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        Ok(format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes())))
    };
    Ok(keys.iter().map(sign).collect::<Result<Vec<_>, String>>()?.join(" "))
}

fn body(notice: &OutgoingNotice, told: &NoticeText) -> Vec<u8> {
    let mut data = json!({
        "notice": notice.kind,
        "event": notice.event,
        "repository": told.repository,
        "title": told.title,
        "link": told.link.as_ref().map(|(url, _)| url),
        "commands": told.commands,
    });
    match &notice.about {
        NoticeAbout::Approval(facts) => data["approval"] = approval(facts),
        NoticeAbout::Task(facts) => data["task"] = json!(facts),
        NoticeAbout::Passkey { what, name } => data["passkey"] = json!({ "what": what, "name": name }),
        NoticeAbout::Sample => {}
    }
    if !notice.words.is_empty() {
        let texts: serde_json::Map<String, Value> =
            notice.words.iter().map(|it| (it.what.to_string(), json!(it.text))).collect();
        data["words"] = json!({ "note": UNCHECKED, "texts": texts });
    }
    let text = |data: &Value| {
        json!({
            "type": format!("provost.{}", told.event), "timestamp": notice.at.rfc3339(), "data": data,
        })
        .to_string()
    };
    let whole = text(&data);
    if whole.len() <= NOTICE_BODY_BYTES_MAX {
        return whole.into_bytes();
    }
    // Texts of agents are left out: the daemon's own facts have a bound of their own.
    data["words"] = json!({ "note": "left out, since they are too long", "texts": {} });
    text(&data).into_bytes()
}

fn approval(facts: &ApprovalFacts) -> Value {
    let mut value = json!(facts);
    for name in ["asked_at", "expires_at"] {
        let at = value[name].as_i64().map(Timestamp).unwrap_or_default();
        value[name] = json!(at.rfc3339());
    }
    value
}

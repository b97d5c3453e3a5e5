//! The browsers that are signed in to the page.

use provost_api::wire::WebSession;
use provost_base::visible;

use super::block::Empty;
use super::{Block, Cell, Command, Here, Row, Rows, Tone, Word};

/// Lists them, each with the command that signs it out.
pub fn web_sessions(all: &[WebSession]) -> Block {
    Block::List(Rows {
        title: "Browsers that are signed in".into(),
        columns: vec!["Who", "At", "Since", "Last used", "Until"],
        rows: all.iter().map(row).collect(),
        more: 0,
        empty: Empty::new("No browser is signed in.", None),
    })
}

fn row(it: &WebSession) -> Row {
    let who = match (it.reader.as_str(), &it.passkey) {
        ("passkey", Some(name)) => Word::new(visible(name), Tone::Good),
        ("passkey", None) => Word::new("a passkey", Tone::Good),
        ("invitation", _) => Word::new("an invitation, not opened", Tone::Waiting),
        _ => Word::new("invited, sees states", Tone::Quiet),
    };
    let end = Command::new("End", format!("provost web session end {}", it.id));
    let here = Here::verb("end-web-session", serde_json::json!({ "id": it.id }));
    Row {
        key: format!("web-session:{}", it.id),
        to: None,
        cells: vec![
            Cell::State(who),
            Cell::code(&it.origin),
            Cell::time(Some(&it.began_at)),
            Cell::time(Some(&it.used_at)),
            Cell::Until { at: it.ends_at.clone(), from: None },
        ],
        commands: vec![end.or_here(here)],
    }
}

//! The passkeys whose signatures count, and the ways to add one.

use provost_api::wire::{Passkey, Passkeys};
use provost_base::limits::PASSKEY_NAME_BYTES_MAX;
use provost_base::visible;

use super::block::Empty;
use super::{Block, Cell, Command, Enrolling, Here, Line, Row, Rows, Shown, Signer, Tone, Vouching, Word};

/// Returns the passkeys that may sign.
pub(crate) fn signers(known: &Passkeys) -> Vec<Signer> {
    let good = known.passkeys.iter().filter(|it| it.revoked_at.is_none());
    let page = |host: &str| {
        let is_at = |origin: &&String| {
            let authority = origin.split_once("://").map_or("", |(_, it)| it);
            authority.split(':').next() == Some(host)
        };
        known.origins.iter().find(is_at).cloned()
    };
    good.map(|it| Signer { name: visible(&it.name), rp_id: visible(&it.rp_id), page: page(&it.rp_id) })
        .collect()
}

/// Says why no passkey counts at the moment, and returns the command that says more; `None` where passkeys may count.
pub(crate) fn none_counts(known: &Passkeys) -> Option<(String, Command)> {
    let look = || Command::new("Look", "provost passkey list");
    if let Some(problem) = &known.problem {
        return Some((format!("No passkey counts: {}.", visible(problem)), look()));
    }
    let until = known.waits_until.as_ref()?;
    Some((format!("All passkeys were given up, and none counts until {until}."), look()))
}

/// Shows the list of passkeys, and the place where a further one is enrolled.
pub fn passkeys(known: &Passkeys) -> Shown {
    let mut blocks = Vec::new();
    let none = none_counts(known).map(|(why, _)| why);
    if let Some(text) = &none {
        blocks.push(Block::Notice(Line { text: text.clone(), tone: Tone::Bad }));
    }
    let why_not = none.or_else(|| {
        known
            .of_root
            .then(|| "The list is root's, and only root changes it: sudo provost passkey install.".into())
    });
    let signers = signers(known);
    if let Some(waiting) = &known.waiting {
        blocks.push(Block::Vouch(Box::new(Vouching {
            waiting: waiting.clone(),
            name: visible(&waiting.name),
            host: visible(&waiting.rp_id),
            daemon: known.daemon.clone(),
            signers: signers.clone(),
        })));
    }
    let rows = Rows {
        title: "Passkeys that answer".into(),
        columns: vec!["Passkey", "For pages at", "Kind", "Enrolled", "By", "Last used", "Counter"],
        rows: known.passkeys.iter().map(|it| row(it, known, &signers)).collect(),
        more: 0,
        empty: Empty::new("No passkey is enrolled, so that none can answer.", Some("provost passkey add")),
    };
    blocks.push(Block::List(rows));
    blocks.push(Block::Enrol(Enrolling {
        why_not,
        code: Command::new("Print a code", "provost passkey add"),
        vouch: !signers.is_empty(),
        daemon: known.daemon.clone(),
        signers,
        name_bytes_max: PASSKEY_NAME_BYTES_MAX,
    }));
    Shown::new("Passkeys", blocks)
}

/// Says in words how a passkey was added.
fn source(it: &Passkey) -> &str {
    match it.source.as_str() {
        "code" => "a code at a terminal",
        "vouched" => "the signature of another one",
        "root" => "root",
        other => other,
    }
}

fn row(it: &Passkey, known: &Passkeys, signers: &[Signer]) -> Row {
    let name = match &it.revoked_at {
        Some(_) => Word::new(format!("{}, revoked", visible(&it.name)), Tone::Quiet),
        None => Word::new(visible(&it.name), Tone::Good),
    };
    let kind = if it.synced { "synced by its manager" } else { "stays on its device" };
    let revoke = || {
        let line = format!("provost passkey revoke -- {}", it.id);
        let here = Here::Revoke {
            passkey: it.id.clone(),
            name: visible(&it.name),
            daemon: known.daemon.clone(),
            signers: signers.to_vec(),
        };
        Command { here: (!known.of_root).then_some(here), ..Command::new("Revoke", line) }
    };
    Row {
        key: format!("passkey:{}", it.id),
        to: None,
        cells: vec![
            Cell::State(name),
            Cell::code(&it.rp_id),
            Cell::text(&format!("{kind}, {}", it.algorithm)),
            Cell::time(it.added_at.as_deref()),
            Cell::text(source(it)),
            Cell::time(it.used_at.as_deref()),
            Cell::text(&it.counter.to_string()),
        ],
        commands: if it.revoked_at.is_none() { vec![revoke()] } else { Vec::new() },
    }
}

//! Skipped numbers of the journal: each gap is sealed, and is one of the store's own facts.

use serde::{Deserialize, Serialize};

use super::session::{Session, Step};
use super::unreadable;
use crate::codec::{parse, text};
use crate::journal::Gap;
use crate::{Anchor, StoreError};
use provost_base::{Digest, EventSeq};

/// The beginning of these facts' keys; the last event before the gap follows.
const GAP: &str = "gap:";

#[derive(Default, Serialize, Deserialize)]
struct Body {
    after: Anchor,
    to: EventSeq,
    seal: Digest,
}

/// Returns all gaps of a repository's journal. A gap that cannot even be read counts as one with a broken seal.
///
/// # Errors
/// If the database does not answer.
pub(super) fn gaps(session: &mut Session, repo: i32) -> Result<Vec<Gap>, StoreError> {
    let sql = "select left(id, 64), left(body, 1024) from provost.meta where repo = $1 and id like 'gap:%'";
    let rows = session.rows(Step::new(sql).with(repo))?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let (id, body): (&str, &str) =
            (row.try_get(0).map_err(unreadable)?, row.try_get(1).map_err(unreadable)?);
        let seq = id.strip_prefix(GAP).and_then(|it| it.parse().ok()).unwrap_or_default();
        let Body { after, to, seal } = parse(body).unwrap_or_default();
        let after = if after.seq == EventSeq(seq) {
            after
        } else {
            Anchor { seq: EventSeq(seq), mac: Digest::default() }
        };
        found.push(Gap { after, to, seal });
    }
    Ok(found)
}

/// Returns the statement that writes a gap.
///
/// # Errors
/// If it cannot be written as text.
pub(super) fn step(repo: i32, it: &Gap) -> Result<Step, StoreError> {
    let body = text(&Body { after: it.after, to: it.to, seal: it.seal })?;
    Ok(Step::new("insert into provost.meta (repo, id, body) values ($1, $2, $3)")
        .with(repo)
        .with(format!("{GAP}{}", it.after.seq.0))
        .with(body))
}

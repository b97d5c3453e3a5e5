//! The verb that puts an event outside of the core on record.

use serde::{Deserialize, Serialize};

use crate::{EventKind, Outbox};
use provost_base::Json;

/// Record something that happened outside the core and belongs in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The kind of occurrence: `daemon.started`, `key.added`, `policy.loaded`, ...
    pub what: Box<str>,
    /// An ident or a file that the event is about.
    pub subject: Box<str>,
    /// Particulars, without secrets.
    pub details: Json,
}

impl Record {
    pub(crate) fn put(&self, out: &mut Outbox) -> Recorded {
        let (what, subject, details) = (self.what.clone(), self.subject.clone(), self.details.clone());
        out.append_event(EventKind::Recorded { what, subject, details });
        Recorded
    }
}

/// The entry is in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded;

//! Meetings of two agents: in the same symbol, as a caller of the other's symbol, or in the same file.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Provost;
use provost_base::SymbolPath;
use provost_base::limits::{CALLERS_MAX, CALLERS_MET_MS, OVERLAPS_MAX, RESERVATIONS_LOOKED_AT};
use provost_domain::view::{NamedReservations, PresentMeetings};
use provost_domain::{Part, Refusal, Reservation};
use provost_graph::LookupResult;
use provost_index::Index;

/// The severity of a meeting, the gravest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Both name the same symbol.
    Symbol,
    /// The first agent holds a symbol that calls a symbol of the second agent.
    Caller,
    /// Both are in the same file or folder.
    File,
}

impl Severity {
    /// Returns the word for this severity.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Symbol => "symbol",
            Self::Caller => "caller",
            Self::File => "file",
        }
    }
}

/// Two agents whose reservations meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundMeeting {
    /// How grave it is.
    pub severity: Severity,
    /// The file or folder; for a caller, the symbol that it calls.
    pub at: String,
    /// The reservations of the two, by name of the agent; for a call, the caller's comes first.
    pub sides: [Arc<Reservation>; 2],
}

impl Provost {
    /// Returns the present meetings of agents, the gravest first. Callers are searched within a bound of time, as
    /// far as the index knows them.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`], when the engine has ended.
    pub async fn meetings(&self) -> Result<Vec<FoundMeeting>, Refusal> {
        let present = self.view(PresentMeetings(OVERLAPS_MAX)).await?;
        let named = self.view(NamedReservations(RESERVATIONS_LOOKED_AT)).await?;
        let mut all: Vec<FoundMeeting> = present.into_iter().map(in_one_place).collect();
        let index = self.index().clone();
        let until = Instant::now() + Duration::from_millis(CALLERS_MET_MS);
        let calls = tokio::task::spawn_blocking(move || callers(&index, &named, until));
        for it in calls.await.unwrap_or_default() {
            // A pair that already meets in one place is not reported again.
            let is_told = |told: &FoundMeeting| it.sides.iter().all(|side| told.sides.contains(side));
            if all.len() < OVERLAPS_MAX && !all.iter().any(is_told) {
                all.push(it);
            }
        }
        all.sort_by(|a, b| (a.severity, &a.at).cmp(&(b.severity, &b.at)));
        Ok(all)
    }
}

fn in_one_place((one, other): (Arc<Reservation>, Arc<Reservation>)) -> FoundMeeting {
    let names = |it: &Reservation| !it.part.names.is_empty();
    let at = if one.at.as_str().len() > other.at.as_str().len() { &one.at } else { &other.at };
    let severity = if names(&one) && names(&other) { Severity::Symbol } else { Severity::File };
    FoundMeeting { severity, at: at.as_str().into(), sides: [one, other] }
}

/// Returns the pairs in which the first reservation has a symbol that calls a symbol of the second. Blocking.
fn callers(index: &Index, named: &[Arc<Reservation>], until: Instant) -> Vec<FoundMeeting> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for callee in named {
        for symbol in symbols(index, callee) {
            for caller in index.callers(&symbol).into_iter().take(CALLERS_MAX) {
                if Instant::now() >= until {
                    return found;
                }
                let probe = Reservation {
                    at: caller.file().clone(),
                    pattern: None,
                    part: Part { names: vec![caller.symbol().into()], lines: Vec::new() },
                    ..Reservation::clone(callee)
                };
                let with = named.iter().filter(|it| it.at == probe.at && !it.is_of_same_agent(callee));
                for with in with.filter(|it| it.meets(&probe)) {
                    if seen.insert((with.agent.clone(), callee.agent.clone(), symbol.to_string())) {
                        found.push(FoundMeeting {
                            severity: Severity::Caller,
                            at: symbol.to_string(),
                            sides: [with.clone(), callee.clone()],
                        });
                    }
                }
            }
        }
    }
    found
}

/// Returns the symbols of the index that a reservation names.
fn symbols(index: &Index, it: &Reservation) -> BTreeSet<SymbolPath> {
    let named = it.part.names.iter().filter_map(|name| SymbolPath::of(it.at.clone(), name).ok());
    let found = named.filter_map(|symbol| match index.asked(&symbol) {
        LookupResult::Found(found) => Some(found),
        _ => None,
    });
    found.flatten().collect()
}

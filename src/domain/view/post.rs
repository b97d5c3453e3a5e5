//! Queries about messages between agents.

use std::sync::Arc;

use super::View;
use crate::conflict::Both;
use crate::post::{Mailbox, Question};
use crate::{Overlap, Reservation, State};
use provost_base::{PostSeq, Slug, Timestamp};

/// The query for all agents that have reported their status, by name.
#[derive(Clone, Copy, Debug)]
pub struct Roster;

impl View for Roster {
    /// The agents with a row in the roster, and the moment of the look.
    type Out = (Vec<Arc<Mailbox>>, Timestamp);

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        (state.broker.iter().filter(|it| it.row.is_some()).cloned().collect(), now)
    }
}

/// The query for questions that wait for an answer, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct OpenQuestions;

impl View for OpenQuestions {
    type Out = Vec<Arc<Question>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.broker.questions().cloned().collect()
    }
}

/// The query whether an agent's files were seen changed, and not seen clean since.
#[derive(Clone, Debug)]
pub struct SeenFiles(pub Slug);

impl View for SeenFiles {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.broker.print(&self.0).is_some_and(|it| !it.seen.is_empty())
    }
}

/// The query for the newest number in every inbox, and the number after which the audit log begins.
#[derive(Clone, Copy, Debug)]
pub struct Inboxes;

impl View for Inboxes {
    type Out = (Vec<(Slug, PostSeq)>, PostSeq);

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        (state.broker.newest().map(|(slug, n)| (slug.clone(), n)).collect(), state.broker.log_from)
    }
}

/// The query for agents that work on the same places, at most so many pairs.
#[derive(Clone, Copy, Debug)]
pub struct Overlaps(pub usize);

impl View for Overlaps {
    type Out = Vec<Overlap>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        state.in_the_way_of_each_other(now, self.0)
    }
}

/// The query for pairs of agents with reservations in the same place, at most so many.
#[derive(Clone, Copy, Debug)]
pub struct PresentMeetings(pub usize);

impl View for PresentMeetings {
    type Out = Vec<Both>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        state.present_meetings(now, self.0)
    }
}

/// The query for reservations that name a symbol, at most so many.
#[derive(Clone, Copy, Debug)]
pub struct NamedReservations(pub usize);

impl View for NamedReservations {
    type Out = Vec<Arc<Reservation>>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        state.named_reservations(now, self.0)
    }
}

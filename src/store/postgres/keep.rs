//! Upkeep between the batches: old history is removed in small portions, words are indexed, and the stop is noted.

use std::time::{Duration, Instant};

use super::session::Step;
use super::{PostgresStore, Stage, Written, posts, search, sums, unreadable, write};
use crate::codec::{before, int, nat};
use crate::{Behind, Indexed, Pruned, Retention, StoreError};
use provost_base::limits::{CLOCK_SLACK_MS, EVENT_TEXTS_STAY_MS, STATEMENT_MS_MAX, USAGE_DAYS_KEPT};
use provost_base::{EventSeq, Timestamp};
use provost_domain::BEAT;

/// The time for which the sums of usage are kept.
const USAGE_KEPT: Duration = Duration::from_secs(USAGE_DAYS_KEPT * 86_400);

/// The time for which signs of life of the crew can be queried. Older ones are only in the journal.
const BEATS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The time for which the database takes no text of an event away, and a minute more, since its clock may be set back a little while a daemon prunes.
const TEXTS_STAY: Duration = Duration::from_millis(EVENT_TEXTS_STAY_MS + CLOCK_SLACK_MS);

/// The time for which the log that every host has keeps its entries.
const LOG_KEPT: Duration = Duration::from_secs(60 * 60);

impl PostgresStore {
    /// # Errors
    /// Any; then no rows were removed.
    pub(super) fn prune_history(
        &mut self,
        now: Timestamp,
        keep: &Retention,
        most: u32,
    ) -> Result<Pruned, StoreError> {
        self.in_a_turn(|store, next| {
            // The daemons' time never goes back, and each login can set it ahead in the repository's row; no history is removed early by that.
            let now = store.looked.map_or(now, |clock| now.min(clock));
            let from = next.pruned_to;
            let tasks = store.prune_tasks(before(now, keep.tasks), keep.tasks_most, most)?;
            let events = store.prune_events(before(now, keep.events), most, next)?;
            let beats = store.prune_timeline(next.pruned_to, before(now, BEATS_KEPT), most)?;
            let swept = posts::sweep(&mut store.session, store.repo, most)?;
            let sums = sums::prune(store.repo, before(now, USAGE_KEPT), i64::from(most));
            let mut gone: Vec<u32> = vec![tasks, events, beats, swept];
            for rows in store.session.ask(&sums)? {
                gone.push(count(rows.len())?);
            }
            gone.push(store.cut_log(before(now, LOG_KEPT), most)?);
            let mut steps = Vec::new();
            if next.pruned_to != from {
                let checkpoint = store.key.checkpoint(next.head, next.pruned_to, &next.counters)?;
                steps.push(write::checkpoint(store.repo, &checkpoint)?);
                next.checkpoint = next.head.seq;
            }
            Ok((Pruned { tasks, events, more: gone.contains(&most) }, steps))
        })
    }

    /// Indexes up to `most` further events.
    ///
    /// # Errors
    /// Any; then none of them is in the index.
    pub(super) fn index_words(&mut self, most: u32) -> Result<Indexed, StoreError> {
        self.must_run()?;
        self.roll_back();
        // The next turn makes a connection. Commands would wait for one that is made here.
        if !self.session.is_linked() {
            return Ok(Indexed::More);
        }
        // Out of the turn, since other daemons wait while this one has the row. What was committed never changes.
        let from = self.written.indexed_to;
        let portion = search::read(&mut self.session, self.repo, (from, self.written.head.seq), most)?;
        self.in_a_turn(|_, next| {
            if next.indexed_to != from {
                return Ok((Indexed::ByAnother, Vec::new()));
            }
            next.indexed_to = portion.last;
            let left = Indexed::left(portion.is_more);
            Ok((left, portion.steps(next.pruned_to)?))
        })
    }

    /// Notes that this stop was clean.
    ///
    /// # Errors
    /// If that could not be written; the next start then counts as one after a crash.
    pub(super) fn stop(&mut self) -> Result<(), StoreError> {
        self.must_run()?;
        self.in_a_turn(|store, next| {
            let mut steps = Vec::new();
            if next.head.seq > next.checkpoint {
                let checkpoint = store.key.checkpoint(next.head, next.pruned_to, &next.counters)?;
                steps.push(write::checkpoint(store.repo, &checkpoint)?);
                next.checkpoint = next.head.seq;
            }
            let sql = "update provost.host set clean = true, beat = clock_timestamp(), head = $4,
                       state = case state when 'live' then 'down' else state end
                       where repo = $1 and id = $2 and inc = $3";
            let (host, inc) = (store.host().to_string(), int(store.incarnation)?);
            steps.push(Step::new(sql).with(store.repo).with(host).with(inc).with(int(next.entry.n.0)?));
            Ok(((), steps))
        })?;
        self.stage = Stage::Closed;
        self.remember_hosts();
        self.marks.sync();
        self.publish();
        self.session.drop_link();
        Ok(())
    }

    /// Does some work in a turn of its own, sends its last statements together with the commit, and takes over the state after it.
    /// Without an answer to the commit, no batch is in doubt: removed and indexed rows are read again.
    fn in_a_turn<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Written) -> Result<(T, Vec<Step>), StoreError>,
    ) -> Result<T, StoreError> {
        let begun = self.take_turn(self.written.entry)?;
        if matches!(begun.behind, Behind::TooFar) {
            // An unchecked head is not sealed: the engine loads first.
            self.roll_back();
            return Err(StoreError::Stopped("this daemon has not read the log for long".into()));
        }
        let turn = self.turn.clone().ok_or(StoreError::NotRunning)?;
        if !turn.is_sealed {
            // The next turn skips numbers, which this one cannot.
            self.roll_back();
            return Err(StoreError::Stopped(
                "a login of the database has changed the repository's row".into(),
            ));
        }
        let mut next = turn.at.clone();
        let done = work(self, &mut next).and_then(|(it, mut steps)| {
            steps.extend([self.head_step(&next, &turn)?, Step::new("commit")]);
            // All of the daemon waits for this one.
            self.session.ask_within(&steps, Duration::from_millis(STATEMENT_MS_MAX))?;
            Ok(it)
        });
        match done {
            Ok(it) => {
                (self.turn, self.beat) = (None, self.beat.or(Some(Instant::now())));
                // The engine gets other daemons' entries in its next turn.
                let before = &mut self.written;
                (before.checkpoint, before.pruned_to) = (next.checkpoint, next.pruned_to);
                before.indexed_to = next.indexed_to;
                Ok(it)
            }
            Err(err) => {
                self.roll_back();
                self.session.drop_link();
                Err(err)
            }
        }
    }

    /// Forgets the oldest of the finished tasks that ended before `cutoff`, and those that are too many.
    fn prune_tasks(&mut self, cutoff: Timestamp, keep: u32, most: u32) -> Result<u32, StoreError> {
        let old = "delete from provost.task where repo = $1 and id in
                   (select id from provost.task where repo = $1 and not live and at < $2 order by at limit $3) returning id";
        let gone = self.forget(Step::new(old).with(self.repo).with(cutoff.0).with(i64::from(most)))?;
        // The newest task beyond the limit, and all before it; none if there are not that many.
        let many = "delete from provost.task where repo = $1 and id in
                    (select id from provost.task where repo = $1 and not live and finished_seq <=
                     (select finished_seq from provost.task where repo = $1 and not live order by finished_seq desc
                         limit 1 offset $2)
                     order by finished_seq limit $3) returning id";
        let rest = i64::from(most.saturating_sub(gone));
        Ok(gone + self.forget(Step::new(many).with(self.repo).with(i64::from(keep)).with(rest))?)
    }

    /// Deletes tasks with their rows in other tables; their ids are free again.
    fn forget(&mut self, delete: Step) -> Result<u32, StoreError> {
        let rows = self.session.rows(delete)?;
        let gone =
            rows.iter().map(|it| it.try_get(0)).collect::<Result<Vec<String>, _>>().map_err(unreadable)?;
        let number = count(gone.len())?;
        if number > 0 {
            let tables = [
                ("usage_task", "task"),
                ("counted_task", "task"),
                ("search_task", "id"),
                ("artifact", "task"),
            ];
            let also = tables.map(|(table, column)| {
                let sql =
                    format!("delete from provost.{table} where repo = $1 and {column} = any($2::text[])");
                Step::new(sql).with(self.repo).with(gone.clone())
            });
            self.session.ask(&also)?;
        }
        Ok(number)
    }

    /// Removes the bodies of events from before `cutoff`, strictly in order, so that one number says how far. The database takes no text of the
    /// last hour away, by its own clock: beyond such an event the number would leave its text for ever.
    fn prune_events(&mut self, cutoff: Timestamp, most: u32, next: &mut Written) -> Result<u32, StoreError> {
        let Some(clock) = self.looked else { return Ok(0) };
        let cutoff = cutoff.min(before(clock, TEXTS_STAY));
        // Each login can write rows behind the end of the journal.
        let sql = "select seq, at from provost.event where repo = $1 and seq > $2 and seq <= $3 order by seq limit $4";
        let (from, pruned_to) = (next.pruned_to, &mut next.pruned_to);
        let step = Step::new(sql).with(self.repo).with(int(from.0)?).with(int(next.head.seq.0)?);
        let rows = self.session.rows(step.with(i64::from(most)))?;
        for row in &rows {
            let number = |at: usize| row.try_get::<_, i64>(at).map_err(unreadable);
            if Timestamp(number(1)?) >= cutoff {
                break;
            }
            *pruned_to = EventSeq(nat(number(0)?)?);
        }
        if *pruned_to == from {
            return Ok(0);
        }
        let (after, upto) = (int(from.0)?, int(pruned_to.0)?);
        self.session.ask(&[
            Step::new("select provost.prune_events($1, $2, $3)").with(self.repo).with(after).with(upto),
            Step::new("delete from provost.search_event where repo = $1 and seq <= $2")
                .with(self.repo)
                .with(upto),
        ])?;
        posts::prune(&mut self.session, self.repo, *pruned_to)?;
        u32::try_from(pruned_to.0 - from.0).map_err(StoreError::damaged)
    }

    /// Removes events without bodies, and old signs of life, from the timeline.
    fn prune_timeline(
        &mut self,
        pruned_to: EventSeq,
        beats_before: Timestamp,
        most: u32,
    ) -> Result<u32, StoreError> {
        let gone = "delete from provost.timeline where repo = $1 and seq in
                    (select seq from provost.timeline where repo = $1 and seq <= $2 order by seq limit $3)";
        let beats = "delete from provost.timeline where repo = $1 and seq in
                     (select seq from provost.timeline where repo = $1 and word = $2 and at < $3 order by at limit
                         $4) returning 1";
        let most = i64::from(most);
        let answers = self.session.ask(&[
            Step::new(gone).with(self.repo).with(int(pruned_to.0)?).with(most),
            Step::new(beats).with(self.repo).with(BEAT).with(beats_before.0).with(most),
        ])?;
        count(answers.last().map_or(0, Vec::len))
    }

    /// Cuts off the part of the log that every host has, but never the newest entry.
    fn cut_log(&mut self, cutoff: Timestamp, most: u32) -> Result<u32, StoreError> {
        let sql = "select provost.cut_log($1, $2, $3)";
        let rows = self.session.rows(Step::new(sql).with(self.repo).with(cutoff.0).with(i64::from(most)))?;
        let gone: i64 = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?.unwrap_or(0);
        u32::try_from(gone).map_err(StoreError::damaged)
    }
}

fn count(rows: usize) -> Result<u32, StoreError> {
    u32::try_from(rows).map_err(StoreError::damaged)
}

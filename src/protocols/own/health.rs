//! The daemon's health in numbers.

use std::path::PathBuf;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map;
use provost_api::{endpoints, wire};
use provost_base::Timestamp;
use provost_base::limits::{DISK_FREE_BYTES_MIN, ENGINE_QUEUE_MAX, TURN_SLOW_MS_MIN};
use provost_domain::view::{HooksOwed, LiveTasks, LockWaiters, Waiting};
use provost_engine::{Engine, Protection, Spread, Standing};
use provost_service::{Disk, UsageBy, UsageQuery, disk};

/// The span of the sum of usage, in milliseconds: a day.
const USED_MS: u64 = 24 * 60 * 60 * 1000;

impl Handles<endpoints::Health> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::Health> {
        let (provost, about) = (&self.0.provost, (self.0.about)());
        let measures = provost.engine().measures();
        // This comes before this request's own queries wait there.
        let queued = measures.queued();
        let (live, approvals, waiting, hooks) = tokio::join!(
            provost.view(LiveTasks),
            provost.view(Waiting),
            provost.view(LockWaiters),
            provost.view(HooksOwed)
        );
        let since = Timestamp(provost.engine().now().0.saturating_sub_unsigned(USED_MS));
        let asked = UsageQuery { by: UsageBy::Nothing, since: Some(since), limit: 1 };
        let standing = provost.engine().standing();
        let is_away = standing.as_ref().is_some_and(|it| it.away.is_some());
        // If the store does not answer, the other numbers still count; the daemon does not wait for an absent database.
        let used = match is_away {
            true => None,
            false => provost.usage(asked).await.ok().map(|(_, total)| total),
        };
        let database = match standing {
            Some(it) => Some(database(provost.engine(), it).await),
            None => None,
        };
        let state = PathBuf::from(&about.state_dir);
        let disk = tokio::task::spawn_blocking(move || disk(&state)).await.unwrap_or_default();
        let tasks_queued = live.map_err(map::fault)?.tasks.iter().filter(|it| it.state.is_queued()).count();
        Ok(wire::Health {
            queued,
            queued_max: ENGINE_QUEUE_MAX as u64,
            approvals: approvals.map_err(map::fault)?.len(),
            waiting_for_locks: waiting.map_err(map::fault)?.len(),
            tasks_queued,
            hooks_owed: hooks.map_err(map::fault)?,
            commits: measures.commits.spread().map(spread),
            lock_waits: measures.lock_waits.spread().map(spread),
            store_bytes: disk.store,
            disk_free_bytes: disk.free,
            disk_bytes: disk.all,
            used_today: used.filter(|it| it.runs > 0).map(super::cost::row),
            findings: findings(&about, &disk, database.as_ref()),
            database,
        })
    }
}

fn spread(it: Spread) -> wire::Spread {
    let us = |it: std::time::Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX);
    wire::Spread { count: it.count, p50_us: us(it.p50), p99_us: us(it.p99) }
}

/// Returns the state of the database as the daemon sees it, and what its server promises.
async fn database(engine: &Engine, it: Standing) -> wire::DatabaseAt {
    let ms = |it: std::time::Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
    let is_heard = it.away.is_none() && !it.is_unsure;
    let protection = match is_heard {
        true => engine.read(|reader| reader.protection()).await.ok().flatten(),
        false => None,
    };
    let (since, why) = it.away.unzip();
    wire::DatabaseAt {
        server: it.server.as_ref().map(|it| it.name.to_string()),
        version: it.server.as_ref().map(|it| it.version.to_string()),
        timeline: it.server.as_ref().map(|it| it.timeline),
        away_since: since.map(|it| it.rfc3339()),
        why: why.map(String::from),
        unsure: it.is_unsure,
        stale_ms: engine.stale().map(ms),
        slow_ms: Some(ms(it.turn_took)).filter(|it| is_heard && *it >= TURN_SLOW_MS_MIN),
        standbys: protection.as_ref().and_then(|it| u64::try_from(it.standbys).ok()),
        waits_for_standby: protection.as_ref().map(|it| it.waits_for_standby),
        warnings: protection.iter().flat_map(Protection::warnings).collect(),
    }
}

fn findings(
    about: &wire::About,
    disk: &Disk,
    database: Option<&wire::DatabaseAt>,
) -> Vec<wire::HealthFinding> {
    let finding = |says: String, command: &str| wire::HealthFinding { says, command: command.into() };
    let mut all: Vec<wire::HealthFinding> =
        about.broken.iter().chain(&about.notes).map(|it| finding(it.clone(), "provost doctor")).collect();
    all.extend(about.moved.iter().map(|it| finding(it.clone(), "provost status")));
    all.extend(about.workers.iter().filter_map(|it| {
        let why = it.broken.as_ref()?;
        Some(finding(format!("worker {} cannot be used: {why}", it.id), "provost doctor"))
    }));
    if let Some(it) = database {
        all.extend(it.warnings.iter().map(|says| finding(says.clone(), "provost doctor")));
        if it.unsure {
            let says = "it is not known whether the last writes are stored: the database has not answered";
            all.push(finding(says.into(), "provost status"));
        }
        if let Some(ms) = it.slow_ms {
            let says = format!("a write takes {ms} ms at present: the database, or the way to it, is slow");
            all.push(finding(says, "provost doctor"));
        }
        if let Some(ms) = it.stale_ms {
            let says = format!(
                "what is shown may be {} s old: the daemon has not heard from the database since",
                ms / 1_000
            );
            all.push(finding(says, "provost status"));
        }
    }
    if let Some(free) = disk.free.filter(|it| *it < DISK_FREE_BYTES_MIN) {
        let says = format!("the disk of the store has {} MiB left", free >> 20);
        all.push(finding(says, "provost doctor"));
    }
    all
}

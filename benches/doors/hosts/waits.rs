//! How long a lock that was released on one host takes to an agent that waits for it on another one.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use provost::base::Ttl;
use provost::domain::EventKind;
use provost::domain::command::Locked;

use super::bare::Asker;
use super::engines::{Host, acquire, agent, must_hold, release, symbol};
use crate::table::{Rounds, Table, Unit};

const ROUNDS: usize = 20;

/// The aim: two round trips and this.
const AIM_MS: f64 = 20.0;

/// Measures it at one network delay, against two turns of the floor's, one after the other.
pub(super) fn measure(
    table: &mut Table,
    hosts: (&Host, &Host),
    bare: (&Asker, &Asker),
    round_trip: Duration,
) -> Result<()> {
    let runtime = super::server::runtime()?;
    let (mut ours, mut floor, mut answered) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        let (from_call, from_answer) = runtime.block_on(handed_over(hosts))?;
        ours.push(from_call);
        answered.push(from_answer);
        let begun = Instant::now();
        runtime.block_on(async {
            bare.0.ask().await?;
            bare.1.ask().await
        })?;
        floor.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let ms = round_trip.as_millis();
    let what =
        format!("{ms} ms: from the call of a release to the lock of who waits at another host, to two turns");
    table.ratio(&what, Unit::Milliseconds, &ours, &floor)?;
    let what = format!("{ms} ms: … from the answer of the release, to two round trips and 20 ms");
    let aim = Rounds(vec![2.0 * round_trip.as_secs_f64() * 1e3 + AIM_MS; ROUNDS]);
    table.ratio(&what, Unit::Milliseconds, &answered, &aim)
}

/// One hand-over: milliseconds from the call of the release, and from its answer.
async fn handed_over((one, other): (&Host, &Host)) -> Result<(f64, f64)> {
    let (at, ada, bob) = (symbol("handed")?, agent("ada"), agent("bob"));
    let refused = |what: &str, it: &dyn std::fmt::Debug| anyhow!("{what}: {it:?}");
    must_hold(one.engine.submit(&ada, acquire(&at, None)).await)?;
    let mut verb = acquire(&at, Some(Ttl::minutes(5)));
    let mut news = other.engine.subscribe();
    let waits = other.engine.submit(&bob, verb.clone()).await.map_err(|it| refused("no wait", &it))?;
    let Locked::Queued { ticket, .. } = waits else { return Err(refused("no wait", &waits)) };
    verb.ticket = Some(ticket);
    let waiter = async {
        loop {
            let until = tokio::time::Instant::now() + Duration::from_secs(30);
            news.change(until, |it| matches!(it.kind, EventKind::LockFreed { .. })).await;
            // As `provost lock acquire --wait` does: the caller that waits asks again with its ticket.
            match other.engine.submit(&bob, verb.clone()).await {
                Ok(Locked::Held { .. }) => return anyhow::Ok(Instant::now()),
                Ok(Locked::Queued { .. }) => {}
                Err(it) => return Err(refused("a wait has ended", &it)),
            }
        }
    };
    let begun = Instant::now();
    let releases = async {
        let done = one.engine.submit(&ada, release(&at)).await;
        done.map_err(|it| refused("a lock is not released", &it)).map(|_| Instant::now())
    };
    let (got, answered) = tokio::join!(waiter, releases);
    let (got, answered) = (got?, answered?);
    other.engine.submit(&bob, release(&at)).await.map_err(|it| refused("a lock is not released", &it))?;
    let ms = |from: Instant| got.saturating_duration_since(from).as_secs_f64() * 1e3;
    Ok((ms(begun), ms(answered)))
}

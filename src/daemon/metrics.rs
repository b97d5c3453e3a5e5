//! The daemon as seen from outside: metrics and health over HTTP, and the reports to a supervisor.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result, bail};
use tokio_util::sync::CancellationToken;

use super::loopback_doors::Wanted;
use super::{Daemon, GRACE};
use provost_api::wire::DoorAt;
use provost_base::limits::METRICS_CONNECTIONS_MAX;
use provost_config::{Loaded, MetricsSettings};
use provost_protocols::own::Own;
use provost_protocols::scrape::{Phase, Scrape};
use provost_transport::accept::{Capacity, Listening, accept_loop};
use provost_transport::tcp;

/// The section of the settings for metrics, and the door's name in the list of doors.
const SECTION: &str = "metrics";

impl Daemon {
    /// Makes the engine count, and answers collectors and probes, if the configuration says so.
    ///
    /// # Errors
    /// A sentence, if the address is not available, or reaches further than the settings allow.
    pub(super) async fn open_metrics(&mut self, loaded: &Loaded, own: &Own) -> Result<()> {
        own.has_places_for(loaded.config.limits.workers as usize);
        let settings = &loaded.config.metrics;
        if !settings.enabled {
            return Ok(());
        }
        let at = settings.listen;
        if !at.ip().is_loopback() {
            self.warn_of_elsewhere(settings)?;
        }
        self.engine().measures().observe();
        let names = settings.names.iter().map(|it| it.trim().to_owned()).collect();
        let scrape = Scrape::new(own.clone(), self.phase.subscribe(), names);
        let both = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        if both.contains(&at.ip()) {
            let wanted = Wanted::of_setting(SECTION, "listen", at.port(), loaded);
            let Some(bound) = self.bound(&wanted).await? else { return Ok(()) };
            self.answer_at(bound, move |it, guard| {
                drop(it.arriving);
                scrape.clone().serve(it.stream, guard)
            });
        } else {
            let bound = tcp::bind(at).with_context(|| format!("metrics: {at} cannot be had"))?;
            self.answer_at(bound, move |stream, guard| scrape.clone().serve(stream, guard));
        }
        Ok(())
    }

    /// Refuses an address beyond this machine unless the settings confirm it, and warns of the consequences.
    fn warn_of_elsewhere(&mut self, settings: &MetricsSettings) -> Result<()> {
        let at = settings.listen;
        if !settings.elsewhere {
            bail!(
                "metrics: {at} is not an address of this machine alone, and who asks there proves nothing; \
                 `elsewhere = true` in `[metrics]` says that this is meant"
            );
        }
        self.say_until_the_end(format!(
            "metrics: numbers about this daemon, with the names of its workers, can be read without proof by everybody who \
             reaches {at}"
        ));
        Ok(())
    }

    fn answer_at<L, S, F>(&self, bound: L, serve: S)
    where
        L: Listening + 'static,
        S: Fn(L::Stream, provost_transport::accept::Guard) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let address = bound.address();
        tracing::info!(address, "metrics and health are answered");
        self.shared().0.doors.push(DoorAt { door: SECTION.into(), address });
        // This listener serves until the process ends, so that a probe learns that the daemon is ending.
        let stop = CancellationToken::new();
        let capacity = Capacity::from(METRICS_CONNECTIONS_MAX);
        tokio::spawn(accept_loop(bound, capacity, stop, GRACE, serve));
    }

    /// Reports that all doors are open.
    pub(super) fn say_open(&self) {
        self.phase.send_replace(Phase::Open);
        self.supervisor.is_ready();
        if let Some(interval) = self.supervisor.wants_word_every() {
            let (engine, supervisor) = (self.engine().clone(), self.supervisor);
            self.doors.spawn(self.stop.clone().run_until_cancelled_owned(supervisor.feed(engine, interval)));
        }
    }

    /// Reports that no more requests are taken.
    pub(super) fn say_draining(&self) {
        self.phase.send_replace(Phase::Draining);
        self.supervisor.is_stopping();
    }
}

//! The core's settings for the queue: pools, labels, and the agents that may ask for a high priority.

use provost_config::Config;
use provost_domain::{PoolSetting, Settings};

pub(super) fn settings(config: &Config, settings: &mut Settings) {
    let pools = config.pools.iter().map(|(name, pool)| {
        let workers = pool.workers.iter().cloned().collect();
        let pool = PoolSetting { workers, concurrent: pool.concurrent, waiting: pool.waiting };
        (name.as_str().into(), pool)
    });
    settings.pools = pools.collect();
    settings.places = config.limits.workers;
    settings.labels = config.host.labels.iter().map(|it| it.0.as_str().into()).collect();
    settings.high_priority = config.queue.high_priority.iter().cloned().collect();
}

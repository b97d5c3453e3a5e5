//! What people are told of a daemon's database, at each place where they look.

use std::time::Duration;

use super::World;
use super::histories::says;
use super::loopback_client::Http;
use super::waits::within;

/// What a configuration needs for the page.
pub(crate) const PAGE: &str = "[web]\nenabled = true\n";

/// What a configuration needs for all metrics.
pub(crate) const COUNTING: &str = "[metrics]\nenabled = true\n";

/// The places: `status`, `doctor`, and the view of the page.
pub(crate) struct Places<'a> {
    world: &'a World,
    page: Http,
}

impl<'a> Places<'a> {
    /// Of a daemon that runs and has the page.
    pub(crate) fn of(world: &'a World) -> Self {
        Self { world, page: Http::web(world) }
    }

    /// Waits until each place says this.
    #[track_caller]
    pub(crate) fn say(&self, words: &str) {
        self.say_each([words; 3]);
    }

    /// Waits until each place says its words.
    #[track_caller]
    pub(crate) fn say_each(&self, words: [&str; 3]) {
        for (place, words) in ["status", "doctor", "page"].into_iter().zip(words) {
            let mut said = String::new();
            let found = within(Duration::from_secs(40), || {
                said = self.text(place);
                said.contains(words)
            });
            assert!(found, "{place} does not say {words:?}:\n{said}");
        }
    }

    fn text(&self, place: &str) -> String {
        match place {
            "page" => String::from_utf8_lossy(&self.page.look("/rows/health").body).into_owned(),
            command => says(self.world, &[command]).1,
        }
    }
}

/// Returns the value of a sample, as `provost metrics` prints it.
pub(crate) fn metric(world: &World, sample: &str) -> Option<f64> {
    let told = says(world, &["metrics"]).1;
    let line = told.lines().find_map(|it| it.strip_prefix(sample)?.strip_prefix(' ').map(str::to_owned));
    line.and_then(|it| it.parse().ok())
}

//! Finds the file of the rules, and notices when it changes.

use std::path::{Path, PathBuf};

use anyhow::Result;

use provost_config::places::SYSTEM_CONFIG;
use provost_config::{Config, Places};
use provost_policy::{RuleSet, Source};
use provost_system::version_of;

/// The version of a file's state, which changes with the file.
type Stamp = (u64, i64, i64);

/// The rules' file, followed for changes.
pub(super) struct PolicyFile {
    named: Option<String>,
    user: PathBuf,
    source: Source,
    system: PathBuf,
    pub(super) seen: Vec<Option<Stamp>>,
}

impl PolicyFile {
    pub(super) fn find(config: &Config, places: &Places) -> Result<Self> {
        let named = config.policy.file.as_ref().map(|it| it.0.clone());
        let user = places.config.join("policy.toml");
        let source = Source::base(named.as_deref(), &user)?;
        let system = Path::new(SYSTEM_CONFIG).join("policy.toml");
        let mut file = Self { named, user, source, system, seen: Vec::new() };
        file.seen = file.stamps();
        Ok(file)
    }

    pub(super) fn stamps(&self) -> Vec<Option<Stamp>> {
        let stamp = |path: &Path| {
            let meta = std::fs::symlink_metadata(path).ok()?;
            Some(version_of(&meta))
        };
        let own = match &self.source {
            Source::File(path) => stamp(path),
            Source::Builtin(_) if self.named.is_none() => stamp(&self.user),
            Source::Builtin(_) => None,
        };
        vec![own, stamp(&self.system)]
    }

    /// Loads the present rules. A user's file that did not exist before replaces the shipped
    /// rules; a file that is gone is an error, since its absence must not loosen anything by itself.
    pub(super) fn load(&mut self) -> Result<RuleSet> {
        if matches!(self.source, Source::Builtin(_)) {
            let source = Source::base(self.named.as_deref(), &self.user)?;
            let rules = Source::load_layers(&source, &self.system)?;
            self.source = source;
            return Ok(rules);
        }
        Ok(Source::load_layers(&self.source, &self.system)?)
    }

    pub(super) fn name(&self) -> String {
        match &self.source {
            Source::File(path) => path.display().to_string(),
            Source::Builtin(builtin) => format!("builtin:{}", builtin.name()),
        }
    }
}

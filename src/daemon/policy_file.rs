//! The rules' file: where it is, and when it has changed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;

use crate::config::places::SYSTEM_CONFIG;
use crate::config::{Config, Places};
use crate::policy::{RuleSet, Source};

/// The rules' file, to notice when it changes.
pub(super) struct PolicyFile {
    source: Source,
    system: PathBuf,
    pub(super) seen: Vec<Option<SystemTime>>,
}

impl PolicyFile {
    pub(super) fn find(config: &Config, places: &Places) -> Result<Self> {
        let named = config.policy.file.as_ref().map(|it| it.0.as_str());
        let source = Source::base(named, &places.config.join("policy.toml"))?;
        let system = Path::new(SYSTEM_CONFIG).join("policy.toml");
        let mut file = Self { source, system, seen: Vec::new() };
        file.seen = file.stamps();
        Ok(file)
    }

    pub(super) fn stamps(&self) -> Vec<Option<SystemTime>> {
        let stamp = |path: &Path| std::fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
        let own = match &self.source {
            Source::File(path) => stamp(path),
            Source::Builtin(_) => None,
        };
        vec![own, stamp(&self.system)]
    }

    pub(super) fn load(&self) -> Result<RuleSet> {
        Ok(Source::load_layers(&self.source, &self.system)?)
    }

    pub(super) fn name(&self) -> String {
        match &self.source {
            Source::File(path) => path.display().to_string(),
            Source::Builtin(builtin) => format!("builtin:{}", builtin.name()),
        }
    }
}

//! A daemon that was started with `--allow-root` by an elevated user.

use anyhow::Result;

use provost_config::{Config, Places};

/// Returns `None`: workers run as the same user here; their tokens confine them.
pub(super) fn for_workers(_config: &Config, _places: &Places) -> Result<Option<(u32, u32)>> {
    Ok(None)
}

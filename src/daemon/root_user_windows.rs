//! An elevated daemon that somebody insists on.

use anyhow::Result;

use crate::config::{Config, Places};

/// Workers are confined by their tokens here and run as nobody else.
pub(super) fn for_workers(_config: &Config, _places: &Places) -> Result<Option<(u32, u32)>> {
    Ok(None)
}

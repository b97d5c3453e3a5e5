//! Local sockets in a workspace: on Windows every worker works in a copy, which has none.

use crate::jail::Place;

/// None are looked for here.
pub(super) fn sockets_around(_root: &Place, _but: &Place) -> Result<Vec<Vec<u8>>, String> {
    Ok(Vec::new())
}

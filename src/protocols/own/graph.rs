//! The graph of the repository's code.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map;
use provost_api::{endpoints, wire};
use provost_service::CallDirection;

impl Handles<endpoints::Graph> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::Graph> {
        let (state, not_whole) = self.0.provost.graph_state().await.map_err(map::graph::fault)?;
        Ok(map::graph::state(state, &not_whole))
    }
}

impl Handles<endpoints::Callers> for Own {
    async fn handle(&self, _call: &Call, query: wire::GraphQuery) -> Answered<wire::Calls> {
        calls(self, &query, CallDirection::Callers).await
    }
}

impl Handles<endpoints::Callees> for Own {
    async fn handle(&self, _call: &Call, query: wire::GraphQuery) -> Answered<wire::Calls> {
        calls(self, &query, CallDirection::Callees).await
    }
}

async fn calls(own: &Own, query: &wire::GraphQuery, way: CallDirection) -> Answered<wire::Calls> {
    let found = own.0.provost.calls(&query.symbol, way).await.map_err(map::graph::fault)?;
    Ok(map::graph::calls(&found))
}

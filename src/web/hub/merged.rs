//! What is shown of all repositories together.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::known::{Hub, Repo, now};
use crate::{WebError, rows};
use provost_base::limits::DAEMON_ASKED_MS;
use provost_view::{self as view, Known};

/// The blocks of a view over all repositories.
///
/// # Errors
/// A view that is not there.
pub(super) async fn rows(hub: &Hub, name: &str) -> Result<String, WebError> {
    let show = match name {
        "needs-you" => view::needs_of_all,
        "repositories" => view::repositories,
        _ => return Err(WebError::not_there()),
    };
    let all = hub.all();
    let mut asked: JoinSet<()> = all.iter().filter(|it| it.may_answer()).cloned().map(ask).collect();
    while asked.join_next().await.is_some() {}
    let known: Vec<Known> = all.iter().map(|it| it.known()).collect();
    rows::over_all(show(&known), now())
}

/// Asks a daemon what needs its user, and keeps the answer. What does not come in time is not waited for again until the daemon
/// answers.
async fn ask(repo: Arc<Repo>) {
    let asked = async {
        let client = repo.client()?;
        let about = client.about().await?;
        Ok(client.view_of_needs(about, now()).await?)
    };
    // How it stands says why there is none.
    if let Ok(needs) = repo.in_time(Duration::from_millis(DAEMON_ASKED_MS), asked).await {
        repo.keep(needs);
    }
}

//! Watches tasks for a host: sends it the changes, and waits for results. Used for both forms of tasks.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, CustomNotification, CustomResult, NotificationMetaObject, RequestId,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
    SubscriptionsListenResult, TaskStatusNotification, TaskStatusNotificationParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::changes::{Over, is_turned_away};
use super::keepalive::Keepalive;
use super::resources::ResourceUri;
use super::tools::tasks::in_words;
use super::{changes, dialog, handles, legacy_tasks};
use provost_api::wire;
use provost_base::limits::{HOST_DIALOG_MS_MAX, MCP_WATCHED_MAX};
use provost_client::{Client, ClientError};

/// The tasks that a server process watches unasked: tasks in the older form, in which a host only declares that it
/// wants one. Beyond the bound hosts get no notices, and poll, as they must be able to in any case.
#[derive(Clone)]
pub(super) struct Watches(Arc<Semaphore>);

impl Watches {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MCP_WATCHED_MAX)))
    }

    /// Sends changes of a task until it is over or the host has gone.
    pub(super) fn begin(&self, client: &Client, task: &wire::Task, context: &RequestContext<RoleServer>) {
        let Ok(permit) = self.0.clone().try_acquire_owned() else { return };
        let (client, task) = (client.clone(), task.clone());
        let (peer, mut beat) = (context.peer.clone(), Keepalive::of(context));
        tokio::spawn(async move {
            let _permit = permit;
            let mut known = task;
            while !handles::is_over(&known) && !peer.is_transport_closed() {
                let Ok(next) = handles::changed(&client, &known).await else { return };
                if next.updated_at != known.updated_at {
                    beat.tell(&in_words(&next)).await;
                }
                if next.state != known.state {
                    let told = CustomNotification::new(
                        "notifications/tasks/status",
                        Some(legacy_tasks::task(&next, false)),
                    );
                    if peer.send_notification(ServerNotification::CustomNotification(told)).await.is_err() {
                        return;
                    }
                }
                known = next;
            }
        });
    }
}

/// Answers `tasks/result`, which waits as long as the task takes.
pub(super) async fn result(
    client: &Client,
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let mut task = handles::find(client, id).await?;
    let mut beat = Keepalive::of(context);
    // A person who has closed the question is not asked again.
    let mut asked = None;
    while !handles::is_over(&task) {
        let question = match task.approval != asked {
            true => dialog::about(client, &task, context).await,
            false => None,
        };
        asked = task.approval;
        let words = in_words(&task);
        let ask = async {
            if let Some(question) = question {
                let patience = Duration::from_millis(HOST_DIALOG_MS_MAX);
                // An invalid answer counts as none; the task goes on waiting for another one.
                let _ = dialog::ask_now(client, &task, &question, patience, context).await;
            }
            handles::changed(client, &task).await
        };
        tokio::select! {
            next = beat.during(&words, ask) => task = next.map_err(|error| handles::lost(&error))?,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("cancelled by the host", None));
            }
        }
    }
    Ok(legacy_tasks::result(&task))
}

/// Checks that a host watches no more tasks than the bound.
pub(super) fn check(ids: &[String]) -> Result<(), ErrorData> {
    match ids.len() {
        0..=MCP_WATCHED_MAX => Ok(()),
        _ => Err(ErrorData::invalid_params(format!("`taskIds`: {MCP_WATCHED_MAX} at most"), None)),
    }
}

/// Returns the error for a host that names tasks without declaring that it follows any.
pub(super) fn undeclared() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}

/// Acknowledges a subscription: those of the tasks that belong to the host's agent, and the accepted resources.
pub(super) async fn acknowledge(
    client: &Client,
    ids: Vec<String>,
    also: &SubscriptionFilter,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<wire::Task>, ErrorData> {
    let mut tasks: Vec<wire::Task> = Vec::new();
    for id in ids {
        if let Ok(task) = handles::find(client, &id).await
            && !tasks.iter().any(|known| known.id == task.id)
        {
            tasks.push(task);
        }
    }
    let mut agreed = serde_json::to_value(also).unwrap_or_else(|_| json!({}));
    agreed["taskIds"] = tasks.iter().map(|task| Value::from(task.id.as_str())).collect();
    let said = json!({ "notifications": agreed, "_meta": subscription(&context.id) });
    let said = CustomNotification::new("notifications/subscriptions/acknowledged", Some(said));
    let sent = context.peer.send_notification(ServerNotification::CustomNotification(said)).await;
    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(tasks)
}

fn subscription(id: &RequestId) -> NotificationMetaObject {
    let mut meta = NotificationMetaObject::new();
    meta.set_subscription_id(id.clone());
    meta
}

/// Tells about these tasks until the host ends the subscription: the state of each, and every change; also about the resources.
///
/// # Errors
/// The protocol's error, if the host is no longer admitted.
pub(super) async fn follow(
    client: &Client,
    tasks: Vec<wire::Task>,
    also: &SubscriptionFilter,
    context: &RequestContext<RoleServer>,
) -> Result<SubscriptionsListenResult, ErrorData> {
    let mut eyes = JoinSet::new();
    for task in tasks {
        eyes.spawn(tell_of(client.clone(), task, context.clone()));
    }
    let tell = async |place: ResourceUri| {
        let mut told =
            ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(place.to_string()));
        told.extensions.insert(subscription(&context.id));
        context.peer.send_notification(ServerNotification::ResourceUpdatedNotification(told)).await.is_ok()
    };
    let telling = async {
        if also.resource_subscriptions.as_ref().is_some_and(|uris| !uris.is_empty()) {
            changes::tell_of(client, also, tell).await.answered()?;
        }
        while let Some(told) = eyes.join_next().await {
            told.unwrap_or(Over::Gone).answered()?;
        }
        std::future::pending::<()>().await;
        Ok(())
    };
    tokio::select! {
        over = telling => over?,
        () = context.ct.cancelled() => {}
    }
    Ok(SubscriptionsListenResult::complete(context.id.clone()))
}

async fn tell_of(client: Client, mut task: wire::Task, context: RequestContext<RoleServer>) -> Over {
    loop {
        let asks = dialog::about(&client, &task, &context).await.map(|question| question.requests());
        let params = TaskStatusNotificationParams::new(handles::detailed(&task, asks));
        let mut told = TaskStatusNotification::new(params);
        told.extensions.insert(subscription(&context.id));
        if context.peer.send_notification(ServerNotification::TaskStatusNotification(told)).await.is_err() {
            return Over::Gone;
        }
        if handles::is_over(&task) {
            return Over::Gone;
        }
        let seen = task.updated_at.clone();
        while task.updated_at == seen {
            match handles::changed(&client, &task).await {
                Ok(next) => task = next,
                // Without the daemon nothing changes; it is asked again after a pause.
                Err(ClientError::NotRunning(_) | ClientError::Broken(_) | ClientError::Slow) => {
                    tokio::time::sleep(Keepalive::interval()).await;
                }
                Err(error) if is_turned_away(&error) => return Over::Refused(error),
                Err(_) => return Over::Gone,
            }
        }
    }
}

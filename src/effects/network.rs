//! Makes the network access of a task from its grant: ports, and the proxy for hosts.

use super::engine_handle::EngineHandle;
use provost_base::Json;
use provost_base::{Destination, TaskId};
use provost_domain::command::Record;
use provost_domain::{Network, Task, Tier};
use provost_egress::{Grants, Outlets, Reached, Used, is_our_door, system_resolver};
use provost_jail as jail;
use provost_vault::Credential;

/// The network access of a jail that is being planned: the outlets, and the settings of the jail.
pub(super) struct PlannedEgress {
    pub(super) outlets: Outlets,
    pub(super) network: jail::Network,
}

/// Plans the network access of a task. `None` for a task that was allowed no network. Blocking: it asks the kernel
/// which ports belong to this daemon.
///
/// # Errors
/// A sentence when the allowed access cannot be given.
pub(super) fn way_of(
    task: &Task,
    tier: Tier,
    keyed: Vec<Credential>,
) -> Result<Option<PlannedEgress>, String> {
    let (mut grants, network) = match &task.network {
        Network::None if keyed.is_empty() => return Ok(None),
        Network::None => return Err(KEYS_NEED_HOSTS.into()),
        Network::Ports(ports) => {
            let grants = Grants { ports: ports.clone(), ..Grants::default() };
            (grants, jail::Network::Ports(ports.clone()))
        }
        Network::Hosts(wanted) => {
            let admitted: Vec<&str> = wanted
                .iter()
                .map(|it| &**it)
                .filter(|host| task.terms.hosts.iter().any(|it| **it == **host))
                .collect();
            if admitted.is_empty() {
                return Err(format!("rule {} admits none of the hosts that its worker is for", task.rule));
            }
            let read = |host: &&str| Destination::parse(host).map_err(|why| format!("the host {host} {why}"));
            let hosts = admitted.iter().map(read).collect::<Result<Vec<_>, _>>()?;
            let names = hosts.iter().map(ToString::to_string).collect();
            (Grants { hosts, ..Grants::default() }, jail::Network::Hosts(names))
        }
    };
    match tier {
        Tier::Ns => {}
        Tier::Ll => return Err(NOT_IN_LL.into()),
        Tier::Job => return Err(NOT_IN_JOB.into()),
    }
    let local = grants.hosts.iter().filter(|it| it.loopback().is_some()).map(|it| it.authority.port);
    for port in grants.ports.iter().copied().chain(local) {
        not_ours(port)?;
    }
    grants.keyed = keyed;
    let outlets = Outlets::new(&grants, system_resolver())?;
    Ok(Some(PlannedEgress { outlets, network }))
}

const KEYS_NEED_HOSTS: &str =
    "a secret that the daemon adds to requests needs a worker with `network = \"hosts\"`";

/// The error for tier `job`, which cannot restrict a network.
const NOT_IN_JOB: &str = "tier job cannot wall a network in, so that nothing can be granted there";

/// The error for tier `ll`: Landlock knows ports and not addresses.
const NOT_IN_LL: &str = "tier ll cannot keep a connection to the machine it is meant for; use tier ns, or take the \
                         worker's `network` away";

/// Refuses a port at which this daemon has a door.
///
/// # Errors
/// A sentence for people, if a door of this daemon has the port, or if the owner of the port is unknown.
pub fn not_ours(port: u16) -> Result<(), String> {
    match is_our_door(port) {
        Ok(false) => Ok(()),
        Ok(true) => Err(format!("port {port} is a door of provost itself and is never given to a worker")),
        Err(err) => Err(format!("whether port {port} is a door of provost cannot be found out: {err}")),
    }
}

/// Counts a run's use of the network, and puts it on record.
pub(super) async fn put_on_record(handle: &EngineHandle, task: &TaskId, used: &Used) {
    if let Some(observed) = handle.engine.measures().observed()
        && let Ok(Some((it, _))) = handle.look(task).await
    {
        let sum = |bytes: fn(&Reached) -> u64| used.reached.iter().map(bytes).fold(0, u64::saturating_add);
        observed.network(&it.order.worker, sum(|it| it.sent), sum(|it| it.received), used.refused);
    }
    if let Err(refusal) = handle.tell(record_of(task, used)).await {
        tracing::error!(%refusal, ?used, "what a run has used of the network is not on record");
    }
}

/// Returns the record of a run that is over: one entry, however many connections there were.
fn record_of(task: &TaskId, used: &Used) -> Record {
    let reached: Vec<_> = used
        .reached
        .iter()
        .map(|it| {
            serde_json::json!({
                "to": it.to, "connections": it.connections, "sent": it.sent, "received": it.received,
            })
        })
        .collect();
    let details = serde_json::json!({
        "reached": reached, "refused": used.refused, "refused_names": used.refused_names,
    });
    Record { what: "network.used".into(), subject: task.as_str().into(), details: Json::from_value(&details) }
}

//! The secrets of a task: read from their store at the last moment, and only in the allowed form.

use provost_base::{Json, TaskId};
use provost_domain::command::Record;
use provost_domain::{Credentials, Task};
use provost_jail::{HomeFile, Profile};
use provost_vault::{Credential, Delivery, Vault};

/// The secrets that a run gets.
#[derive(Default)]
pub(super) struct Given {
    /// Secrets that the daemon adds to requests.
    pub(super) keyed: Vec<Credential>,
    /// Files for the run's home.
    pub(super) files: Vec<HomeFile>,
    /// Variables, whose values are secret.
    pub(super) variables: Vec<(String, String)>,
    /// The names of the secrets, and how each is given.
    names: Vec<(Box<str>, Credentials)>,
}

/// Takes the secrets of a task. Blocking: it reads files.
///
/// # Errors
/// A sentence without any secret.
pub(super) fn given(task: &Task, profile: &Profile, vault: &Vault) -> Result<Given, String> {
    let most = task.terms.credentials.unwrap_or(Credentials::Proxy);
    let mut given = Given::default();
    for (name, known) in &profile.secrets {
        renew(name, vault)?;
        let credential = vault.get(name).map_err(|err| err.to_string())?;
        if credential.delivery.digest() != *known {
            return Err(format!(
                "the secret `{name}` is given otherwise by now than when the task was allowed; run `provost daemon reload` \
                 and delegate it again"
            ));
        }
        let needs = credential.delivery.credentials();
        if needs > most {
            return Err(format!("rule {} lets no secret be given as {}", task.rule, needs.name()));
        }
        given.names.push((credential.name.clone(), needs));
        given.take(credential);
    }
    Ok(given)
}

/// Renews the log-in behind a secret, if it has expired. Without a runtime, as for a plan that is only shown, it
/// stays as it is.
fn renew(name: &str, vault: &Vault) -> Result<(), String> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Ok(()) };
    let Some(login) = vault.look(name).map_err(|err| err.to_string())?.login else { return Ok(()) };
    let renewed = runtime.block_on(provost_egress::renew(login, provost_egress::system_resolver()));
    renewed.map_err(|err| format!("the secret `{name}`: {err}"))
}

impl Given {
    fn take(&mut self, credential: Credential) {
        let text = || String::from_utf8_lossy(credential.value.expose()).into_owned();
        match &credential.delivery {
            Delivery::Proxy(_) => self.keyed.push(credential),
            Delivery::File { path } => {
                self.files.push(HomeFile::new(path.clone(), credential.value.expose()))
            }
            Delivery::Env { variable } => self.variables.push((variable.clone(), text())),
            // A worker whose entry names such a secret was refused before.
            Delivery::Daemon => {}
        }
    }

    /// Returns the record that is written before the worker starts. `None` without secrets.
    pub(super) fn on_record(&self, task: &TaskId) -> Option<Record> {
        let names: Vec<_> = self
            .names
            .iter()
            .map(|(name, by)| serde_json::json!({ "name": name, "by": by.name() }))
            .collect();
        let details = serde_json::json!({ "secrets": names });
        let record = Record {
            what: "secrets.given".into(),
            subject: task.as_str().into(),
            details: Json::from_value(&details),
        };
        (!self.names.is_empty()).then_some(record)
    }
}

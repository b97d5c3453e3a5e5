//! A session of an editor: its folder, the agent that it speaks as, and the running turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Served;
use crate::acp::judge::apart;
use crate::acp::message::Id;
use crate::acp::sessions::named_by;
use crate::{CliError, RepoContext, up};
use provost_base::AgentId;
use provost_base::limits::READY_MS_MAX;
use provost_client::Client;
use provost_config::env::Environment;
use provost_config::{EditorGone, WorkerKind};
use provost_system::real_path;

pub(super) struct Session {
    place: SessionContext,
    gone: EditorGone,
    /// The servers that the editor has named for the session.
    servers: Vec<String>,
    /// The task whose session the next turn continues; `None` before the first turn.
    pub(super) goes_on_with: Option<String>,
    /// The turn that is under way.
    pub(super) running: Option<Running>,
}

/// A turn that is under way.
pub(super) struct Running {
    /// The id of the editor's request.
    pub(super) asked_by: Option<Id>,
    /// Ends the turn from outside; `None` once it was used.
    pub(super) stop: Option<oneshot::Sender<Stop>>,
}

/// The way in which a turn is ended from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The turn's task is cancelled.
    Cancel,
    /// The turn's task goes on, and this program no longer watches it.
    Leave,
}

/// The repository and the folder of a session.
#[derive(Clone)]
pub(super) struct SessionContext {
    pub(super) client: Client,
    /// The session's folder, as the editor has named it.
    pub(super) folder: PathBuf,
    /// The session's folder relative to the workspace; `None` for the workspace itself.
    pub(super) working_dir: Option<String>,
}

impl Session {
    /// Finds the repository of a folder for the session with this id, starts its daemon if none runs, and makes sure that the agent is a
    /// worker of that daemon.
    ///
    /// # Errors
    /// The reason why no session can begin there.
    pub(super) async fn begin(
        served: Arc<Served>,
        (id, folder): (String, PathBuf),
        servers: Vec<String>,
    ) -> Result<Box<Self>, CliError> {
        let most = Duration::from_millis(2 * READY_MS_MAX);
        let late = || CliError::of("no daemon could be found in time").next("provost doctor");
        let found = apart(most, move || {
            let here = RepoContext::in_folder(folder.clone(), Environment::current())?;
            if here.places.identity == here.places.root {
                return Err(CliError::of(format!("{} is in no repository", here.cwd.display()))
                    .next("open the folder of a repository; `provost config init` makes one ready"));
            }
            let gone = editor_gone(&here, &served.worker)?;
            let working_dir = below(&folder, &here.places.root)?;
            up::start_if_absent(&here, true)?;
            let named = served.speaks_as.clone();
            // A token belongs to one agent, and names it.
            let named = named.or_else(|| here.environment.token.is_none().then(|| named_by(id.as_bytes())));
            Ok::<_, CliError>((here, named, gone, folder, working_dir))
        });
        let (here, named, gone, folder, working_dir) = found.await.ok_or_else(late)??;
        let client = here.daemon(named).await?;
        let place = SessionContext { client, folder, working_dir };
        Ok(Box::new(Self { place, gone, servers, goes_on_with: None, running: None }))
    }

    pub(super) fn place(&self) -> SessionContext {
        self.place.clone()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// Checks whether the request with this id has asked for the running turn.
    pub(super) fn is_asked_by(&self, id: &Id) -> bool {
        self.running.as_ref().is_some_and(|it| it.asked_by.as_ref() == Some(id))
    }

    /// Takes the notice that the first turn shows.
    pub(super) fn take_notice(&mut self) -> Option<String> {
        let servers = std::mem::take(&mut self.servers);
        (!servers.is_empty()).then(|| {
            format!("Servers of the editor are not started for an agent in its jail: {}.", servers.join(", "))
        })
    }

    /// Cancels the running turn.
    pub(super) fn stop(&mut self) {
        self.end(Stop::Cancel);
    }

    /// Lets the task of the running turn go on without the editor.
    pub(super) fn leave_alone(&mut self) {
        self.end(Stop::Leave);
    }

    fn end(&mut self, how: Stop) {
        if let Some(stop) = self.running.as_mut().and_then(|it| it.stop.take()) {
            let _over = stop.send(how);
        }
    }

    /// Checks whether the running turn ends when the editor goes.
    pub(super) fn ends_with_editor(&self) -> bool {
        self.gone == EditorGone::Cancel
    }
}

/// Returns what happens to a turn when its editor goes, by the agent's entry.
fn editor_gone(here: &RepoContext, worker: &AgentId) -> Result<EditorGone, CliError> {
    let config = here.config(None)?.config;
    let Some(entry) = config.workers.get(worker) else {
        return Err(CliError::of(format!("there is no agent {worker} in the settings of {}", shown(here)))
            .next(format!("provost agent add {worker}, there")));
    };
    match entry.kind {
        WorkerKind::Acp => Ok(entry.editor_gone),
        _ => Err(CliError::of(format!("in the settings of {}, {worker} does not speak ACP", shown(here)))),
    }
}

fn shown(here: &RepoContext) -> String {
    crate::out::one_line(&here.places.root.display().to_string(), 400)
}

/// Returns a folder relative to the workspace; `None` for the workspace itself.
fn below(folder: &Path, root: &Path) -> Result<Option<String>, CliError> {
    let wrong = |why: String| {
        CliError::of(format!("no session can work in {}", folder.display())).because(why).next(
            "open the folder of a repository, or one inside it; of another work tree, `provost delegate --worktree`",
        )
    };
    let real = |path: &Path| real_path(path).map_err(|err| wrong(err.to_string()));
    let (real_folder, real_root) = (real(folder)?, real(root)?);
    match real_folder.strip_prefix(&real_root) {
        Ok(inside) if inside.as_os_str().is_empty() => Ok(None),
        Ok(inside) => match inside.to_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(wrong("its name is not UTF-8".into())),
        },
        Err(_) => Err(wrong(format!("it is not inside {}", real_root.display()))),
    }
}

//! Collects the facts for the judgement of a delegation.

use super::Provost;
use provost_base::{Digest, RepoPath, is_absolute};
use provost_domain::command::Delegated;
use provost_domain::{Answer, Delegate, Directory, Facts, Principal, Refusal};
use provost_jail::{Fill, Profile};
use provost_system::find_program;

impl Provost {
    /// Determines the directory and the executable of a delegation, and submits it.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn delegate(&self, who: &Principal, mut verb: Delegate) -> Result<Answer<Delegated>, Refusal> {
        let provost = self.clone();
        let continue_refused = self.settle_continued(who, &mut verb).await;
        let is_repeat = self.names_no_branch(&verb) && self.task(&verb.task).await.is_ok();
        let (verb, facts) = tokio::task::spawn_blocking(move || {
            let facts = provost.facts(&mut verb, is_repeat);
            (verb, Facts { continue_refused, ..facts })
        })
        .await
        .map_err(|_| Refusal::Stopping)?;
        let facts = self.with_commit(&verb, facts).await;
        self.engine().submit_judged(who, verb, facts).await
    }

    fn facts(&self, verb: &mut Delegate, is_repeat: bool) -> Facts {
        let profile = self.profiles().get(&verb.worker).cloned();
        let work_tree_refused = self.settle_work_tree(verb, (profile.as_deref(), is_repeat));
        let mut facts = Facts { work_tree_refused, ..Facts::default() };
        match self.directory(verb, profile.as_deref()) {
            Ok(directory) => facts.directory = Some(directory),
            Err(why) => {
                tracing::warn!(task = %verb.task, why, "working directory refused");
                facts.directory_refused = Some(why.into());
            }
        }
        facts.program = profile.and_then(|profile| self.program(&profile, verb.command()));
        facts
    }

    /// Returns the worker's own directory, else the task's, else the workspace itself; always beneath the workspace.
    pub(super) fn directory(&self, verb: &Delegate, profile: Option<&Profile>) -> Result<Directory, String> {
        let asked = verb.working_dir.as_deref().unwrap_or_default();
        let root = self.root().place().path().to_string_lossy().into_owned();
        let from_profile = profile.and_then(|it| it.working_dir.as_deref().map(|dir| (it, dir)));
        let text = match from_profile {
            Some((profile, dir)) => {
                let fill = Fill {
                    goal: &verb.goal,
                    workspace: &root,
                    task_id: verb.task.as_str(),
                    model: verb.model.as_deref(),
                };
                profile.filled(dir, &fill).map_err(|err| err.to_string())?
            }
            None => asked.to_owned(),
        };
        let relative = self.beneath(&text, &root)?;
        let found =
            self.root().resolve_dir(&relative).map_err(|err| format!("working_dir '{text}': {err}"))?;
        let inside =
            found.place().path().strip_prefix(self.root().place().path()).unwrap_or(found.place().path());
        let relative = RepoPath::parse(&inside.to_string_lossy())
            .map_err(|err| format!("working_dir '{text}' leads to a path that {err}"))?;
        let absolute = found.place().path().to_string_lossy().into();
        Ok(Directory { relative, absolute, dev: found.place().dev(), ino: found.place().ino() })
    }

    /// Reads a path that a client has written. It may be absolute below the workspace; every other absolute path is refused.
    fn beneath(&self, text: &str, root: &str) -> Result<RepoPath, String> {
        let text = text.trim();
        let inside = match text.strip_prefix(root) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/').into(),
            _ if is_absolute(text) => self.checkouts(None).folder_inside(text).unwrap_or_else(|| text.into()),
            _ => text.to_owned(),
        };
        RepoPath::parse(&inside).map_err(|err| format!("working_dir '{text}' {err}"))
    }

    pub(super) fn program(&self, profile: &Profile, command: Option<&[Box<str>]>) -> Option<Digest> {
        let instead = command.map(|words| find_program(words.first()?).map(|it| profile.instead(it)));
        let profile = match &instead {
            Some(instead) => instead.as_ref()?,
            None => profile,
        };
        self.0.programs.digest(&profile.program).map(|program| profile.fingerprint(program))
    }
}

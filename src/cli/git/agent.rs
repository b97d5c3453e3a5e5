//! The parts of the hooks for agents: they tell a commit to the others, keep a commit on its own branch, and keep an
//! agent from pushing.
//!
//! git-paw leaves a marker in the folder of a work tree, `paw-agent-id`, with lines such as `PAW_AGENT_ID=feat-auth`. It is read as
//! text and never run, since a branch may have any name. Without a marker, the agent of a linked work tree has its branch's name.

use std::path::PathBuf;

use serde_json::json;

use super::changes::ask;
use crate::{CliError, RepoContext};
use provost_api::wire;
use provost_client::{Client, ClientError};

/// git-paw's marker in a git folder.
const MARKER: &str = "paw-agent-id";

/// Most bytes of a marker that are read; git-paw's have some two hundred.
const MARKER_BYTES_MAX: u64 = 16 << 10;

/// Most files of one commit that are told; a longer message would be refused as a whole.
const FILES_MAX: usize = 10_000;

/// The agent of a work tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Marker {
    /// Its name.
    pub(super) agent: Option<String>,
    /// Its branch.
    branch: Option<String>,
    /// Whether commits on other branches are refused.
    strict: bool,
}

impl Marker {
    /// Reads the marker of the work tree in which git runs; `None` where it has none.
    pub(super) async fn read() -> Option<Self> {
        Self::read_in(".").await
    }

    /// Does the same for the work tree of a folder.
    async fn read_in(folder: &str) -> Option<Self> {
        let said = ask(&["-C", folder, "rev-parse", "--absolute-git-dir"]).await.ok()?;
        let folder = PathBuf::from(String::from_utf8(said).ok()?.trim_end_matches(['\n', '\r']));
        let path = folder.join(MARKER);
        let meta = std::fs::symlink_metadata(&path).ok()?;
        if !meta.is_file() || meta.len() > MARKER_BYTES_MAX {
            return None;
        }
        Some(Self::parse(&std::fs::read_to_string(path).ok()?))
    }

    fn parse(text: &str) -> Self {
        let mut marker = Marker { strict: true, ..Marker::default() };
        for line in text.lines() {
            let Some((name, value)) = line.trim().split_once('=') else { continue };
            let value = value.trim().trim_matches(['"', '\'']);
            let given = (!value.is_empty()).then(|| value.to_owned());
            match name {
                "PAW_AGENT_ID" => marker.agent = given,
                "PAW_EXPECTED_BRANCH" => marker.branch = given,
                "PAW_STRICT_BRANCH_GUARD" => marker.strict = value != "false",
                _ => {}
            }
        }
        marker
    }

    /// Returns the branch on which a commit belongs, if it is another than this.
    pub(super) fn strays_from(&self, branch: &str) -> Option<&str> {
        self.branch.as_deref().filter(|wanted| *wanted != branch)
    }

    /// Returns the branch on which a commit belongs, if a commit on this branch is refused.
    pub(super) fn refuses(&self, branch: &str) -> Option<&str> {
        self.strays_from(branch).filter(|_| self.strict)
    }
}

/// Returns the branch that is checked out; `None` where a commit is checked out instead.
pub(super) async fn branch() -> Option<String> {
    let said = ask(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await.ok()?;
    String::from_utf8(said).ok().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty())
}

/// Most work trees that are searched for their agents.
const TREES_MAX: usize = 500;

/// The agents on whose behalf the hook tells commits.
#[derive(Default)]
pub(crate) struct Tellers {
    /// The branch of the work tree whose commits are told on behalf of the agent in question.
    pub(crate) own: Option<String>,
    /// The agent on whose behalf a commit in this work tree is told, if it is told.
    pub(crate) here: Option<String>,
}

/// Returns on whose behalf commits are told: those of an agent, and those of the work tree around the command.
pub(crate) async fn tellers(here: &RepoContext, client: &Client, agent: &str) -> Result<Tellers, CliError> {
    let mut found = Tellers::default();
    let Ok(said) = ask(&["worktree", "list", "--porcelain"]).await else { return Ok(found) };
    let text = String::from_utf8_lossy(&said);
    for (at, tree) in text.split("\n\n").take(TREES_MAX).enumerate() {
        let member = |name: &str| tree.lines().find_map(|it| it.strip_prefix(name));
        let Some(path) = member("worktree ") else { continue };
        let Some(branch) = member("branch refs/heads/") else { continue };
        let named = Marker::read_in(path).await.and_then(|it| it.agent);
        let is_named = named.is_some();
        let Some(teller) = named.or_else(|| crate::broker::dashed(branch)) else { continue };
        let own = crate::broker::dashed(&teller).as_deref() == Some(agent);
        if own {
            found.own = Some(branch.to_owned());
        }
        let is_here = provost_system::real_path(path.as_ref())
            .is_ok_and(|it| provost_system::real_path(&here.places.worktree).is_ok_and(|here| here == it));
        // In the main work tree, only commits of known agents are told; the agent in question makes itself known first.
        if is_here && (is_named || at > 0 || own || is_known(client, &teller).await?) {
            found.here = Some(teller);
        }
    }
    Ok(found)
}

/// Tells a commit to the others, if an agent made it. The message names the files of the commit, and not the other
/// changes in the work tree.
pub(super) async fn tell_commit(here: &RepoContext, client: &Client) -> Result<(), CliError> {
    let marker = Marker::read().await;
    let Some(branch) = branch().await else { return Ok(()) };
    let named = marker.as_ref().and_then(|it| it.agent.clone());
    let linked = here.places.worktree != here.places.root;
    // A branch whose dashed form is empty belongs to no agent.
    let Some(agent) = named.clone().or_else(|| crate::broker::dashed(&branch)) else { return Ok(()) };
    if named.is_none() && !linked && !is_known(client, &agent).await? {
        return Ok(());
    }
    let said = ask(&[
        "diff-tree",
        "--root",
        "--no-commit-id",
        "--name-only",
        "-r",
        "-z",
        "-m",
        "--first-parent",
        "HEAD",
    ]);
    let said = said.await?;
    let files: Vec<String> = said
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .take(FILES_MAX)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    publish(
        client,
        json!({
            "type": "agent.artifact", "agent_id": agent,
            "payload": { "status": "committed", "exports": [], "modified_files": files },
        }),
    )
    .await?;
    if let Some(wanted) = marker.as_ref().and_then(|it| it.strays_from(&branch)) {
        let id = ask(&["rev-parse", "--short", "HEAD"]).await?;
        let id = String::from_utf8_lossy(&id).trim().to_owned();
        let error = format!(
            "commit {id} advanced '{branch}' but this worktree is for '{wanted}'; cherry-pick onto '{wanted}' and \
             reset '{branch}'"
        );
        publish(client, json!({
            "type": "agent.feedback", "agent_id": agent, "payload": { "from": "branch-guard", "errors": [error] },
        }))
        .await?;
    }
    Ok(())
}

async fn is_known(client: &Client, agent: &str) -> Result<bool, ClientError> {
    Ok(client.roster().await?.iter().any(|it| it.agent == agent))
}

async fn publish(client: &Client, message: serde_json::Value) -> Result<(), ClientError> {
    client.publish_post(&wire::PublishPost { message }).await.map(drop)
}

/// Checks whether an agent works in a folder: it has git-paw's marker.
pub(super) async fn is_agents() -> bool {
    Marker::read().await.is_some_and(|it| it.agent.is_some())
}

//! `scan.*`: an agent scans this repository, and no other. A6s 3.0 and 6.9.

use super::A6s;
use super::envelope::{A6sError, Said};
use super::session::Session;
use super::wire::{Scan, ScanJob};
use provost_agents::{Ask, ConfiguredAgent, JobAsk, Plan, PromptFor, ScanFor, fresh_job_id, scan_schema};
use provost_base::JobId;
use provost_domain::{Job, JobKind, JobState, Refusal};

impl A6s {
    /// Answers `scan.techDebt` and `scan.modernize`.
    pub(super) async fn scan(
        &self,
        session: &Session,
        what: ScanFor,
        asked: &Scan,
    ) -> Result<Said, A6sError> {
        let (method, agents) = (what.method(), self.service().configured());
        if !agents.scans {
            return Err(A6sError::new(
                "Scans are off. The owner of this daemon can allow them: `scans = true` beneath `[a6s]` in their own provost.toml, and `provost daemon reload`",
            ));
        }
        let url = asked.repository_url.as_str().trim();
        let Some(folder) = self.service().folder_meant(url).await? else {
            return Err(A6sError::new(format!(
                "{method}: {url} is not this repository: name its folder, a file URL at or below it, or the address of its \
                 `origin`"
            )));
        };
        let works = |it: &&ConfiguredAgent| it.enabled && it.trouble.is_none() && it.takes(method);
        let Some(agent) = agents.agents.iter().find(works) else {
            return Err(A6sError::new(format!(
                "No agent that works takes {method}: configure an `[[agent]]`"
            )));
        };
        let schema = scan_schema().to_string();
        let ask = Ask { task: what.task(), schema: &schema, ..Ask::default() };
        let prompt =
            agents.prompts.render(PromptFor::Scan, &ask).map_err(|err| A6sError::new(err.to_string()))?;
        let ask = JobAsk {
            id: fresh_job_id()?,
            kind: JobKind::Scan,
            method,
            title: format!("{method} {}", if folder.is_root() { "." } else { folder.as_str() }),
            agent: agent.id.to_string(),
            worker: agent.id.clone(),
            prompt,
            working_dir: (!folder.is_root()).then(|| folder.as_str().to_owned()),
            by_agent: true,
            key: None,
            plan: Plan::Scan,
        };
        let job = self.service().begin_job(&session.who, ask).await?;
        Said::new(&ScanJob { job_id: format!("job_{}", job.id), status: "queued", report: None, error: None })
    }

    /// Answers `scan.status`.
    pub(super) async fn scan_status(&self, id: &str) -> Result<Said, A6sError> {
        let unknown = || A6sError::new(format!("Unknown scan job: {}", id.trim()));
        let job = match self.service().job(&JobId::of_any_kind(id).ok_or_else(unknown)?).await {
            Err(Refusal::TaskNotFound) => return Err(unknown()),
            found => found?,
        };
        if job.kind != JobKind::Scan {
            return Err(unknown());
        }
        let report = match job.state {
            JobState::Completed => self.service().job_result(&job.id).await?.answer,
            _ => None,
        };
        Said::new(&ScanJob {
            job_id: format!("job_{}", job.id),
            status: status(&job),
            report: report.map(|it| it.value()),
            error: job.error.as_deref().map(Into::into),
        })
    }
}

/// Returns the status of a scan. The protocol has no word for a cancelled scan; the error says so.
fn status(job: &Job) -> &'static str {
    match job.state {
        JobState::Cancelled => JobState::Failed.as_str(),
        state => state.as_str(),
    }
}

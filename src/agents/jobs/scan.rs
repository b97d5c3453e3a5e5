//! `scan.*`: one run, and a report in a form. A6s 6.9.

use super::runner::{JobRunner, Stop, failed};
use super::runs::RunRequest;
use crate::prompts::{Ask, PromptFor};
use crate::scans::{scan_report, scan_schema, unread_scan};
use provost_base::Json;
use provost_domain::{JobResult, PhaseName};

impl JobRunner {
    /// Runs the scan, and runs it once more if its reply cannot be read.
    pub(super) async fn scan(&self, kept: &mut JobResult) -> Result<(), Stop> {
        let reply = self.look_through(self.order.prompt.clone()).await?;
        let report = match scan_report(&reply) {
            Ok(report) => Ok(report),
            Err(why) => {
                let schema = scan_schema().to_string();
                let ask = Ask { task: &why, code: &reply, schema: &schema, ..Ask::default() };
                let repair = self.service.configured().prompts.render(PromptFor::Repair, &ask);
                let again = self.look_through(repair.map_err(|err| failed(&err))?.into()).await?;
                scan_report(&again)
            }
        };
        let report = report.unwrap_or_else(|why| unread_scan(&reply, &why));
        kept.answer = Some(Json::from_value(&report));
        kept.text = Some(reply.into());
        Ok(())
    }

    /// Runs the agent. Its copy is thrown away with all changes.
    async fn look_through(&self, prompt: Box<str>) -> Result<String, Stop> {
        let run = RunRequest {
            phase: PhaseName::Generate,
            worker: self.job.worker.clone(),
            by_agent: true,
            prompt,
            working_dir: self.order.working_dir.clone(),
            schema: Some(Json::from_value(&scan_schema())),
            copy: None,
            command: None,
            harvest: false,
        };
        Ok(self.run(run).await?.done()?.answer)
    }
}

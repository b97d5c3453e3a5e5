//! `agents.invoke` and `background.launch`: one run, with five phases or none. A6s 6.2 and 6.3.

use super::drive::{Drive, Stop};
use super::runs::{Run, never_ran};
use crate::domain::{JobResult, PhaseName};

impl Drive {
    /// The five phases.
    pub(super) async fn phases(&self, kept: &mut JobResult) -> Result<(), Stop> {
        self.begin(PhaseName::Research).await?;
        self.finish(PhaseName::Research).await?;
        self.begin(PhaseName::Inspect).await?;
        let run = self.whole_run();
        let task = self.start(&run).await?;
        if never_ran(&task) {
            return self.follow(&run, task).await?.done().map(drop);
        }
        self.finish(PhaseName::Inspect).await?;
        self.begin(PhaseName::Generate).await?;
        let ran = self.follow(&run, task).await?.done()?;
        (kept.text, kept.artifacts, kept.left_out) = (Some(ran.answer.into()), ran.artifacts, ran.left_out);
        self.finish(PhaseName::Generate).await?;
        self.begin(PhaseName::Optimize).await?;
        self.finish(PhaseName::Optimize).await?;
        self.begin(PhaseName::Review).await?;
        self.finish(PhaseName::Review).await
    }

    /// One run, and nothing around it.
    pub(super) async fn once(&self, kept: &mut JobResult) -> Result<(), Stop> {
        let ran = self.run(self.whole_run()).await?.done()?;
        (kept.text, kept.artifacts, kept.left_out) = (Some(ran.answer.into()), ran.artifacts, ran.left_out);
        Ok(())
    }

    /// The run that the job was opened for.
    fn whole_run(&self) -> Run {
        Run {
            phase: PhaseName::Generate,
            worker: self.job.worker.clone(),
            by_agent: self.order.by_agent,
            prompt: self.order.prompt.clone(),
            working_dir: self.order.working_dir.clone(),
            schema: None,
            copy: None,
            command: None,
            harvest: true,
        }
    }
}

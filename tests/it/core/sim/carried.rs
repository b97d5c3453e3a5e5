//! Carries out the effects that are owed in the storm: runs end, are lost, or report their files.

use super::*;

impl Sim {
    pub(super) fn carry_out(&mut self) {
        let owed: Vec<_> = self.model.owed.iter().map(|(id, owed)| (*id, owed.clone())).collect();
        if owed.is_empty() {
            return;
        }
        let (effect, (what, started)) = self.pick(&owed);
        let said = match what {
            Effect::RunHook { .. }
            | Effect::SendNotice { .. }
            | Effect::SignalAck { .. }
            | Effect::DropChanges { .. }
            | Effect::RunMerges { .. } => self.say(&host(), SettleEffect { effect }),
            Effect::StopWorker { task, .. } | Effect::WatchFiles { task } => {
                self.note_files(&task);
                self.say(&host(), SettleEffect { effect })
            }
            Effect::RunJob { job } => self.run_job(job, started),
            Effect::WriteFiles { apply, by, .. } => self.end_apply(apply, by),
            Effect::Capture { task, asker } if !started => {
                let said = self.say(&host(), BeginCapture { effect, task, asker });
                if said.is_err() {
                    self.say(&host(), SettleEffect { effect }).unwrap();
                }
                said
            }
            Effect::Capture { task, .. } => {
                let digest = Digest::of(task.as_str().as_bytes());
                let picture =
                    Picture { path: "a.png".into(), format: "png".into(), bytes: 1_180_424, digest };
                let end = self.pick(&[Shot::Taken(picture), Shot::Failed(Failure::Lost)]);
                self.said.count("pictures");
                self.say(&host(), EndCapture { effect, task, end })
            }
            Effect::SpawnWorker { task } if !started => {
                let until = self.now.after(Ttl::minutes(10));
                let said = self.say(&host(), BeginRun { effect, task, until });
                if said.is_err() {
                    self.say(&host(), SettleEffect { effect }).unwrap();
                }
                said
            }
            Effect::SpawnWorker { task } => {
                let status = self.pick(&[Status::Completed, Status::Failed]);
                let report = report(&task, status).report;
                self.note_files(&task);
                let (failure, model_used, changes) = Default::default();
                self.say(&host(), EndRun { effect, task, status, report, failure, model_used, changes })
            }
        };
        if said.is_ok() {
            self.said.count("effects carried out");
        }
    }

    /// Reports the findings about a task's files, which may come after its end.
    fn note_files(&mut self, task: &TaskId) {
        let handoff = self.pick(&[None, Some(ScanReport::default()), Some(ScanReport::unknown("shut"))]);
        let file = WatchedFile { path: "a".into(), change: FileChange::New, from: None };
        let watched = Watched { files: vec![file], ..Watched::default() };
        let watched = self.pick(&[None, Some(watched)]);
        let note = NoteFiles { task: task.clone(), handoff, watched: watched.clone(), news: watched };
        let who = self.someone();
        let said = self.say(&who, note.clone());
        assert!(said.is_err() || who.may(Scope::Host), "{who} spoke for the daemon");
        if self.say(&host(), note).is_ok() {
            self.said.count("files noted");
        }
    }
}

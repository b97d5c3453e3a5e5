//! Turns a text answer into an artifact: the user's file with that text in it.

use super::conventions::{further_tests_of, named_after, tests_of};
use super::location::Tree;
use super::patch::{NoPlace, place};
use super::test_merge::{MergedTests, keep_tests};
use super::{CodePlan, no_change};
use crate::AgentService;
use provost_base::{Digest, RepoPath, TaskId};
use provost_domain::artifact::{artifact_id, language_by_name};
use provost_domain::{Artifact, CollectedArtifact};

/// The most files of tests beside an existing one; beyond them, nothing is added.
const FURTHER_TESTS_MAX: u32 = 9;

/// A file that was made from an answer.
pub(crate) struct CodeEdit {
    kind: &'static str,
    path: String,
    content: String,
    /// The file's present content and its digest; `None` if it does not exist.
    before: Option<(Vec<u8>, Digest)>,
}

impl CodeEdit {
    fn snippet(path: String, content: String) -> Self {
        Self { kind: "snippet", path, content, before: None }
    }

    /// Turns the file into an artifact, as if a run had made it.
    pub(crate) fn collected(self, task: &TaskId) -> CollectedArtifact {
        let artifact = Artifact {
            id: artifact_id(task, 1),
            kind: self.kind.into(),
            content: self.content.into(),
            language: language_by_name(&self.path).into(),
            path: self.path.into(),
            base_hash: self.before.as_ref().map(|(_, digest)| *digest),
            mode: None,
            base_mode: None,
        };
        CollectedArtifact { artifact, bytes: None, base: self.before.map(|(bytes, _)| bytes), lines: (0, 0) }
    }
}

impl AgentService {
    /// Returns the file of a selection with new text in its place. Blocking.
    ///
    /// # Errors
    /// The reason why there is no new file, as a sentence.
    pub(crate) fn refactored(&self, plan: &CodePlan, new: &str) -> Result<CodeEdit, String> {
        let same = || no_change("the answer is the code as it was");
        let Some(file) = &plan.file else {
            let content = place(&plan.code, &plan.code).map_err(|why| why.says(&plan.name))?.with(new);
            return match *content == *plan.code {
                true => Err(same()),
                false => Ok(CodeEdit::snippet(plan.name.to_string(), content)),
            };
        };
        let there = self.provost().file_now(file).map_err(|why| format!("{file}: {why}"))?;
        let (bytes, digest) = there.ok_or_else(|| NoPlace::Nowhere.says(file.as_str()))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| format!("{file}: it is no text in UTF-8"))?;
        let content = place(text, &plan.code).map_err(|why| why.says(file.as_str()))?.with(new);
        if content == text {
            return Err(same());
        }
        Ok(CodeEdit { kind: "file", path: file.to_string(), content, before: Some((bytes, digest)) })
    }

    /// Returns the file of tests with the existing tests and the new ones. Blocking.
    ///
    /// # Errors
    /// As for [`AgentService::refactored`].
    pub(crate) fn with_tests(&self, plan: &CodePlan, new: &str) -> Result<CodeEdit, String> {
        let tree = Tree(self.provost().root().handle());
        let Some(path) = &plan.tests else {
            let name = tests_of(&named_after(&plan.name, &plan.language), &tree);
            let name = name.rsplit('/').next().unwrap_or_default().to_owned();
            return Ok(CodeEdit::snippet(name, format!("{}\n", new.trim_end())));
        };
        let made = |path: &RepoPath, content, before| CodeEdit {
            kind: "test",
            path: path.to_string(),
            content,
            before,
        };
        let Some((bytes, digest)) = self.provost().file_now(path).map_err(|why| format!("{path}: {why}"))?
        else {
            return Ok(made(path, format!("{}\n", new.trim_end()), None));
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| format!("{path}: it is no text in UTF-8"))?;
        match keep_tests(text, new) {
            MergedTests::Whole(content) if content.trim_end() == text.trim_end() => {
                Err(no_change("the answer holds no test that is not there already"))
            }
            MergedTests::Whole(content) => Ok(made(path, content, Some((bytes, digest)))),
            MergedTests::Lost(lost) => {
                // If the file is one of tests itself, further tests go beside it.
                let of = plan.file.as_ref().unwrap_or(path);
                let further = (2..=FURTHER_TESTS_MAX)
                    .filter_map(|number| RepoPath::parse(&further_tests_of(of.as_str(), number, &tree)?).ok())
                    .find(|path| matches!(self.provost().file_now(path), Ok(None)));
                let lost = lost.join(", ");
                let further = further.ok_or_else(|| {
                    no_change(&format!("the answer leaves out existing parts of {path}: {lost}"))
                })?;
                Ok(made(&further, format!("{}\n", new.trim_end()), None))
            }
        }
    }
}

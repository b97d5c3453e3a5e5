//! The requests of the protocol: every method, with its parameters. A6s 3.0.

use serde::de::DeserializeOwned;

use super::envelope::A6sError;
use super::wire;

/// Defines the methods: their names, and the types of their parameters.
macro_rules! methods {
    ($($name:literal => $Call:ident($Params:ident),)+) => {
        /// A method with its parameters.
        #[derive(Clone, Debug)]
        pub enum Call {
            $(
                #[doc = concat!("`", $name, "`.")]
                $Call(wire::$Params),
            )+
        }

        impl Call {
            /// Reads a method's parameters.
            ///
            /// # Errors
            /// A sentence that names the wrong member, or says that the method does not exist.
            pub fn read(method: &str, params: Option<&str>) -> Result<Self, A6sError> {
                match method {
                    $($name => read(method, params).map(Self::$Call),)+
                    _ => Err(A6sError::unknown_method(method)),
                }
            }

            /// Returns the method's name in the protocol.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$Call(_) => $name,)+
                }
            }
        }
    };
}

methods! {
    "agents.list" => AgentsList(Nothing),
    "agents.invoke" => AgentsInvoke(Invoke),
    "execution.status" => ExecutionStatus(OfExecution),
    "background.list" => BackgroundList(Nothing),
    "background.launch" => BackgroundLaunch(Launch),
    "background.cancel" => BackgroundCancel(OfTask),
    "background.output" => BackgroundOutput(OfTask),
    "background.say" => BackgroundSay(Words),
    "artifacts.preview" => ArtifactsPreview(OfArtifacts),
    "artifacts.apply" => ArtifactsApply(OfArtifacts),
    "code.explain" => CodeExplain(OfCode),
    "code.refactor" => CodeRefactor(OfCode),
    "code.generateTests" => CodeGenerateTests(OfCode),
    "code.review" => CodeReview(OfCode),
    "workflows.list" => WorkflowsList(WorkflowsWanted),
    "workflows.run" => WorkflowsRun(RunWorkflow),
    "workflows.status" => WorkflowsStatus(OfExecution),
    "workflows.cancel" => WorkflowsCancel(OfExecution),
    "fleet.list" => FleetList(FleetWanted),
    "fleet.status" => FleetStatus(FleetOf),
    "fleet.command" => FleetCommand(FleetCommand),
    "scan.techDebt" => ScanTechDebt(Scan),
    "scan.modernize" => ScanModernize(Scan),
    "scan.status" => ScanStatus(OfScan),
    "feedback.submit" => FeedbackSubmit(Feedback),
}

/// Reads the parameters of a method. Absent, `null` and `[]` are the same as `{}`: each is sent by some editor.
fn read<T: DeserializeOwned>(method: &str, params: Option<&str>) -> Result<T, A6sError> {
    let params = match params.map(str::trim) {
        None | Some("null") => "{}",
        Some(list) if is_empty_list(list) => "{}",
        Some(object) if object.starts_with('{') => object,
        Some(_) => return Err(A6sError::new(format!("{method}: params must be an object"))),
    };
    let mut reader = serde_json::Deserializer::from_str(params);
    serde_path_to_error::deserialize(&mut reader).map_err(|err| {
        let (path, why) = (err.path().to_string(), err.inner().to_string());
        // The position in the text is useless to a caller that has not seen the text.
        let why = why.split(" at line ").next().unwrap_or_default();
        let at = if path == "." { String::new() } else { format!("`{path}`: ") };
        A6sError::new(format!("{method}: {at}{why}"))
    })
}

/// Returns whether a text is `[]`.
pub(super) fn is_empty_list(text: &str) -> bool {
    text.trim().strip_prefix('[').and_then(|it| it.strip_suffix(']')).is_some_and(|it| it.trim().is_empty())
}

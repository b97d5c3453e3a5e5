//! What can be asked for: every method, with what it takes. A6s 3.0.

use serde::de::DeserializeOwned;

use super::envelope::A6sError;
use super::wire;

/// The methods: their names, and what each takes.
macro_rules! methods {
    ($($name:literal => $Call:ident($Params:ident),)+) => {
        /// A method, and what it is called with.
        #[derive(Clone, Debug)]
        pub enum Call {
            $(
                #[doc = concat!("`", $name, "`.")]
                $Call(wire::$Params),
            )+
        }

        impl Call {
            /// Reads what a method is called with.
            ///
            /// # Errors
            /// A sentence about which member is wrong, or that there is no such method.
            pub fn read(method: &str, params: Option<&str>) -> Result<Self, A6sError> {
                match method {
                    $($name => read(method, params).map(Self::$Call),)+
                    _ => Err(A6sError::unknown_method(method)),
                }
            }

            /// The method's name as the protocol writes it.
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

/// Reads the parameters of a method. Nothing, `null` and `[]` are the same as `{}`: each is some editor's way.
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
        // The position in the text means nothing to a caller that has not seen the text.
        let why = why.split(" at line ").next().unwrap_or_default();
        let at = if path == "." { String::new() } else { format!("`{path}`: ") };
        A6sError::new(format!("{method}: {at}{why}"))
    })
}

/// Whether it is `[]`.
pub(super) fn is_empty_list(text: &str) -> bool {
    text.trim().strip_prefix('[').and_then(|it| it.strip_suffix(']')).is_some_and(|it| it.trim().is_empty())
}

//! A server made for the conformance suite: the tools, prompts and resources that the suite asks for, behind
//! the product's own door over HTTP.
#![expect(deprecated, reason = "the suite asks for what the newer revision has given up, too")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost::auth::keys::KeyRing;
use provost::auth::names::Names;
use provost::base::later::RunsOutside;
use provost::base::limits::CONNECTIONS_MAX;
use provost::client::Client;
use provost::engine::SystemClock;
use provost::index::{Index, Options};
use provost::jail::{OutputBoard, Root};
use provost::mcp::McpHttp;
use provost::protocols::loopback::{Gate, Shell};
use provost::service::{ApplyRules, Applying, Configured, Provost};
use provost::store::{Artifacts, Retention};
use provost::system::folder_watch::FolderWatcher;
use provost::transport::accept::accept_loop;
use provost::transport::loopback::bind;
use provost::workspace::Versions;
use provost::workspace::work_trees::WorkTrees;
use provost_test_equipment::MemoryStore;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CompleteRequestParams,
    CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse, InputRequiredResult,
    InputResponses, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::script::{ByWord, host, no_merges};
use crate::support::storm::settings;

/// One pixel, and the shortest sound.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// Serves in this folder until `stop`; says where.
pub(crate) fn serve(dir: &Path, stop: CancellationToken) -> String {
    let bound = bind(0).unwrap();
    let port = bound.port();
    let nobody = |_, _| Client::at(std::path::PathBuf::new());
    let door = McpHttp::serving(Arc::new(nobody), || Fixtures, stop.clone());
    let keys = Arc::new(KeyRing::open(&dir.join("keys")).unwrap());
    let names = Arc::new(Names::by_keys(keys));
    let uid = rustix::process::geteuid().as_raw();
    let shell = Shell::new(
        door,
        Gate {
            port,
            uid,
            names,
            provost: Some(provost(dir)),
            demands_token: false,
            carriers: Default::default(),
        },
    );
    let serve = move |accepted, guard| shell.clone().serve(accepted, guard);
    tokio::spawn(accept_loop(bound, CONNECTIONS_MAX, stop, Duration::from_secs(1), serve));
    format!("http://127.0.0.1:{port}/mcp")
}

/// Returns the service that the gate asks about tokens; there are none.
fn provost(dir: &Path) -> Provost {
    let keep = Duration::from_secs(3_600);
    let retention = Retention { tasks: keep, tasks_most: u32::MAX, events: keep };
    let (store, judge) = (Box::new(MemoryStore::new()), Box::new(ByWord::default()));
    let started = provost::engine::start(store, judge, settings(), Box::new(SystemClock), retention).unwrap();
    let index =
        Index::start(dir, Arc::default(), &FolderWatcher::default(), Options { on: false, files_max: 0 })
            .unwrap();
    let state = dir.join(".state");
    let kept = (
        Versions::open(&state).unwrap(),
        Applying::open(
            &state,
            ApplyRules {
                deny: &[],
                unknown: true,
                settings: false,
                files: 500,
                held: Box::new(|_, _| Ok(RunsOutside::default())),
            },
        )
        .unwrap(),
        Arc::new(WorkTrees::new(dir, &dir.join(".trees"))),
    );
    let configured = Configured {
        profiles: Arc::default(),
        artifacts: Artifacts::at(&state),
        room: Default::default(),
        merges: no_merges(),
    };
    let root = Root::open(dir).unwrap();
    Provost::new(started.engine, host(), root, OutputBoard::default(), configured, index, kept)
}

/// The server.
#[derive(Clone)]
struct Fixtures;

type Context = RequestContext<RoleServer>;

/// JSON as one of the protocol's types.
fn made<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json.clone()).unwrap_or_else(|err| panic!("{err}: {json}"))
}

/// The same as a result, which has to say that it is one.
fn result<T: DeserializeOwned>(mut json: Value) -> T {
    json["resultType"] = "complete".into();
    made(json)
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// Tools that always answer alike: their content.
fn always(tool: &str) -> Option<Value> {
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let resource = |uri: &str, kind: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } });
    Some(match tool {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => {
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:")[0],
            image,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_logging_tool" | "test_custom_headers" | "json_schema_2020_12_tool" => text("done"),
        _ => return None,
    })
}

const TOOLS: [&str; 25] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_custom_headers",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "json_schema_2020_12_tool",
];

/// Returns an elicitation of the older era for a person: the words, and the form.
fn form(tool: &str, arguments: &Value) -> Value {
    let (message, properties) = match tool {
        "test_elicitation" => {
            let text = json!({ "type": "string", "description": "The person's answer" });
            (arguments["message"].clone(), json!({ "username": text, "email": text }))
        }
        "test_elicitation_sep1034_defaults" => (
            json!("Defaults"),
            json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true },
            }),
        ),
        _ => {
            let named = |number: usize| json!({ "const": format!("value{number}"), "title": format!("Option {number}") });
            let titled = json!([named(1), named(2), named(3)]);
            let plain = json!(["option1", "option2", "option3"]);
            (
                json!("Choices"),
                json!({
                    "untitledSingle": { "type": "string", "enum": plain },
                    "titledSingle": { "type": "string", "oneOf": titled },
                    "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"] },
                    "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
                    "titledMulti": { "type": "array", "items": { "anyOf": titled } },
                }),
            )
        }
    };
    json!({ "mode": "form", "message": message, "requestedSchema": { "type": "object", "properties": properties } })
}

/// Returns a request to a host in the newer era, by name: a member of a form, a model's words, or its folders.
fn wanted(name: &str) -> Value {
    match name {
        "capital_question" | "greeting" => json!({ "method": "sampling/createMessage", "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Say it." } }], "maxTokens": 100,
        } }),
        "client_roots" => json!({ "method": "roots/list", "params": {} }),
        _ => {
            let (member, kind) = match name {
                "confirm" => ("ok", "boolean"),
                "step2" => ("color", "string"),
                "user_context" => ("context", "string"),
                _ => ("name", "string"),
            };
            let form =
                json!({ "type": "object", "properties": { member: { "type": kind } }, "required": [member] });
            json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Please", "requestedSchema": form } })
        }
    }
}

/// Whether an answer has the shape of what was asked.
fn fits(name: &str, answer: &Value) -> bool {
    match name {
        "capital_question" | "greeting" => answer["content"].is_object(),
        "client_roots" => answer["roots"].is_array(),
        _ => answer["content"].is_object() && answer["action"] == "accept",
    }
}

fn codec() -> RequestStateCodec {
    RequestStateCodec::try_new([7; 32]).unwrap()
}

/// The next round of a conversation: what is to be asked, or nothing when all was answered.
fn round(
    name: &str,
    answers: Option<&InputResponses>,
    state: Option<&str>,
    able: Option<&ClientCapabilities>,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let opened = state.map(|it| codec().open(it)).transpose();
    let opened =
        opened.map_err(|err| ErrorData::invalid_params(format!("the state is not ours: {err}"), None))?;
    let is_second = opened.as_deref() == Some(b"1");
    let (names, has_state): (&[&str], bool) = match name {
        "sampling" => (&["capital_question"], false),
        "list_roots" => (&["client_roots"], false),
        "request_state" | "tampered_state" => (&["confirm"], true),
        "multiple_inputs" => (&["user_name", "greeting", "client_roots"], true),
        "multi_round" if is_second => (&["step1"], true),
        "multi_round" => (if opened.is_some() { &["step2"] } else { &["step1"] }, true),
        "capabilities" if able.is_none_or(|it| it.elicitation.is_none()) => (&["capital_question"], false),
        "prompt" => (&["user_context"], false),
        _ => (&["user_name"], false),
    };
    let answered = |it: &&str| answers.and_then(|all| all.get(*it)).is_some_and(|answer| fits(it, answer));
    let all = names.iter().all(answered);
    let ask = |names: &[&str], state: Option<&[u8]>| {
        let requests: serde_json::Map<String, Value> =
            names.iter().map(|it| ((*it).to_owned(), wanted(it))).collect();
        InputRequiredResult::new(Some(made(requests.into())), state.map(|it| codec().seal(it)))
    };
    Ok(match (name, all) {
        ("multi_round", true) if is_second => Some(ask(&["step2"], Some(b"2"))),
        (_, true) => None,
        (_, false) => Some(ask(names, has_state.then_some(b"1"))),
    })
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging();
        ServerConfig::new(able.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str| {
            let schema = match name {
                "test_custom_headers" => {
                    json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } })
                }
                "json_schema_2020_12_tool" => rich_schema(),
                _ => json!({ "type": "object" }),
            };
            json!({ "name": name, "description": "For the suite.", "inputSchema": schema })
        };
        Ok(result(json!({ "tools": TOOLS.map(tool) })))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        if let Some(content) = always(name) {
            return Ok(result::<CallToolResult>(json!({ "content": content })).into());
        }
        let kind = name.strip_prefix("test_input_required_result_");
        if let Some(kind) = kind.or((name == "test_streaming_elicitation").then_some("elicitation")) {
            let (answers, state) = (request.input_responses.as_ref(), request.request_state.as_deref());
            if let Some(more) = round(kind, answers, state, context.client_capabilities().as_ref())? {
                return Ok(more.into());
            }
            let said = format!("state-ok {}", json!(answers));
            return Ok(result::<CallToolResult>(json!({ "content": text(&said) })).into());
        }
        let arguments = request.arguments.map(Value::Object).unwrap_or_default();
        let said = match name {
            "test_missing_capability" => {
                if context.client_capabilities().is_none_or(|it| it.sampling.is_none()) {
                    let needed = made(json!({ "sampling": {} }));
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                "done".to_owned()
            }
            "test_error_handling" => {
                let content = text("This tool intentionally returns an error for testing");
                return Ok(result::<CallToolResult>(json!({ "content": content, "isError": true })).into());
            }
            "test_tool_with_progress" => progress(&context).await,
            "test_tool_with_logging" => logs(&context).await,
            "test_sampling" => samples(&context, &arguments).await?,
            "test_elicitation" | "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
                let answer = context.peer.create_elicitation(made(form(name, &arguments))).await;
                let answer = answer.map_err(|err| ErrorData::internal_error(err.to_string(), None))?;
                format!("Elicitation completed: {}", json!(answer))
            }
            _ => return Err(ErrorData::invalid_params(format!("there is no tool {name}"), None)),
        };
        Ok(result::<CallToolResult>(json!({ "content": text(&said) })).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |name: &str| json!({ "name": name, "description": "For the suite." });
        let names = ["test_simple_prompt", "test_prompt_with_image", "test_input_required_result_prompt"];
        let mut prompts: Vec<Value> = names.map(prompt).into();
        for (name, arguments) in [
            ("test_prompt_with_arguments", &["arg1", "arg2"][..]),
            ("test_prompt_with_embedded_resource", &["resourceUri"]),
        ] {
            let arguments: Vec<Value> = arguments
                .iter()
                .map(|it| json!({ "name": it, "description": "It.", "required": true }))
                .collect();
            prompts.push(json!({ "name": name, "description": "For the suite.", "arguments": arguments }));
        }
        Ok(result(json!({ "prompts": prompts })))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given =
            |name: &str| request.arguments.as_ref().and_then(|it| it.get(name)).cloned().unwrap_or_default();
        let says = |content: Value| json!({ "role": "user", "content": content });
        let text = |it: &str| says(json!({ "type": "text", "text": it }));
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
            "test_prompt_with_arguments" => {
                let (one, two) = (json!(given("arg1")), json!(given("arg2")));
                let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
                json!([text(&format!("Prompt with arguments: arg1='{}', arg2='{}'", word(&one), word(&two)))])
            }
            "test_prompt_with_embedded_resource" => {
                let resource = json!({ "uri": given("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing." });
                json!([
                    says(json!({ "type": "resource", "resource": resource })),
                    text("Please process the embedded resource above.")
                ])
            }
            "test_prompt_with_image" => json!([
                says(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
                text("Please analyze the image above."),
            ]),
            "test_input_required_result_prompt" => {
                let (answers, state) = (request.input_responses.as_ref(), request.request_state.as_deref());
                if let Some(more) = round("prompt", answers, state, context.client_capabilities().as_ref())? {
                    return Ok(more.into());
                }
                json!([text("It is so.")])
            }
            name => return Err(ErrorData::invalid_params(format!("there is no prompt {name}"), None)),
        };
        Ok(result::<rmcp::model::GetPromptResult>(json!({ "messages": messages })).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let one = |uri: &str| json!({ "uri": uri, "name": uri, "description": "For the suite.", "mimeType": "text/plain" });
        let all = ["test://static-text", "test://static-binary", "test://watched-resource"];
        Ok(result(json!({ "resources": all.map(one) })))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({ "uriTemplate": "test://template/{id}/data", "name": "template" });
        Ok(result(json!({ "resourceTemplates": [template] })))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let template = uri.strip_prefix("test://template/").and_then(|it| it.strip_suffix("/data"));
        let content = match (uri, template) {
            ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
            ("test://static-text" | "test://watched-resource", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            (_, Some(id)) => {
                let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
            }
            _ => {
                let why = format!("there is no resource {uri}");
                return Err(ErrorData::resource_not_found(why, Some(json!({ "uri": uri }))));
            }
        };
        Ok(result::<rmcp::model::ReadResourceResult>(json!({ "contents": [content] })).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // Nothing ever changes.
        context.request_context().ct.cancelled().await;
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(&self, _: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        Ok(result(json!({ "completion": { "values": ["paris", "park"], "total": 2, "hasMore": false } })))
    }
}

fn rich_schema() -> Value {
    let street = json!({ "type": "object", "$anchor": "address", "properties": { "street": { "type": "string" }, "city": { "type": "string" } } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": street },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

async fn progress(context: &Context) -> String {
    if let Some(token) = context.meta.get_progress_token() {
        for share in [0.0, 50.0, 100.0] {
            let now = ProgressNotificationParam::new(token.clone(), share).with_total(100.0);
            context.peer.notify_progress(now).await.unwrap();
        }
    }
    "done".into()
}

async fn logs(context: &Context) -> String {
    for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(said));
        context.peer.notify_logging_message(line).await.unwrap();
    }
    "done".into()
}

async fn samples(context: &Context, arguments: &Value) -> Result<String, ErrorData> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": arguments["prompt"] } });
    let asked = made(json!({ "messages": [message], "maxTokens": 100 }));
    let answer = context.peer.create_message(asked).await;
    let answer = answer.map_err(|err| ErrorData::internal_error(err.to_string(), None))?;
    Ok(format!("LLM response: {}", json!(answer)))
}

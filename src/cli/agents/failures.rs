//! The next steps after failures that `provost agent try` has seen.

use provost_base::{AgentId, task_command};

/// The next step if the model's service does not answer at all.
const UNREACHABLE: &str = "the model's service cannot be reached from this machine: look at the network, and at the address of \
                           its secret (provost secret list); another address: provost agent remove {name}, then provost agent \
                           add … --upstream URL";

/// Words of a failure, and the next step. The first row whose words are found counts.
const KNOWN: &[(&[&str], &str)] = &[
    (
        &["of acp; the daemon speaks"],
        "install a version of the program, or of its adapter, that speaks version 1 of ACP too; or: provost agent remove {name}, \
         then provost agent add … --one-shot",
    ),
    (
        &["its standard output is not acp", "answers to initialize is not acp"],
        "its command does not speak ACP: name the adapter with provost agent add … --program PATH, or add it with --one-shot",
    ),
    (
        &["no session within"],
        "it has started and begun no session: provost jail explain {name} shows what it can reach; on a busy machine, try again",
    ),
    (
        &["it has no mode"],
        "set `acp_mode` in the entry of {name} to one of those modes; this version has other names than the one that was tried",
    ),
    (&["cannot be connected to:", "has no address:", "did not answer within"], UNREACHABLE),
    (
        &["has expired", "token_expired", "refresh token"],
        "log in again outside of the jail, then: provost agent try {name}",
    ),
    (
        &[
            "wants to be signed in",
            "-32000 to",
            "to authenticate:",
            "authentication required",
            "login required",
            "log in to",
        ],
        "it found no key that it takes, and a log-in that needs a person cannot be done in the jail: put in a key with \
         provost agent remove {name}, then provost agent add … --key-from VARIABLE",
    ),
    (
        &[
            "not logged in",
            "/login",
            "401",
            "invalid x-api-key",
            "api key",
            "api_key",
            "authentication",
            "auth method",
            "unauthorized",
        ],
        "put in another key: provost secret remove NAME, then provost agent remove {name} and provost agent add",
    ),
    (
        &["quota", "credit balance", "billing", "insufficient", "402"],
        "look at the account at the model's service; it takes the key and has nothing left",
    ),
    (
        &["429", "rate limit", "rate_limit", "overloaded", "529"],
        "wait a while, then: provost agent try {name}",
    ),
    (
        &["is not among the hosts", "may reach", "host_not_allowed", "is not granted"],
        "add the host to `hosts` in the entry of {name}, and let a rule allow it",
    ),
    (
        &["creating new namespace failed", "bwrap", "no permissions to create new namespace", "landlock"],
        "switch the program's own sandbox off in its entry: two do not nest",
    ),
    (
        &["out of memory", "heap limit", "cannot allocate memory", "enomem", "bad_alloc"],
        "it needs more memory than its entry lets each of its processes have: set a larger `memory` there",
    ),
    (
        &["no space left", "enospc"],
        "its home and /tmp are full: set a larger `tmp_size` in the entry of {name}",
    ),
    (
        &[
            "unsupported engine",
            "requires node",
            "node.js version",
            "err_unknown_builtin_module",
            "err_require_esm",
        ],
        "install a newer Node.js, then: provost agent remove {name}, then provost agent add",
    ),
    (
        &["env: node", "node: not found", "cannot find module"],
        "provost agent remove {name}, then provost agent add: the program has moved",
    ),
    (
        &["erofs", "read-only file system"],
        "it writes where the jail lets it only read: provost jail explain {name}; name another folder in its `env`",
    ),
    (
        &[
            "model_not_found",
            "model not found",
            "unknown model",
            "invalid model",
            "no such model",
            "unsupported model",
            "selected model",
            "no model",
            "not a valid model",
            "model is not supported",
            "does not exist or you do not have access",
            "is not found for api version",
            "not_found_error",
        ],
        "name another model: provost agent remove {name}, then provost agent add … --model NAME",
    ),
    (
        &[
            "connection refused",
            "econnrefused",
            "econnreset",
            "enotfound",
            "eai_again",
            "enetunreach",
            "bad gateway",
            "gateway timeout",
            "service unavailable",
        ],
        UNREACHABLE,
    ),
    (&["not found", "no such file", "enoent"], "provost jail explain {name} shows what it sees"),
    (&["approval", "denied"], "provost approval list, then: provost agent try {name}"),
];

/// Returns the next step. `what` is the end of the run, and `said` its standard error.
pub(super) fn next_of(name: &AgentId, task: &str, what: &str, said: &str) -> String {
    let text = format!("{what}\n{said}").to_lowercase();
    let known = KNOWN.iter().find(|(words, _)| words.iter().any(|word| text.contains(word)));
    match known {
        Some((_, next)) => next.replace("{name}", name.as_str()),
        None => task_command("task show", task, ""),
    }
}

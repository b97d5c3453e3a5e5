//! Scans of a whole repository by agents: their prompts, the check of the repository, and the parsing of their
//! findings. A6s 6.9.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::AgentService;
use super::replies::{Severity, reply_as};
use provost_base::RepoPath;
use provost_base::limits::{GIT_CONFIG_BYTES_MAX, REVIEW_TEXT_MAX, SCAN_FINDINGS_MAX, SCAN_TITLE_MAX};
use provost_domain::Refusal;

/// The kinds of scans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanFor {
    /// `scan.techDebt`
    TechDebt,
    /// `scan.modernize`
    Modernize,
}

impl ScanFor {
    /// Returns the method of A6s that begins it.
    pub fn method(self) -> &'static str {
        match self {
            ScanFor::TechDebt => "scan.techDebt",
            ScanFor::Modernize => "scan.modernize",
        }
    }

    /// Returns the agent's task, in a few sentences.
    pub fn task(self) -> &'static str {
        match self {
            ScanFor::TechDebt => {
                "Look for technical debt: what makes this project harder to change, to test and to rely on than it has to \
                 be. Begin with what costs most, and name the file and the line where there is one."
            }
            ScanFor::Modernize => {
                "Look for what is out of date: dependencies, versions of languages, interfaces that their makers have given \
                 up, ways of doing things for which there are better ones by now. Begin with what is worth most, and name \
                 the file and the line where there is one."
            }
        }
    }
}

/// Returns the JSON Schema of a report.
pub fn scan_schema() -> Value {
    json!({
        "type": "object",
        "required": ["summary", "findings"],
        "properties": {
            "summary": { "type": "string" },
            "findings": {
                "type": "array",
                "maxItems": SCAN_FINDINGS_MAX,
                "items": {
                    "type": "object",
                    "required": ["title", "severity", "detail"],
                    "properties": {
                        "title": { "type": "string", "minLength": 1, "maxLength": SCAN_TITLE_MAX },
                        "severity": { "enum": ["error", "warning", "info"] },
                        "path": { "type": "string" },
                        "line": { "type": "integer", "minimum": 1 },
                        "detail": { "type": "string", "maxLength": REVIEW_TEXT_MAX }
                    }
                }
            }
        }
    })
}

/// Reads the report in an agent's reply, and checks it against its schema.
///
/// # Errors
/// The mistake, as a sentence for the agent that has to correct it.
pub fn scan_report(reply: &str) -> Result<Value, String> {
    reply_as(reply, "findings", &scan_schema(), in_form)
}

/// Returns a report for a reply that could not be read: visibly so, since an empty one would look like praise.
pub fn unread_scan(reply: &str, why: &str) -> Value {
    let title = "The scan's reply was not in the asked form";
    let summary: String = reply.trim().chars().take(REVIEW_TEXT_MAX).collect();
    json!({ "summary": summary, "findings": [{ "title": title, "severity": "info", "detail": why }] })
}

/// Corrects trivial mistakes: synonyms, nulls, invalid paths and lines, and values that are too long or too many.
fn in_form(value: Value) -> Value {
    let Value::Object(mut report) = value else { return value };
    report.retain(|key, value| !value.is_null() && matches!(key.as_str(), "summary" | "findings"));
    if let Some(Value::Array(findings)) = report.get_mut("findings") {
        findings.truncate(SCAN_FINDINGS_MAX);
        findings.iter_mut().filter_map(Value::as_object_mut).for_each(put_right);
    }
    Value::Object(report)
}

fn put_right(finding: &mut Map<String, Value>) {
    const KEYS: [&str; 5] = ["title", "severity", "path", "line", "detail"];
    finding.retain(|key, value| !value.is_null() && KEYS.contains(&key.as_str()));
    let text = |finding: &Map<String, Value>, key: &str| finding.get(key)?.as_str().map(str::to_owned);
    if let Some(word) = text(finding, "severity") {
        finding.insert("severity".into(), Severity::meant_by(&word).name().into());
    }
    for (key, most) in [("title", SCAN_TITLE_MAX), ("detail", REVIEW_TEXT_MAX)] {
        if let Some(said) = text(finding, key) {
            finding.insert(key.into(), said.trim().chars().take(most).collect::<String>().into());
        }
    }
    finding.entry("detail").or_insert_with(|| "".into());
    let path =
        text(finding, "path").and_then(|it| RepoPath::parse(it.trim()).ok()).filter(|it| !it.is_root());
    match path {
        Some(path) => drop(finding.insert("path".into(), path.as_str().into())),
        None => drop(finding.remove("path")),
    }
    let line = finding.remove("line");
    let number = line.and_then(|it| it.as_u64().or_else(|| it.as_str()?.trim().parse().ok()));
    if let Some(number) = number.filter(|it| *it > 0) {
        finding.insert("line".into(), number.into());
    }
}

impl AgentService {
    /// Returns the folder of this repository that an address names, from its root: the root's path, a file URL at or below it,
    /// or git's `origin`. `None` for any other address: nothing is fetched from anywhere.
    ///
    /// # Errors
    /// [`Refusal::NotReady`] if the daemon cannot look at the moment.
    pub async fn folder_meant(&self, address: &str) -> Result<Option<RepoPath>, Refusal> {
        let (provost, address) = (self.provost().clone(), address.trim().to_owned());
        let look = move || {
            let root = provost.root().place().path().to_owned();
            let inside = match local(&address) {
                Some(path) => std::fs::canonicalize(path).ok()?.strip_prefix(&root).ok()?.to_owned(),
                None => origin(&root).filter(|it| is_same_address(it, &address)).map(|_| PathBuf::new())?,
            };
            let folder = RepoPath::parse(inside.to_str()?).ok()?;
            // A file cannot be scanned, nor can the target of a link that leads out.
            provost.root().resolve_dir(&folder).ok().map(|_| folder)
        };
        let looked = tokio::task::spawn_blocking(look).await;
        looked.map_err(|err| Refusal::NotReady { why: err.to_string().into() })
    }
}

/// Returns the path that an address names on this machine: an absolute path, or a URL with no other host.
fn local(address: &str) -> Option<PathBuf> {
    let Some(rest) = address.strip_prefix("file://") else {
        return Path::new(address).is_absolute().then(|| PathBuf::from(address));
    };
    let path = rest.strip_prefix("localhost").filter(|it| it.starts_with('/')).unwrap_or(rest);
    let path = percent_decode_str(path).decode_utf8().ok()?;
    Path::new(&*path).is_absolute().then(|| PathBuf::from(&*path))
}

/// Returns the address of `origin`, read from git's own settings file.
fn origin(root: &Path) -> Option<String> {
    let git = root.join(".git");
    let folder = match std::fs::metadata(&git).ok()?.is_dir() {
        true => git,
        false => {
            let text = bounded_text(&git)?;
            let to = PathBuf::from(text.trim().strip_prefix("gitdir:")?.trim());
            let own = root.join(to);
            match bounded_text(&own.join("commondir")) {
                Some(common) => own.join(common.trim()),
                None => own,
            }
        }
    };
    let text = bounded_text(&folder.join("config"))?;
    let mut is_origin = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            let name = line.trim_start_matches('[').split(']').next().unwrap_or_default();
            let words: Vec<&str> = name.splitn(2, char::is_whitespace).map(str::trim).collect();
            is_origin =
                matches!(words[..], [section, "\"origin\""] if section.eq_ignore_ascii_case("remote"));
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_origin)
            && key.trim().eq_ignore_ascii_case("url")
        {
            found = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    found
}

fn bounded_text(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(GIT_CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Checks whether two addresses are equal, apart from the user's name and from endings that make no difference.
fn is_same_address(one: &str, other: &str) -> bool {
    let bare = |address: &str| {
        let address = address.trim().trim_end_matches('/');
        let address = address.strip_suffix(".git").unwrap_or(address);
        match address.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
                format!("{}://{host}/{path}", scheme.to_ascii_lowercase())
            }
            None => address.to_owned(),
        }
    };
    bare(one) == bare(other)
}

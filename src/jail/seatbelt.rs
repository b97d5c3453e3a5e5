//! The profile that Apple's sandbox gets for a plan: text, made from the plan alone.
//!
//! ```text
//! deny default, then allow: programs of its own, reading the system and what the plan names,
//! writing to its directories and its private folder; then deny again: protected and masked paths
//! ```
//! If two rules fit, the later one counts. The names of protected paths fit in any spelling of upper and
//! lower case, since the file system of a Mac takes `.GIT` for `.git`.
//!
//! The callers refuse plans that a profile cannot enforce; the other gaps are listed in [`SEATBELT_LACKS`].
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::Path;

use super::plan::{Network, Plan};
use super::read_only::Git;

/// The promises of tier `ll` that Seatbelt does not keep, for people who run workers on a Mac.
pub const SEATBELT_LACKS: [&str; 6] = [
    "the worker has no door of its own to the daemon",
    "a process that leaves its group and its parent within a second can outlive the run",
    "other processes of the user can be listed",
    "names that differ in the form of accented letters are told apart here and not by every file system",
    "the program is checked before it starts, and found again by its name",
    "memory, temporary files and growth are watched, not walled in",
];

/// The paths that every worker may read: the system's programs, libraries and settings.
const READABLE: [&str; 12] = [
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/System",
    "/bin",
    "/opt/homebrew",
    "/private/etc",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/select",
    "/sbin",
    "/usr",
    "/Applications/Xcode.app/Contents/Developer",
];

/// Single files, and directories on the way to readable ones: only the directory's own entry can be read.
const READABLE_ALONE: [&str; 9] =
    ["/", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero", "/etc", "/private", "/tmp", "/var"];

/// Services that the system's libraries need in every program. All others are denied, such as the keychain
/// (SecurityServer, securityd), launchd, Apple events, the pasteboard, window and audio servers.
const SERVICES: [&str; 3] = [
    "com.apple.system.DirectoryService.libinfo_v1",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
];

/// Returns the profile of a plan's worker; `scratch` is its private folder.
///
/// # Errors
/// A sentence about the part of the plan that this system cannot enforce.
pub fn seatbelt_profile(plan: &Plan, scratch: &Path) -> Result<String, String> {
    let mut text = String::from("(version 1)\n(deny default)\n");
    line(&mut text, "(allow process-exec*)(allow process-fork)");
    line(&mut text, "(allow signal process-info* (target same-sandbox))");
    line(&mut text, "(allow sysctl-read)");
    let services: Vec<String> =
        SERVICES.iter().map(|name| format!("(global-name {})", quoted(name))).collect();
    line(&mut text, &format!("(allow mach-lookup {})", services.join(" ")));
    reading(&mut text, plan, scratch);
    line(&mut text, "(allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\"))");
    for place in &plan.writable {
        line(&mut text, &format!("(allow file-read* file-write* {})", subpath(place.path())));
    }
    line(&mut text, &format!("(allow file-read* file-write* {})", subpath(scratch)));
    protecting(&mut text, plan);
    network(&mut text, &plan.network)?;
    Ok(text)
}

fn line(text: &mut String, rule: &str) {
    text.push_str(rule);
    text.push('\n');
}

fn reading(text: &mut String, plan: &Plan, scratch: &Path) {
    for path in READABLE {
        line(text, &format!("(allow file-read* {})", subpath(Path::new(path))));
    }
    let alone: Vec<String> =
        READABLE_ALONE.iter().map(|path| format!("(literal {})", quoted(path))).collect();
    line(text, &format!("(allow file-read* {})", alone.join(" ")));
    let places = plan.read_only.iter().chain(&plan.writable).map(|place| place.path());
    for path in places.clone().chain([scratch, plan.program().place().path()]) {
        // A process that resolves a path reads the metadata of each directory above it, and of no other entry there.
        for above in path.ancestors().skip(1) {
            line(text, &format!("(allow file-read-metadata (literal {}))", quoted(above.to_string_lossy())));
        }
    }
    for place in &plan.read_only {
        line(text, &format!("(allow file-read* {})", subpath(place.path())));
    }
    let program = plan.program().place().path();
    line(text, &format!("(allow file-read* (literal {}))", quoted(program.to_string_lossy())));
}

/// Adds the rules for protected paths, existing or not, and for the directories on the way to them, which must not be renamed.
fn protecting(text: &mut String, plan: &Plan) {
    let root_of = |path: &Path| {
        let above = plan.writable.iter().map(|place| place.path()).filter(|root| path.starts_with(root));
        above.max_by_key(|root| root.components().count()).map(Path::to_path_buf)
    };
    for place in &plan.writable {
        line(text, &format!("(deny file-write-unlink (literal {}))", quoted(place.path().to_string_lossy())));
    }
    for (path, _) in &plan.guards {
        let Some(root) = root_of(path) else { continue };
        line(text, &format!("(deny file-write* {})", any_case(&root, path, "(/.*)?")));
        for above in path.ancestors().skip(1).take_while(|above| *above != root) {
            line(text, &format!("(deny file-write-unlink {})", any_case(&root, above, "")));
        }
    }
    if plan.repositories.is_some() && plan.git == Git::Read {
        for place in &plan.writable {
            line(text, &format!("(deny file-write* {})", repositories_below(place.path())));
        }
    }
    for path in &plan.masked {
        let Some(root) = root_of(path) else { continue };
        line(text, &format!("(deny file-read* file-write* {})", any_case(&root, path, "(/.*)?")));
    }
    for path in &plan.hidden {
        line(text, &format!("(deny file-read* file-write* {})", any_case(Path::new("/"), path, "(/.*)?")));
    }
}

fn network(text: &mut String, network: &Network) -> Result<(), String> {
    match network {
        Network::None => Ok(()),
        Network::Ports(ports) => {
            for port in ports {
                line(text, &format!("(allow network-outbound (remote tcp \"localhost:{port}\"))"));
            }
            Ok(())
        }
        Network::Hosts(_) => Err("named hosts cannot be granted in this system; use ports or none".into()),
    }
}

fn subpath(path: &Path) -> String {
    format!("(subpath {})", quoted(path.to_string_lossy()))
}

/// Returns a string literal of the profile's language.
fn quoted(text: impl AsRef<str>) -> String {
    format!("\"{}\"", text.as_ref().replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns an expression for every repository's folder or file below a folder, existing or not.
fn repositories_below(root: &Path) -> String {
    let mut expression = String::from("^");
    for c in root.to_string_lossy().trim_end_matches('/').chars() {
        literal(&mut expression, c);
    }
    format!("(regex #\"{expression}/(.*/)?\\.[gG][iI][tT](/.*)?$\")")
}

/// Returns an expression for a path, with the part below `root` in any case, followed by the expression `behind`.
fn any_case(root: &Path, path: &Path, behind: &str) -> String {
    let below = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let mut expression = String::from("^");
    for c in root.to_string_lossy().trim_end_matches('/').chars() {
        literal(&mut expression, c);
    }
    expression.push('/');
    for c in below.chars() {
        let (lower, upper): (String, String) = (c.to_lowercase().collect(), c.to_uppercase().collect());
        match lower == upper || lower.chars().count() + upper.chars().count() != 2 {
            true => literal(&mut expression, c),
            // Both are single letters without a special meaning in a class.
            false => {
                let _infallible = write!(expression, "[{lower}{upper}]");
            }
        }
    }
    format!("(regex #\"{expression}{behind}$\")")
}

/// Appends one character that stands for itself in an expression, also between the quotes around it.
fn literal(expression: &mut String, c: char) {
    match c {
        // The quotes of an expression have no escape, but the character's number may stand for it.
        '"' => expression.push_str("\\x22"),
        '.' | '\\' | '+' | '*' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' | '|' => {
            expression.push('\\');
            expression.push(c);
        }
        c => expression.push(c),
    }
}

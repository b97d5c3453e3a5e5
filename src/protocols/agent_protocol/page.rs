//! The pages for people and for collectors of metrics: a plain page with links, and counts as text.

use crate::loopback::html::escaped;
use provost_domain::view::CrewCountsOut;

/// Returns the page at `/dashboard/`.
pub(super) fn dashboard(project: &str) -> String {
    let project = escaped(project);
    let links: String = [
        ("../status", "counts, and who leads"),
        ("../state", "everything at this moment"),
        ("../agents", "agents"),
        ("../resources", "files that were asked for"),
        ("../resources?filter=claimed", "those that are claimed"),
        ("../resources?filter=conflicted", "those that are in conflict"),
        ("../tasks", "tasks"),
        ("../handoffs", "hand-offs"),
        ("../events?limit=100", "the newest events"),
        ("../events?limit=100&amp;heartbeats=0", "the same without heartbeats"),
        ("../metrics", "counts for Prometheus"),
    ]
    .iter()
    .map(|(link, says)| format!("<li><a href=\"{link}\">{}</a>: {says}</li>\n", &link[2..]))
    .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n\
         <title>Agent Protocol: {project}</title>\n\
         <style>body {{ font: 1rem/1.5 sans-serif; margin: 2rem; }}</style>\n</head>\n<body>\n\
         <h1>{project}</h1>\n<p>Agents coordinate here by Agent Protocol 0.1. As JSON:</p>\n<ul>\n{links}</ul>\n\
         <p>Live: <code>curl -N</code> with the address of <code>/events/stream</code>.</p>\n</body>\n</html>\n"
    )
}

/// Returns counts in the text format of Prometheus.
pub(super) fn metrics(counts: &CrewCountsOut) -> String {
    let gauges: [(&str, &str, usize); 8] = [
        (
            "agents",
            "Agents that have announced themselves, and those of other doors where show_foreign is set.",
            counts.members,
        ),
        ("agents_active", "Those of them that are not offline.", counts.there),
        ("resources", "Files that agents have asked for.", counts.files),
        ("resources_claimed", "Those of them that are claimed.", counts.claimed),
        ("resources_conflicted", "Those of them that are in conflict.", counts.conflicted),
        (
            "tasks",
            "Tasks, and delegated ones that are not finished where show_foreign is set.",
            counts.assignments,
        ),
        ("tasks_in_progress", "Those of them that are in progress.", counts.in_progress),
        ("tasks_done", "Those of them that are done.", counts.done),
    ];
    let mut text = String::new();
    for (name, says, value) in gauges {
        let name = format!("agent_protocol_{name}");
        text.push_str(&format!("# HELP {name} {says}\n# TYPE {name} gauge\n{name} {value}\n"));
    }
    let name = "agent_protocol_events_total";
    text.push_str(&format!("# HELP {name} Events since the beginning.\n# TYPE {name} counter\n"));
    text.push_str(&format!("{name} {}\n", counts.events));
    text
}

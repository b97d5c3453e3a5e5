//! Rules for tests: the text of a policy, put together from what a test is about.

/// Whoever delegates may.
pub(crate) const ALLOW: &str = "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"test.all\"\ndecision = \"allow\"\nreason = \"a test\"\n\
                     when.action = [\"delegate\"]\n";
/// Whoever delegates waits for a person.
pub(crate) const ASK: &str = "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"test.ask\"\ndecision = \"approve\"\nreason = \"a test\"\n\
                   when.action = [\"delegate\"]\napprove.by = [\"human\"]\n";

/// These rules; what none of them is about is denied.
pub(crate) fn policy<const N: usize>(rules: [String; N]) -> String {
    format!("version = 1\ndefault = \"deny\"\n\n{}", rules.join("\n"))
}

/// The rule `test.<name>`, with its conditions, limits and approvers line by line.
pub(crate) fn rule(name: &str, decision: &str, reason: &str, lines: &[&str]) -> String {
    format!(
        "[[rule]]\nid = \"test.{name}\"\ndecision = \"{decision}\"\nreason = \"{reason}\"\n{}\n",
        lines.join("\n")
    )
}

pub(crate) fn allow(name: &str, lines: &[&str]) -> String {
    rule(name, "allow", "a test", lines)
}

/// The rule `test.ask`: one of these answers within five minutes.
pub(crate) fn ask(by: &str, lines: &[&str]) -> String {
    let by = format!("approve.by = [{by}]");
    rule("ask", "approve", "somebody looks at it", &[lines, &[&by, "approve.expires = \"5m\""]].concat())
}

/// Whoever shows an approver's key may answer.
pub(crate) fn approvers() -> String {
    allow("approvers", &["when.action = [\"approve\"]", "when.proof = [\"own_key\"]"])
}

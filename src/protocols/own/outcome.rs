//! The outcomes of signed verbs, as sentences for the person who has signed.

use provost_api::wire;
use provost_base::visible;

/// Describes the outcome of an apply or an undo.
pub(super) fn written(done: &mut wire::WordDone, it: wire::Applied) {
    let files = |count: u32| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    done.said = Some(match it.state.as_str() {
        "awaiting" => {
            done.approval = it.approval;
            format!("Nothing is written yet: it waits for approval {}.", it.approval.unwrap_or_default())
        }
        "denied" => {
            let rule = it.rule.as_deref().unwrap_or("unknown");
            let reason = visible(it.reason.as_deref().unwrap_or_default());
            let why = format!("Rule {} has denied it: {reason}.", visible(rule));
            done.failed = Some(why.clone());
            why
        }
        _ => {
            let number = it.apply.map(|it| format!("; this was apply {it}")).unwrap_or_default();
            let mut text = format!("Written: {}{number}.", files(it.applied));
            if it.skipped > 0 {
                text.push_str(&format!(" As they would be already: {}.", files(it.skipped)));
            }
            for error in &it.errors {
                text.push_str(&format!(" Left alone: {}.", visible(error)));
            }
            text
        }
    });
}

/// Describes the outcome of a discard.
pub(super) fn discarded(it: &wire::Discarded) -> String {
    match (it.already, it.files) {
        (true, _) => "The changes had been discarded before.".into(),
        (false, 1) => "The changes in 1 file are discarded.".into(),
        (false, files) => format!("The changes in {files} files are discarded."),
    }
}

/// Describes the outcome of a delegation.
pub(super) fn delegated(done: &mut wire::WordDone, it: wire::Delegated) {
    done.said = Some(match it.state.as_str() {
        "awaiting" => format!("Task {} waits for approval {}.", it.task, it.approval.unwrap_or_default()),
        "denied" => {
            let rule = visible(it.rule.as_deref().unwrap_or("unknown"));
            let why =
                format!("Rule {rule} has denied it: {}.", visible(it.reason.as_deref().unwrap_or_default()));
            done.failed = Some(why.clone());
            why
        }
        state => format!("Task {} is {}.", it.task, visible(state)),
    });
    (done.task, done.approval) = (Some(it.task), it.approval);
}

//! The files that an apply or an undo would write, as a person reads them before a passkey signs for it.

use provost_base::visible;

use super::{Block, Line, Shown, Tone, diff_files};

/// Shows the difference of these files, the number of files that need no change, and the reasons why others would not be written.
pub fn would_write(diff: &str, skipped: u32, errors: &[String]) -> Shown {
    let files = diff_files(diff);
    let mut blocks = Vec::new();
    if files.is_empty() {
        blocks.push(notice("Nothing would be written.".into(), Tone::Waiting));
    }
    blocks.extend(errors.iter().map(|why| notice(format!("Not written: {}", visible(why)), Tone::Bad)));
    if skipped > 0 {
        blocks.push(notice(format!("Files that are as they would be already: {skipped}."), Tone::Quiet));
    }
    if !files.is_empty() {
        blocks.push(Block::Diff { title: "What would be written".into(), files });
    }
    Shown::new("What would be written", blocks)
}

fn notice(text: String, tone: Tone) -> Block {
    Block::Notice(Line { text, tone })
}

//! The changes that two agents in the same place have made there, beside each other.

use provost_api::wire::ChangedSide;
use provost_base::{shell_word, visible, visible_name};

use super::{Block, Command, DiffFile, Line, Shown, Tone, diff_files, encoded, messages};

/// Returns the path of the view about a file and two agents.
pub(super) fn path(file: &str, one: &str, other: &str) -> String {
    format!("/both?file={}&one={}&other={}", encoded(file), encoded(one), encoded(other))
}

/// Shows both differences of a file, each under the name of its agent.
pub fn both_changes(file: &str, sides: &[ChangedSide]) -> Shown {
    let mut blocks: Vec<Block> = sides.iter().flat_map(side).collect();
    let agents: Vec<&str> = sides.iter().map(|it| it.agent.as_str()).collect();
    blocks.push(Block::Commands {
        title: "At a terminal".into(),
        commands: vec![
            messages::write("Message both", &agents),
            Command::new("Look who holds it", format!("provost lock list --file {}", shell_word(file))),
        ],
    });
    let text = "This is as it was when the page was loaded: what is committed and what is not, since each branch left the one of the workspace.";
    blocks.push(Block::Notice(Line { text: text.into(), tone: Tone::Quiet }));
    Shown::new(format!("Both changes of {}", visible_name(file, 120)), blocks)
}

fn side(it: &ChangedSide) -> Vec<Block> {
    let agent = visible_name(&it.agent, 80);
    let title = match &it.branch {
        Some(branch) => format!("{agent}, on branch {}", visible_name(branch, 80)),
        None => agent.clone(),
    };
    if let Some(why) = &it.why_not {
        let text = format!("What {agent} has changed there is not known: {}.", visible(why));
        return vec![Block::Notice(Line { text, tone: Tone::Quiet })];
    }
    let read = it.diff.as_deref().map(diff_files).unwrap_or_default();
    let number = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
    // Where the file is the same on both sides, its difference has no lines.
    let changed =
        it.added + it.removed > 0 || read.iter().any(|it| it.lines.iter().any(|it| it.is != "head"));
    let files = read.into_iter().take(usize::from(changed)).map(|file| DiffFile {
        added: number(it.added),
        removed: number(it.removed),
        ..file
    });
    vec![Block::Diff { title, files: files.collect() }]
}

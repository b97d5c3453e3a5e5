//! Completions and the manual page, printed from the definition of the command line.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::args::Line;
use super::complaint::{Complaint, DONE};
use super::out;

pub(super) fn completions(shell: Shell) -> Result<u8, Complaint> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "provost", &mut text);
    out::text_as_is(&String::from_utf8_lossy(&text))?;
    Ok(DONE)
}

pub(super) fn page() -> Result<u8, Complaint> {
    let mut text = Vec::new();
    let mut command = Line::command();
    command.build();
    let failed = |e| Complaint::of("the manual page cannot be written").because(e);
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(failed)?;
    // One page for everything: a section for each command, with its own options and examples.
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let man = clap_mangen::Man::new(sub.clone());
        text.extend_from_slice(format!(".SH \"PROVOST {}\"\n", sub.get_name().to_uppercase()).as_bytes());
        man.render_description_section(&mut text).map_err(failed)?;
        man.render_synopsis_section(&mut text).map_err(failed)?;
        man.render_options_section(&mut text).map_err(failed)?;
        man.render_extra_section(&mut text).map_err(failed)?;
    }
    out::text_as_is(&String::from_utf8_lossy(&text))?;
    Ok(DONE)
}

//! Completions and the manual page, printed from the definition of the command line.

use std::io;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use super::cli_error::{CliError, DONE};
use super::{help, out};

pub(super) fn completions(shell: Shell) -> Result<u8, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut help::with_short_forms(), "provost", &mut text);
    out::text_as_is(&String::from_utf8_lossy(&text))?;
    Ok(DONE)
}

/// Prints one page for everything: the program, then a section for each command with its options and examples.
pub(super) fn page() -> Result<u8, CliError> {
    let mut command = help::definition();
    command.build();
    let page = written(&command).map_err(|e| CliError::of("the manual page cannot be written").because(e))?;
    out::text_as_is(&page)?;
    Ok(DONE)
}

fn written(command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    page.push_str(&examples(command, ".SH"));
    section(command, "provost", &mut page)?;
    Ok(page)
}

/// Writes the commands under one, each as a section of its own.
fn section(command: &Command, path: &str, page: &mut String) -> io::Result<()> {
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        let man = Man::new(below.clone());
        let mut text = Vec::new();
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        let text = String::from_utf8_lossy(&text).replace(".SH ", ".SS ");
        page.push_str(&format!(".SH \"{}\"\n{text}{}", path.to_uppercase(), examples(below, ".SS")));
        section(below, &path, page)?;
    }
    Ok(())
}

/// Returns the text at the end of a command's help, line for line.
fn examples(command: &Command, heading: &str) -> String {
    let Some(text) = command.get_after_help() else { return String::new() };
    // In roff a backslash escapes, and a full stop or quote at the beginning of a line starts a command.
    let lines = text.to_string().replace('\\', "\\e");
    let lines: String = lines.lines().map(|line| format!("\\&{line}\n")).collect();
    format!("{heading} EXAMPLES\n.nf\n{lines}.fi\n")
}

//! The one executable.

fn main() -> std::process::ExitCode {
    // A supervisor forks, so this comes before any thread exists.
    provost::jail::main_if_asked();
    provost::cli::main()
}

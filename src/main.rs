//! The one executable.

fn main() -> std::process::ExitCode {
    provost::jail::main_if_asked();
    std::process::ExitCode::SUCCESS
}

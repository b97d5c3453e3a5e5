//! The one executable.

fn main() {
    provost::jail::main_if_asked();
}

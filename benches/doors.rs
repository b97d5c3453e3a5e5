//! What each door costs, as a ratio to a floor measured in the same run.
fn main() {}

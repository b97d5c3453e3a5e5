pub mod text;
pub use text::shorten as cut;

pub fn join(a: &str, b: &str) -> String {
    format!("{a}{b}")
}

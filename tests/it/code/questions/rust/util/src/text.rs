//? util/src/lib.rs:join
pub fn shorten(text: &str) -> String {
    super::join(text, "…")
}

//? util/src/text.rs:shorten util/src/lib.rs:join
pub fn twice(text: &str) -> String {
    crate::join(&self::shorten(text), text)
}

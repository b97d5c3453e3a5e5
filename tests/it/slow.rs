//! Suites that take seconds and not milliseconds, each about one promise from all sides.

#[cfg(target_os = "linux")]
mod escapes;

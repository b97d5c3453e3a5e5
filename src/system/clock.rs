//! The clocks: the time of day, which can be set, and the time since the machine was started, which cannot.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time of day, as time since the epoch. A person, a time server or a virtual machine may set it, in both directions.
pub fn wall_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the time since a moment in the past that stays the same while the machine runs. It only goes forward, also while the
/// machine sleeps.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(
    unsafe_code,
    reason = "one call of the C library; the standard library reads no clock that counts sleep"
)]
pub fn boot_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, which lives here and is as large as it expects.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    debug_assert_eq!(done, 0, "every Linux that runs Provost has this clock");
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Does the same on systems without a known clock that counts sleep: by the clock of timers.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn boot_time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}

/// Returns an id of this boot of the machine; empty if the system has none.
pub fn boot_name() -> Box<str> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

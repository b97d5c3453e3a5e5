//! Memory that this process has freed and not returned to the system.

/// Returns the bytes that this process has in memory of its own, free or not; `None` if the system does not tell.
pub fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns free memory to the system. The allocator of Linux keeps the memory that threads have freed, up to 64 MiB
/// for each group of them. Takes a few milliseconds, in which some threads that need memory wait.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "one call of the C library that no crate wraps")]
fn trim() {
    // SAFETY: the call takes a number and touches only what the allocator itself counts as free, under its own locks.
    unsafe { libc::malloc_trim(0) };
}

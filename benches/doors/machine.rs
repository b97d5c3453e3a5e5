//! What the numbers were measured on.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::table::Rounds;

/// Processor, cores, kernel and load, in one paragraph.
pub(crate) fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} cores ({}), Linux {}, load average at the beginning {}.",
        model.trim_start_matches([' ', '\t', ':']),
        kernel.trim(),
        load()
    )
}

/// The load averages of the last 1, 5 and 15 minutes.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// What it takes to put 4 KiB on the disk below a folder, in milliseconds.
pub(crate) fn flush_cost(folder: &Path) -> Result<Rounds> {
    use std::os::unix::fs::FileExt as _;
    let path = folder.join("flush");
    let file = fs::File::create(&path)?;
    file.write_all_at(&[1; 1 << 20], 0)?;
    file.sync_all()?;
    let mut rounds = Rounds::default();
    for round in 0..100_u64 {
        let begun = Instant::now();
        file.write_all_at(&[2; 4096], 4096 * round)?;
        file.sync_data()?;
        rounds.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    fs::remove_file(path)?;
    Ok(rounds)
}

/// Processor time that the living threads of a process have used so far, in nanoseconds. Unlike the clock it does
/// not run while a neighbour has the processor.
pub(crate) fn processor_ns(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let Ok(stat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        sum += stat.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(sum)
}

/// Resident memory of a process at present, in KiB.
pub(crate) fn resident_kib(pid: u32) -> Result<u64> {
    memory_kib(pid, "VmRSS:")
}

/// The part of it that no file is behind, and so no other process shares, in KiB.
pub(crate) fn anonymous_kib(pid: u32) -> Result<u64> {
    memory_kib(pid, "RssAnon:")
}

fn memory_kib(pid: u32, which: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

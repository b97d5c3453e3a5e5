//! Memory: what is kept is weighed as what it takes, and what is free goes back to the system.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Weak};
use std::time::{Duration, UNIX_EPOCH};

use provost::base::RepoPath;
use provost::jail::Root;
use provost::service::{Base, Code};
use provost::syntax::{Cache, Language, ParseDeadline, Reading, read};
use provost::system::{give_memory_back, own_memory};

use crate::support::waits::eventually_so;
use crate::support::wit_client::world;
use crate::support::wit_world::{lock, started};
use crate::support::{Daemon, eventually};

/// Functions that call each other, unlike those of any other number.
fn module(number: usize, functions: usize) -> String {
    let one = |it: usize| {
        format!(
            "export async function f{it}(a{number}: number, b: Map<string, Item>): Promise<boolean> {{\n  \
             return this.list.every(x => f{}(x, b)) && check{number}(a{number});\n}}\n",
            (it + 1) % functions
        )
    };
    (0..functions).map(one).collect()
}

#[test]
fn readings_weigh_what_they_take() {
    let read_all = |numbers: std::ops::Range<usize>| -> Vec<Reading> {
        let one =
            |number| read(Language::TypeScript, module(number, 40).as_bytes(), &ParseDeadline::endless());
        numbers.map(one).collect()
    };
    // What the first parse makes for all that follow does not count.
    drop(read_all(0..20));
    give_memory_back();
    let before = own_memory().unwrap();
    let kept = read_all(1_000..1_600);
    give_memory_back();
    let took = own_memory().unwrap() - before;
    let weight = kept.iter().map(|it| it.weight() as u64).sum::<u64>();
    assert!(took > 10 << 20, "enough to be measured: {took}");
    assert!(took < weight + weight / 8 && weight < took + took / 8, "{took} bytes taken, {weight} weighed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_were_asked_for_are_not_kept_beyond_the_room_for_readings() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::new(200_000));
    let code = Arc::new(Code::sharing(cache.clone()));
    let base = Base::new(Root::open(dir.path()).unwrap());
    let mut readings: Vec<Weak<Reading>> = Vec::new();
    for number in 0..40 {
        let name = format!("m{number}.ts");
        fs::write(dir.path().join(&name), module(number, 40)).unwrap();
        // Files that were written just now are not known by their times.
        let path = dir.path().join(&name);
        let at = std::time::SystemTime::now() - Duration::from_secs(60);
        fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }
    // Their inodes have changed by that, which nobody can set back.
    let last = fs::metadata(dir.path().join("m39.ts")).unwrap();
    let changed = UNIX_EPOCH + Duration::new(last.ctime().cast_unsigned(), last.ctime_nsec() as u32);
    let is_past = async || changed.elapsed().is_ok_and(|it| it > Duration::from_millis(150));
    eventually_so("the time after the last change", is_past).await;
    for number in 0..40 {
        let path = RepoPath::parse(&format!("m{number}.ts")).unwrap();
        let source = code.read(&base, &path).await;
        readings.push(Arc::downgrade(source.reading().unwrap()));
    }
    let kept: usize = readings.iter().filter_map(Weak::upgrade).map(|it| it.weight()).sum();
    assert!(kept > 0 && kept <= 200_000, "{kept} bytes are kept");
    let reads = cache.reads();
    let last = RepoPath::parse("m39.ts").unwrap();
    let again = code.read(&base, &last).await;
    assert!(Arc::ptr_eq(again.reading().unwrap(), &readings[39].upgrade().unwrap()));
    assert_eq!(cache.reads(), reads, "what is kept is not read twice");
    let first = code.read(&base, &RepoPath::parse("m0.ts").unwrap()).await;
    assert_eq!((first.reading().unwrap().symbols.len(), cache.reads()), (40, reads + 1));
}

/// A line of what the system says about a process' memory, in MiB.
fn memory(daemon: &Daemon, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix(what)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn what_large_files_took_goes_back_to_the_system() {
    let world = world();
    let (daemon, wit) = started(&world);
    let before = memory(&daemon, "RssAnon:");
    // Little is known of such a file when it is read, and much is needed for it; each is read on another thread.
    for number in 0..4 {
        let text = format!("const n{number} = [{}];\n", "[[1], [2]], ".repeat(40_000));
        world.put(&world.repo().join(format!("l{number}.ts")), &text);
    }
    std::thread::scope(|scope| {
        for number in 0..4 {
            let wit = &wit;
            scope.spawn(move || {
                wit.call("lock.acquire", Some(&lock(&format!("l{number}.ts:n{number}"), "A")));
            });
        }
    });
    let most = memory(&daemon, "VmHWM:");
    assert!(most > before + 60, "{most} MiB at most, {before} MiB before: too little to say anything");
    eventually("that it was given back", || memory(&daemon, "RssAnon:") < before + 34);
}

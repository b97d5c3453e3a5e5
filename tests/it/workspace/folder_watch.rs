//! The one watching of folders, as its subscribers see it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use provost::base::limits::WATCH_EVENTS_MAX;
use provost::system::folder_watch::{FolderWatcher, Subscription};
use tempfile::TempDir;

use crate::support::eventually;

fn folders<const N: usize>(all: [&Path; N]) -> BTreeSet<PathBuf> {
    all.iter().map(|it| it.to_path_buf()).collect()
}

fn subscriber(watcher: &FolderWatcher) -> Subscription {
    watcher.subscribe(WATCH_EVENTS_MAX, |_| true, || {})
}

/// Waits until a subscriber gets a change at this path.
fn hears(it: &Subscription, path: &Path) {
    eventually(&format!("{} is told", path.display()), || it.take().paths.contains_key(path));
}

#[test]
fn a_subscriber_that_takes_nothing_is_told_to_look_again_and_holds_up_no_other() {
    let (dir, watcher) = (TempDir::new().unwrap(), FolderWatcher::default());
    let woken: Arc<AtomicUsize> = Arc::default();
    let rings = woken.clone();
    let slow = watcher.subscribe(
        8,
        |_| true,
        move || {
            rings.fetch_add(1, Ordering::Relaxed);
        },
    );
    let quick = subscriber(&watcher);
    for it in [&slow, &quick] {
        let coverage = it.cover(&folders([dir.path()]));
        assert!(coverage.fresh && coverage.missing.is_none(), "{coverage:?}");
    }
    let files: BTreeSet<PathBuf> = (0..100).map(|it| dir.path().join(it.to_string())).collect();
    files.iter().for_each(|it| fs::write(it, "x").unwrap());
    let told = Mutex::new(BTreeSet::new());
    eventually("the quick one has heard of each", || {
        let changes = quick.take();
        assert!(!changes.lost);
        told.lock().unwrap().extend(changes.paths.into_keys());
        *told.lock().unwrap() == files
    });
    assert!(woken.load(Ordering::Relaxed) > 0, "the slow one was woken");
    let changes = slow.take();
    assert!(changes.lost && changes.paths.is_empty(), "{changes:?}");
    let again = slow.take();
    assert!(!again.lost && again.paths.is_empty(), "it is told once: {again:?}");
    let next = dir.path().join("next");
    fs::write(&next, "x").unwrap();
    hears(&slow, &next);
}

#[test]
fn what_the_kernel_has_dropped_is_told_to_every_subscriber() {
    let (dir, watcher) = (TempDir::new().unwrap(), FolderWatcher::default());
    let most: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let gate: Arc<Mutex<()>> = Arc::default();
    let waits = gate.clone();
    // The thread that hears for all is held up in the filter of one.
    let filters = watcher.subscribe(WATCH_EVENTS_MAX, move |_| waits.lock().is_ok(), || {});
    let other = watcher.subscribe(WATCH_EVENTS_MAX, |path| path.ends_with("wanted"), || {});
    for it in [&filters, &other] {
        it.cover(&folders([dir.path()]));
    }
    let held = gate.lock().unwrap();
    // Two in turn, since the kernel keeps one of several events that are the same.
    let two = ["a", "b"].map(|it| dir.path().join(it));
    two.iter().for_each(|it| fs::write(it, "x").unwrap());
    let mode = fs::metadata(&two[0]).unwrap().permissions();
    // Twice as many as the queue holds: the thread has taken some before it was held up.
    for at in 0..2 * most {
        fs::set_permissions(&two[at % 2], mode.clone()).unwrap();
    }
    drop(held);
    eventually("both are told", || filters.take().lost);
    eventually("although no path is wanted", || other.take().lost);
    // Everything is doubted then, and found to be watched.
    let coverage = other.cover(&folders([dir.path()]));
    assert!(!coverage.fresh && coverage.missing.is_none(), "{coverage:?}");
    let wanted = dir.path().join("wanted");
    fs::write(&wanted, "x").unwrap();
    hears(&other, &wanted);
}

#[test]
fn a_renamed_folder_stays_watched_for_who_knows_its_new_name() {
    let (dir, watcher) = (TempDir::new().unwrap(), FolderWatcher::default());
    let [old, new] = ["old", "new"].map(|it| dir.path().join(it));
    fs::create_dir(&old).unwrap();
    let (first, second) = (subscriber(&watcher), subscriber(&watcher));
    for it in [&first, &second] {
        it.cover(&folders([dir.path(), &old]));
    }
    fs::rename(&old, &new).unwrap();
    hears(&first, &new);
    assert!(first.cover(&folders([dir.path(), &new])).fresh);
    fs::write(new.join("a"), "x").unwrap();
    hears(&first, &new.join("a"));
    // The kernel has one watch for both names.
    second.cover(&folders([dir.path()]));
    fs::write(new.join("b"), "x").unwrap();
    hears(&first, &new.join("b"));
}

#[test]
fn a_replaced_folder_is_watched_again_for_each_subscriber_that_looks() {
    let (dir, watcher) = (TempDir::new().unwrap(), FolderWatcher::default());
    let at = dir.path().join("folder");
    fs::create_dir(&at).unwrap();
    let (first, second) = (subscriber(&watcher), subscriber(&watcher));
    for it in [&first, &second] {
        it.cover(&folders([dir.path(), &at]));
        assert!(!it.cover(&folders([dir.path(), &at])).fresh, "nothing has happened");
    }
    fs::rename(&at, dir.path().join("aside")).unwrap();
    fs::create_dir(&at).unwrap();
    for it in [&first, &second] {
        eventually("it is told that folders have come", || it.take().paths.get(&at) == Some(&true));
    }
    for it in [&first, &second] {
        let coverage = it.cover(&folders([dir.path(), &at]));
        assert!(coverage.fresh, "what has changed until now was not heard, by neither of them");
        assert!(!it.cover(&folders([dir.path(), &at])).fresh);
    }
    fs::write(at.join("file"), "x").unwrap();
    for it in [&first, &second] {
        hears(it, &at.join("file"));
    }
}

#[test]
fn a_folder_comes_and_goes_and_no_link_is_followed() {
    let (dir, watcher) = (TempDir::new().unwrap(), FolderWatcher::default());
    let [real, link, gone] = ["real", "link", "gone"].map(|it| dir.path().join(it));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let it = subscriber(&watcher);
    let coverage = it.cover(&folders([dir.path(), &link, &gone]));
    assert!(coverage.missing.is_none(), "the folder around them tells of them: {coverage:?}");
    fs::write(real.join("behind"), "x").unwrap();
    fs::create_dir(&gone).unwrap();
    eventually("a folder has come", || {
        let changes = it.take();
        assert!(!changes.paths.contains_key(&link.join("behind")), "{changes:?}");
        changes.paths.contains_key(&gone)
    });
    assert!(it.cover(&folders([dir.path(), &gone])).fresh);
    fs::write(gone.join("file"), "x").unwrap();
    hears(&it, &gone.join("file"));
}

#[test]
fn what_is_filtered_reaches_no_queue_and_a_subscriber_that_has_gone_hears_nothing() {
    let (dir, watcher) = (TempDir::new().unwrap(), FolderWatcher::default());
    let woken: Arc<AtomicUsize> = Arc::default();
    let rings = woken.clone();
    let picky = watcher.subscribe(
        WATCH_EVENTS_MAX,
        |path| path.extension().is_some_and(|it| it == "rs"),
        move || {
            rings.fetch_add(1, Ordering::Relaxed);
        },
    );
    let all = subscriber(&watcher);
    for it in [&picky, &all] {
        it.cover(&folders([dir.path()]));
    }
    fs::write(dir.path().join("a.txt"), "x").unwrap();
    hears(&all, &dir.path().join("a.txt"));
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    assert!(picky.take().paths.is_empty());
    fs::write(dir.path().join("a.rs"), "x").unwrap();
    hears(&picky, &dir.path().join("a.rs"));
    drop(picky);
    let before = woken.load(Ordering::Relaxed);
    fs::write(dir.path().join("b.rs"), "x").unwrap();
    hears(&all, &dir.path().join("b.rs"));
    assert_eq!(woken.load(Ordering::Relaxed), before);
}

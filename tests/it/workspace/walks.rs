//! The walk through a tree, in trees that are made to mislead it, or that change under it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use provost::system::walk::{
    Bound, Bounds, Entry, Folder, Kind, Name, Step, Unopened, Unread, Visitor, walk,
};

const WIDE: Bounds = Bounds { entries: 100_000, depth: 1_000, until: None };

/// Sees everything, and writes down what it was told.
#[derive(Default)]
struct Seen {
    paths: Vec<String>,
    /// Folders that could not be opened, and how.
    unopened: Vec<(String, &'static str)>,
    unread: Vec<(String, Unread)>,
    /// Whether a bound ends the walk.
    ends: bool,
}

fn text(path: &OsStr) -> String {
    path.to_string_lossy().into_owned()
}

impl Visitor for Seen {
    type Here = ();
    type Stop = ();

    fn entry(&mut self, at: Entry<'_>, _here: &mut ()) -> Result<Step<()>, ()> {
        self.paths.push(text(at.path()));
        if at.kind() != Kind::Folder {
            return Ok(Step::Over);
        }
        let how = match at.open() {
            Ok(dir) => return Ok(Step::Into(dir, ())),
            Err(Unopened::Gone(_)) => "gone",
            Err(Unopened::Shut(_)) => "shut",
            Err(Unopened::Failed(_)) => "failed",
        };
        self.unopened.push((text(at.path()), how));
        Ok(Step::Over)
    }

    fn unread(&mut self, folder: Folder<'_>, why: Unread) -> Result<(), ()> {
        self.unread.push((text(folder.path()), why));
        if self.ends { Err(()) } else { Ok(()) }
    }
}

fn opened(path: &Path) -> Dir {
    Dir::open_ambient_dir(path, ambient_authority()).unwrap()
}

fn seen_with(path: &Path, bounds: Bounds) -> Seen {
    let mut seen = Seen::default();
    let _ended = walk(&mut seen, (opened(path), OsStr::new("")), (), bounds);
    seen.paths.sort();
    seen
}

fn bounds_told(seen: &Seen) -> Vec<(&str, Bound)> {
    let bound = |(path, why): &'_ (String, Unread)| match why {
        Unread::Beyond(bound) => (path.clone(), *bound),
        Unread::Failed(error) => panic!("{path}: {error}"),
    };
    let told: Vec<(String, Bound)> = seen.unread.iter().map(bound).collect();
    told.into_iter().map(|(path, bound)| (&*path.leak(), bound)).collect()
}

/// A tree with a folder `in`, and beside it one with a secret that must not be met.
fn tree() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let (top, outside) = (place.path().join("top"), place.path().join("outside"));
    fs::create_dir_all(top.join("in/deeper")).unwrap();
    fs::create_dir_all(outside.join("deeper")).unwrap();
    fs::write(top.join("in/deeper/own"), "").unwrap();
    fs::write(outside.join("deeper/secret"), "").unwrap();
    (place, top, outside)
}

/// Puts a link in the place of a folder.
fn replace(folder: &Path, by: &Path) {
    fs::rename(folder, folder.with_extension("moved")).unwrap();
    symlink(by, folder).unwrap();
}

#[test]
fn everything_is_seen_once_and_links_are_not_followed() {
    let (_place, top, outside) = tree();
    symlink(&outside, top.join("in/link")).unwrap();
    let seen = seen_with(&top, WIDE);
    assert_eq!(seen.paths, ["in", "in/deeper", "in/deeper/own", "in/link"]);
    assert!(seen.unopened.is_empty() && seen.unread.is_empty());
    let mut seen = Seen::default();
    walk(&mut seen, (opened(&top.join("in")), OsStr::new("in")), (), WIDE).unwrap();
    assert!(seen.paths.contains(&"in/deeper/own".to_owned()), "{:?}", seen.paths);
}

#[test]
fn a_handle_that_only_stands_for_a_folder_is_walked() {
    let (_place, top, _) = tree();
    let mut seen = Seen::default();
    let inner = opened(&top).open_dir("in").unwrap();
    walk(&mut seen, (inner, OsStr::new("in")), (), WIDE).unwrap();
    assert_eq!(seen.paths, ["in/deeper", "in/deeper/own"]);
    assert!(seen.unread.is_empty(), "{:?}", seen.unread);
}

/// Replaces a folder at a moment of the walk.
struct Replacing<'a> {
    top: &'a Path,
    outside: &'a Path,
    /// Whether it is replaced when it was opened, and not before.
    late: bool,
    seen: Seen,
}

impl Visitor for Replacing<'_> {
    type Here = ();
    type Stop = ();

    fn folder(&mut self, folder: Folder<'_>, _names: &mut Vec<Name>, _here: &mut ()) -> Result<(), ()> {
        if self.late && folder.path() == "in" {
            replace(&self.top.join("in"), self.outside);
        }
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, here: &mut ()) -> Result<Step<()>, ()> {
        if !self.late && at.path() == "in" {
            replace(&self.top.join("in"), self.outside);
        }
        self.seen.entry(at, here)
    }

    fn unread(&mut self, folder: Folder<'_>, why: Unread) -> Result<(), ()> {
        self.seen.unread(folder, why)
    }
}

#[test]
fn a_folder_that_a_link_replaces_before_it_is_opened_is_gone() {
    let (_place, top, outside) = tree();
    let mut walking = Replacing { top: &top, outside: &outside, late: false, seen: Seen::default() };
    walk(&mut walking, (opened(&top), OsStr::new("")), (), WIDE).unwrap();
    assert_eq!(walking.seen.paths, ["in"]);
    assert_eq!(walking.seen.unopened, [("in".to_owned(), "gone")]);
}

#[test]
fn a_folder_that_a_link_replaces_later_is_walked_as_it_was_opened() {
    let (_place, top, outside) = tree();
    let mut walking = Replacing { top: &top, outside: &outside, late: true, seen: Seen::default() };
    walk(&mut walking, (opened(&top), OsStr::new("")), (), WIDE).unwrap();
    assert_eq!(walking.seen.paths, ["in", "in/deeper", "in/deeper/own"]);
}

#[test]
fn a_tree_beyond_the_depth_is_said_once_and_what_lies_beside_it_is_seen() {
    let place = tempfile::tempdir().unwrap();
    let mut dir = opened(place.path());
    for _ in 0..300 {
        dir.create_dir("d").unwrap();
        dir = dir.open_dir("d").unwrap();
    }
    fs::write(place.path().join("z"), "").unwrap();
    let seen = seen_with(place.path(), Bounds { depth: 128, ..WIDE });
    assert_eq!(seen.paths.len(), 128 + 1);
    assert!(seen.paths.contains(&"z".to_owned()));
    assert_eq!(bounds_told(&seen), [(&*["d"; 128].join("/"), Bound::Depth)]);
    // Little room for calls, and all of the tree.
    let path = place.path().to_owned();
    let small = std::thread::Builder::new().stack_size(64 << 10);
    let seen = small.spawn(move || seen_with(&path, WIDE)).unwrap().join().unwrap();
    assert_eq!(seen.paths.len(), 300 + 1);
}

#[test]
fn a_folder_with_more_entries_than_the_bound_is_listed_as_far_as_that() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("many")).unwrap();
    for number in 0..2_000 {
        fs::create_dir(place.path().join(format!("many/{number}"))).unwrap();
    }
    let bounds = Bounds { entries: 500, ..WIDE };
    let seen = seen_with(place.path(), bounds);
    assert_eq!(seen.paths.len(), 500);
    assert_eq!(seen.unread.len(), 1, "{:?}", seen.unread);
    assert_eq!(bounds_told(&seen)[0], ("many", Bound::Entries));
    let mut ending = Seen { ends: true, ..Seen::default() };
    assert_eq!(walk(&mut ending, (opened(place.path()), OsStr::new("")), (), bounds), Err(()));
    assert_eq!(ending.paths, ["many"]);
    assert_eq!(seen_with(place.path(), WIDE).paths.len(), 2_001);
}

#[test]
fn a_walk_ends_in_time() {
    let (_place, top, _) = tree();
    let seen = seen_with(&top, Bounds { until: Some(Instant::now()), ..WIDE });
    assert!(seen.paths.is_empty(), "{:?}", seen.paths);
    assert_eq!(bounds_told(&seen), [("", Bound::Time)]);
}

#[test]
fn a_folder_that_is_shut_is_told_and_the_others_are_seen() {
    let (_place, top, _) = tree();
    fs::create_dir_all(top.join("shut/inner")).unwrap();
    fs::set_permissions(top.join("shut"), fs::Permissions::from_mode(0o000)).unwrap();
    let seen = seen_with(&top, WIDE);
    fs::set_permissions(top.join("shut"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(seen.unopened, [("shut".to_owned(), "shut")]);
    assert_eq!(seen.paths, ["in", "in/deeper", "in/deeper/own", "shut"]);
}

/// Visits names from the last to the first, and stops at one.
struct Backwards(Vec<String>);

impl Visitor for Backwards {
    type Here = usize;
    type Stop = String;

    fn folder(&mut self, _: Folder<'_>, names: &mut Vec<Name>, depth: &mut usize) -> Result<(), String> {
        *depth += 1;
        names.sort_by(|a, b| b.name.cmp(&a.name));
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, depth: &mut usize) -> Result<Step<usize>, String> {
        let name = text(at.name());
        self.0.push(format!("{depth} {name}"));
        match at.kind() {
            _ if name == "stop" => Err(text(at.path())),
            Kind::Folder => Ok(Step::Into(at.open().unwrap(), *depth)),
            _ => Ok(Step::Over),
        }
    }

    fn unread(&mut self, _: Folder<'_>, why: Unread) -> Result<(), String> {
        Err(format!("{why:?}"))
    }
}

#[test]
fn a_visitor_orders_the_names_and_stops_when_it_wants() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("b/inner")).unwrap();
    for name in ["a", "c", "b/stop", "b/zero"] {
        fs::write(place.path().join(name), "").unwrap();
    }
    let mut seen = Backwards(Vec::new());
    let ended = walk(&mut seen, (opened(place.path()), OsStr::new("")), 0, WIDE);
    assert_eq!(ended, Err("b/stop".to_owned()));
    assert_eq!(seen.0, ["1 c", "1 b", "2 zero", "2 stop"]);
}

const LOOP: &str = "PROVOST_TEST_WALKED_LOOP";

#[test]
fn a_walk_through_a_mount_of_a_tree_in_itself_ends() {
    if let Some(top) = std::env::var_os(LOOP) {
        let seen = seen_with(Path::new(&top), WIDE);
        // What is mounted is the tree without the mount.
        assert!(seen.paths.contains(&"in/deeper/in/deeper/in/deeper".to_owned()), "{:?}", seen.paths);
        assert!(seen.unread.is_empty(), "{:?}", seen.unread);
        let few = seen_with(Path::new(&top), Bounds { depth: 4, ..WIDE });
        assert_eq!(bounds_told(&few), [("in/deeper/in/deeper", Bound::Depth)]);
        return;
    }
    let (_place, top, _) = tree();
    fs::create_dir_all(top.join("in/deeper")).unwrap();
    // The second mount shows the first one in it.
    let script = "mount --bind \"$0\" \"$0/in/deeper\" && mount --rbind \"$0\" \"$0/in/deeper/in/deeper\" && exec \"$@\"";
    let mut shell = Command::new("unshare");
    shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(&top);
    shell.arg(std::env::current_exe().unwrap());
    shell.args([
        "--exact",
        "workspace::walks::a_walk_through_a_mount_of_a_tree_in_itself_ends",
        "--nocapture",
    ]);
    let done = shell.env(LOOP, &top).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

//! Readings that are kept: read once, shared by all, within bounds, and nobody waits for another's content.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use provost::base::Digest;
use provost::syntax::{Cache, Language, ParseDeadline, Trouble};

/// A file with so many functions.
fn file(functions: usize) -> String {
    (0..functions)
        .map(|number| format!("export function f{number}(a: number): number {{ return g(a); }}\n"))
        .collect()
}

/// A file that would take longer than a test may.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..4_000_000).map(next).collect()
}

#[test]
fn who_asks_again_gets_the_same_reading() {
    let cache = Cache::default();
    let text = file(3);
    let first = cache.read(Language::TypeScript, text.as_bytes(), &ParseDeadline::endless());
    let second = cache.read(Language::TypeScript, text.as_bytes(), &ParseDeadline::endless());
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(cache.reads(), 1);
    let known = cache.known(Language::TypeScript, Digest::of(text.as_bytes())).unwrap();
    assert!(Arc::ptr_eq(&first, &known));
    assert!(cache.known(Language::TypeScript, Digest::of(b"other")).is_none());
    let as_python = cache.read(Language::Python, text.as_bytes(), &ParseDeadline::endless());
    assert!(!Arc::ptr_eq(&first, &as_python), "as another language it is another reading");
    assert_eq!(cache.reads(), 2);
}

#[test]
fn many_who_ask_at_once_have_it_read_once() {
    let cache = Cache::default();
    let text = file(2_000);
    let begin = Barrier::new(8);
    let readings: Vec<_> = thread::scope(|scope| {
        let ask = || {
            begin.wait();
            cache.read(Language::TypeScript, text.as_bytes(), &ParseDeadline::endless())
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(cache.reads(), 1);
    assert!(
        readings.iter().all(|reading| Arc::ptr_eq(reading, &readings[0]) && reading.symbols.len() == 2_000)
    );
}

#[test]
fn nobody_waits_for_the_content_of_another() {
    let cache = Cache::default();
    let gone = AtomicBool::new(false);
    let noise = noise();
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let patience = ParseDeadline { until: None, cancelled: Some(&gone) };
            cache.read(Language::TypeScript, &noise, &patience)
        });
        // It is being read from here on.
        while cache.reads() == 0 {
            thread::yield_now();
        }
        let quick = cache.read(Language::TypeScript, file(3).as_bytes(), &ParseDeadline::endless());
        assert_eq!(quick.symbols.len(), 3);
        // One who waits for the same leaves when nobody waits for them.
        let leave = AtomicBool::new(true);
        let patience = ParseDeadline { until: None, cancelled: Some(&leave) };
        assert_eq!(cache.read(Language::TypeScript, &noise, &patience).trouble, [Trouble::TooSlow]);
        gone.store(true, Ordering::Relaxed);
        assert_eq!(slow.join().unwrap().trouble, [Trouble::TooSlow], "it was still being read all the time");
    });
}

#[test]
fn what_somebody_had_no_patience_for_is_read_again() {
    let cache = Cache::default();
    let text = file(2_000);
    let gone = AtomicBool::new(true);
    let patience = ParseDeadline { until: None, cancelled: Some(&gone) };
    assert_eq!(cache.read(Language::TypeScript, text.as_bytes(), &patience).trouble, [Trouble::TooSlow]);
    assert!(cache.known(Language::TypeScript, Digest::of(text.as_bytes())).is_none());
    let whole = cache.read(Language::TypeScript, text.as_bytes(), &ParseDeadline::endless());
    assert!(whole.is_whole() && cache.reads() == 2);
}

#[test]
fn what_is_kept_stays_within_its_bytes_and_the_least_used_goes_first() {
    let text = |number: usize| format!("{}// {number}", file(100));
    let one = Cache::default();
    one.read(Language::TypeScript, text(0).as_bytes(), &ParseDeadline::endless());
    let room = one.bytes() * 5 + one.bytes() / 2;
    let cache = Cache::new(room);
    let ask = |number: usize| {
        let before = cache.reads();
        cache.read(Language::TypeScript, text(number).as_bytes(), &ParseDeadline::endless());
        assert!(cache.bytes() <= room && cache.bytes() > 0);
        cache.reads() == before
    };
    for number in 0..5 {
        assert!(!ask(number), "new");
    }
    assert!(ask(0), "still there");
    assert!(!ask(5), "new; the second has to go");
    assert!(ask(0) && ask(2) && ask(3) && ask(4) && ask(5));
    assert!(!ask(1));
    for number in 0..200 {
        ask(number);
    }
}

#[test]
fn what_is_larger_than_its_share_is_not_kept() {
    let cache = Cache::new(10_000);
    let small = cache.read(Language::TypeScript, file(3).as_bytes(), &ParseDeadline::endless());
    let bytes = cache.bytes();
    let large = file(1_000);
    let read = cache.read(Language::TypeScript, large.as_bytes(), &ParseDeadline::endless());
    assert_eq!(read.symbols.len(), 1_000);
    assert_eq!(cache.bytes(), bytes);
    let again = cache.read(Language::TypeScript, file(3).as_bytes(), &ParseDeadline::endless());
    assert!(Arc::ptr_eq(&small, &again), "and drives nothing out");
}

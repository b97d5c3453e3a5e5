//! The ids that this door gives: those of events, made from their numbers and reversible, and random ones for tasks and hand-offs.

use provost_base::{AssignmentId, EventSeq, HandoffId};

/// The alphabet of ids, as in the published server.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The multiplier for spreading. It is odd, so the multiplication can be undone with its inverse.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const GATHER: u64 = inverse(SPREAD);

/// Returns the inverse of an odd number, by Newton's steps: each step doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let (mut guess, mut step) = (odd, 0);
    while step < 6 {
        guess = guess.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(guess)));
        step += 1;
    }
    guess
}

/// Returns the id of an event: its number, spread over 64 bits, and eight check bits that reveal an id that was never given.
pub(super) fn event(seq: EventSeq) -> String {
    let mixed = seq.0.wrapping_mul(SPREAD);
    let mixed = mixed ^ (mixed >> 32);
    let all = (u128::from(mixed) << 8) | u128::from(check(mixed));
    let letter = |at: u32| char::from(ALPHABET[usize::try_from((all >> (6 * at)) & 63).unwrap_or(0)]);
    "evt_".chars().chain((0..12).rev().map(letter)).collect()
}

fn check(mixed: u64) -> u8 {
    mixed.wrapping_mul(GATHER).to_be_bytes()[0] ^ mixed.to_be_bytes()[3] ^ 0x5a
}

/// Returns the number of an event's id; `None` for a text that is no such id.
pub(super) fn event_seq(name: &str) -> Option<EventSeq> {
    let letters = name.strip_prefix("evt_").filter(|it| it.len() == 12)?;
    let mut all = 0_u128;
    for letter in letters.bytes() {
        let at = ALPHABET.iter().position(|it| *it == letter)?;
        all = (all << 6) | u128::try_from(at).ok()?;
    }
    let mixed = u64::try_from(all >> 8).ok()?;
    if all & 255 != u128::from(check(mixed)) {
        return None;
    }
    let spread = mixed ^ (mixed >> 32);
    Some(EventSeq(spread.wrapping_mul(GATHER)))
}

/// Makes a new id for a task.
pub(super) fn task() -> AssignmentId {
    AssignmentId::parse(&format!("task_{}", eight())).expect("twelve letters are an id")
}

/// Makes a new id for a hand-off.
pub(super) fn handoff() -> HandoffId {
    HandoffId::parse(&format!("hoff_{}", eight())).expect("twelve letters are an id")
}

fn eight() -> String {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    // The bytes with the version and variant of a UUID are not fully random.
    [0, 1, 2, 3, 4, 5, 10, 11]
        .map(|at: usize| char::from(ALPHABET[usize::from(bytes[at] & 63)]))
        .iter()
        .collect()
}

//! Numbers: two ways to read one, and the one way to print it.
//!
//! `serde_json` reads a fraction as "digits times a power of ten" in floating point, which is off by the last bit
//! for one double in eleven. Its users sign their output after such a reading, so Provost can do it, too.

use std::sync::LazyLock;

use super::BadJson;

/// The way in which numbers with a fraction or an exponent are brought to canonical text. Whole numbers that fit 64
/// bits keep their digits in all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// As the sender spelled it.
    Spelled,
    /// The nearest double, printed.
    Exact,
    /// The double that `serde_json` reads by default, printed.
    Inexact,
    /// The inexact reading, repeated until reading and printing changes nothing any more.
    Settled,
}

/// The number of times that a number is read and printed again in search of its fixpoint; usually at most three times.
const TURNS_MAX: usize = 6;

/// The number of doubles towards zero that are tried if that search goes in circles; one in ten would be suitable.
const NEIGHBOURS_MAX: usize = 1_000;

/// Powers of ten that a double holds, each correctly rounded.
static POW10: LazyLock<Vec<f64>> =
    LazyLock::new(|| (0..=308).map(|n| format!("1e{n}").parse().unwrap_or(f64::INFINITY)).collect());

/// Checks whether the number is an integer that 64 bits hold; such a number is its own canonical text. `-0` is not.
pub(super) fn is_integer(spelled: &str) -> bool {
    match spelled.strip_prefix('-') {
        Some("0") => false,
        Some(_) => spelled.parse::<i64>().is_ok(),
        None => spelled.parse::<u64>().is_ok(),
    }
}

/// Appends the canonical text of a number in JSON's grammar for which [`is_integer`] is false.
pub(super) fn push_fraction(out: &mut String, spelled: &str, reading: Reading) -> Result<(), BadJson> {
    let number = match reading {
        Reading::Spelled => {
            out.push_str(spelled);
            return Ok(());
        }
        Reading::Exact => spelled.parse().ok().filter(|number: &f64| number.is_finite()),
        Reading::Inexact => inexact(spelled),
        Reading::Settled => settled(spelled),
    };
    push_f64(out, number.ok_or_else(|| BadJson("a number is out of range".into()))?);
    Ok(())
}

/// Returns a double near the given one whose print reads back, inexactly, as itself.
///
/// Alternate reading and printing nearly always gets there. Some doubles swap places with a neighbour forever; then
/// the nearest stable one towards zero is taken.
fn settled(spelled: &str) -> Option<f64> {
    let mut text = String::with_capacity(24);
    let mut printed_and_read = |number: f64| {
        text.clear();
        push_f64(&mut text, number);
        inexact(&text)
    };
    let mut number = inexact(spelled)?;
    for _ in 0..TURNS_MAX {
        let again = printed_and_read(number)?;
        if again.to_bits() == number.to_bits() {
            return Some(number);
        }
        number = again;
    }
    // Zero is stable, so an unstable double has a stable one below it.
    let magnitudes = (0..number.abs().to_bits()).rev().take(NEIGHBOURS_MAX);
    let mut neighbours = magnitudes.map(|bits| f64::from_bits(bits).copysign(number));
    neighbours.find(|neighbour| printed_and_read(*neighbour) == Some(*neighbour))
}

/// Reads as `serde_json` does without its feature `float_roundtrip`. `None` if the number is out of range.
fn inexact(spelled: &str) -> Option<f64> {
    let (sign, unsigned) = spelled.strip_prefix('-').map_or((1.0, spelled), |rest| (-1.0, rest));
    let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    let append =
        |significand: u64, digit: u8| significand.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let (mut significand, mut exponent) = (0u64, 0i32);
    let mut digits = whole.bytes();
    while let Some(digit) = digits.next() {
        match append(significand, digit) {
            Some(longer) => significand = longer,
            None => {
                exponent = i32::try_from(1 + digits.len()).ok()?;
                break;
            }
        }
    }
    // A fraction continues to fill the significand even after the whole part overflowed it, if its digit fits.
    for digit in fraction.bytes() {
        let Some(longer) = append(significand, digit) else { break };
        significand = longer;
        exponent = exponent.saturating_sub(1);
    }

    let (raises, power) = match power.as_bytes().first() {
        Some(b'-') => (false, &power[1..]),
        Some(b'+') => (true, &power[1..]),
        _ => (true, power),
    };
    let exponent = match power.parse::<i32>() {
        Ok(power) if raises => exponent.saturating_add(power),
        Ok(power) => exponent.saturating_sub(power),
        Err(_) if raises && significand != 0 => return None,
        Err(_) => return Some(sign * 0.0),
    };
    scale(significand as f64, exponent).map(|number| sign * number)
}

fn scale(mut number: f64, mut exponent: i32) -> Option<f64> {
    while exponent < -308 && number != 0.0 {
        number /= 1e308;
        exponent = exponent.saturating_add(308);
    }
    match POW10.get(exponent.unsigned_abs() as usize) {
        Some(power) if exponent < 0 => Some(number / power),
        Some(power) => Some(number * power).filter(|number| number.is_finite()),
        None if number == 0.0 => Some(number),
        None => None,
    }
}

/// Prints as `serde_json` 1.0.154 does: the fewest digits that read back, the nearest of those, ties to even;
/// with an exponent below 1e-5 and from 1e16 on.
fn push_f64(out: &mut String, number: f64) {
    let scientific = fewest_digits(number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mantissa = mantissa.strip_prefix('-').inspect(|_| out.push('-')).unwrap_or(mantissa);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let before_point = exponent + 1;
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    let len = digits.len() as i32;
    match before_point {
        1..=16 if len <= before_point => {
            out.push_str(&digits);
            out.push_str(&zeros(before_point - len));
            out.push_str(".0");
        }
        1..=16 => {
            let (whole, fraction) = digits.split_at(before_point as usize);
            out.push_str(whole);
            out.push('.');
            out.push_str(fraction);
        }
        -4..=0 => {
            out.push_str("0.");
            out.push_str(&zeros(-before_point));
            out.push_str(&digits);
        }
        _ => {
            out.push_str(mantissa);
            out.push_str(if exponent < 0 { "e" } else { "e+" });
            out.push_str(&exponent.to_string());
        }
    }
}

/// Returns scientific notation with the fewest digits that read back as the same double.
///
/// The standard library finds how many digits are needed, but rounds up where the double lies exactly between
/// two candidates; asked for that many digits, it rounds to even.
fn fewest_digits(number: f64) -> String {
    let shortest = format!("{number:e}");
    let digits = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let nearest = format!("{number:.*e}", digits.saturating_sub(1));
    if nearest.parse() == Ok(number) { nearest } else { shortest }
}

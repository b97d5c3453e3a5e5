//! Reads the CBOR that authenticators write: the canonical form of CTAP2, and nothing else of CBOR.
//!
//! A reader borrows its input and holds nothing else; it refuses a length beyond the input's end before it uses
//! that length. Nesting costs no stack, since a skipped value is counted, not entered.

use crate::Refused;

/// The bytes that are left to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

/// A value that a member of a key or of an attestation object can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item<'a> {
    /// An integer, positive or negative.
    Int(i64),
    /// A string of bytes.
    Bytes(&'a [u8]),
    /// A text.
    Text(&'a str),
}

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes that have not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Returns the number of pairs of the map that begins here.
    pub(crate) fn map(&mut self, what: &'static str) -> Result<u64, Refused> {
        match self.head()? {
            (MAP, pairs) => Ok(pairs),
            _ => Err(Refused::CborType(what)),
        }
    }

    /// Reads the next value, which must not be a container.
    pub(crate) fn item(&mut self, what: &'static str) -> Result<Item<'a>, Refused> {
        let wrong = Refused::CborType(what);
        match self.head()? {
            (UNSIGNED, n) => i64::try_from(n).map(Item::Int).map_err(|_| wrong),
            (NEGATIVE, n) => i64::try_from(n).map(|n| Item::Int(-1 - n)).map_err(|_| wrong),
            (BYTES, len) => self.take(len).map(Item::Bytes),
            (TEXT, len) => std::str::from_utf8(self.take(len)?).map(Item::Text).map_err(|_| wrong),
            _ => Err(wrong),
        }
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a str, Refused> {
        match self.item(what)? {
            Item::Text(text) => Ok(text),
            _ => Err(Refused::CborType(what)),
        }
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Refused> {
        match self.item(what)? {
            Item::Bytes(bytes) => Ok(bytes),
            _ => Err(Refused::CborType(what)),
        }
    }

    /// Skips one value with all that is nested in it.
    pub(crate) fn skip(&mut self) -> Result<(), Refused> {
        let mut open: u64 = 1;
        while open > 0 {
            open -= 1;
            match self.head()? {
                (BYTES | TEXT, len) => {
                    self.take(len)?;
                }
                (ARRAY, len) => open = open.saturating_add(len),
                (MAP, len) => open = open.saturating_add(len.saturating_mul(2)),
                (TAG, _) => open += 1,
                _ => {}
            }
            // Each value has at least one byte.
            if open > self.0.len() as u64 {
                return Err(Refused::CborCut);
            }
        }
        Ok(())
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Refused> {
        let len = usize::try_from(len).map_err(|_| Refused::CborCut)?;
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Refused::CborCut)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads the type of the next value with its number, length or count.
    fn head(&mut self) -> Result<(u8, u64), Refused> {
        let first = self.take(1)?[0];
        let (kind, short) = (first >> 5, first & 31);
        let more = match short {
            0..=23 => return Ok((kind, u64::from(short))),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return Err(Refused::CborForm),
        };
        let n = self.take(more)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        // A float's bits are no number; each number and each length has one shortest form.
        let shortest = match more {
            1 => n > 23,
            2 => n > 0xff,
            4 => n > 0xffff,
            _ => n > 0xffff_ffff,
        };
        if kind != 7 && !shortest { Err(Refused::CborForm) } else { Ok((kind, n)) }
    }
}

//! Reads a `.scip` index: the names in each file and their places. It reads a few fields of the Protocol Buffers and
//! skips all others.
//!
//! <https://github.com/sourcegraph/scip/blob/main/scip.proto>

use provost_base::limits::SCIP_OCCURRENCES_MAX;

/// An index, as far as the graph uses it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Index<'a> {
    /// The program that made it, and its version.
    pub tool: String,
    /// The indexed files.
    pub documents: Vec<Document<'a>>,
}

/// One file of an index, with the names in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Document<'a> {
    /// The path, from the root of the indexed project.
    pub path: &'a str,
    /// The unit in which characters are counted.
    pub unit: Unit,
    /// The names in it.
    pub occurrences: Vec<Occurrence<'a>>,
}

/// The unit in which a character's position in its line is counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Unit {
    /// Bytes of UTF-8.
    Bytes,
    /// Code units of UTF-16. Also the unit of indexes that name none.
    #[default]
    Utf16,
    /// Code points of Unicode, in any encoding.
    Points,
}

/// A name in a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Occurrence<'a> {
    /// The line of the name, from 0.
    pub line: u32,
    /// The position at which the name begins in its line.
    pub start: u32,
    /// The position at which it ends; `None` if it ends in another line.
    pub end: Option<u32>,
    /// The name's symbol, in the index's notation; `local …` for one that is known in its file alone.
    pub symbol: &'a str,
    /// Whether the symbol is defined here.
    pub defines: bool,
}

/// The reason why bytes are no index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoIndex {
    /// A field ends, or goes on, where it must not.
    #[error("it is not a SCIP index, or cut off")]
    Malformed,
    /// More than [`SCIP_OCCURRENCES_MAX`] names.
    #[error("it has more than {SCIP_OCCURRENCES_MAX} names")]
    TooMany,
}

/// Reads the fields that the graph uses, and skips all others.
///
/// # Errors
/// [`NoIndex`].
pub fn read(bytes: &[u8]) -> Result<Index<'_>, NoIndex> {
    let mut index = Index::default();
    let mut left = SCIP_OCCURRENCES_MAX;
    for field in fields(bytes) {
        match field? {
            (1, Value::Bytes(metadata)) => index.tool = tool(metadata)?,
            (2, Value::Bytes(document)) => index.documents.push(self::document(document, &mut left)?),
            _ => {}
        }
    }
    Ok(index)
}

fn tool(metadata: &[u8]) -> Result<String, NoIndex> {
    let mut words = [String::new(), String::new()];
    for field in fields(metadata) {
        let (2, Value::Bytes(tool)) = field? else { continue };
        for field in fields(tool) {
            match field? {
                (1, Value::Bytes(name)) => words[0] = text(name).to_owned(),
                (2, Value::Bytes(version)) => words[1] = text(version).to_owned(),
                _ => {}
            }
        }
    }
    Ok(words.join(" ").trim().to_owned())
}

fn document<'a>(bytes: &'a [u8], left: &mut usize) -> Result<Document<'a>, NoIndex> {
    let mut document = Document::default();
    for field in fields(bytes) {
        match field? {
            (1, Value::Bytes(path)) => document.path = text(path),
            (2, Value::Bytes(bytes)) => {
                *left = left.checked_sub(1).ok_or(NoIndex::TooMany)?;
                document.occurrences.extend(occurrence(bytes)?);
            }
            (6, Value::Number(1)) => document.unit = Unit::Bytes,
            (6, Value::Number(3)) => document.unit = Unit::Points,
            _ => {}
        }
    }
    Ok(document)
}

/// None for what has no place or no symbol.
fn occurrence(bytes: &[u8]) -> Result<Option<Occurrence<'_>>, NoIndex> {
    let (mut range, mut found) = (Vec::new(), Occurrence::default());
    for field in fields(bytes) {
        match field? {
            // Packed, as all writers have it, or one by one.
            (1, Value::Bytes(packed)) => {
                let mut rest = packed;
                while !rest.is_empty() && range.len() < 4 {
                    range.push(varint(&mut rest)?);
                }
            }
            (1, Value::Number(number)) => range.push(number),
            (2, Value::Bytes(symbol)) => found.symbol = text(symbol),
            (3, Value::Number(roles)) => found.defines = roles & 1 == 1,
            _ => {}
        }
    }
    let number = |at: usize| range.get(at).and_then(|it| u32::try_from(*it).ok());
    let (Some(line), Some(start)) = (number(0), number(1)) else { return Ok(None) };
    found.line = line;
    found.start = start;
    found.end = if range.len() == 3 { number(2) } else { None };
    Ok((!found.symbol.is_empty()).then_some(found))
}

/// Reads a text; bytes that are none give an empty one.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, with their numbers.
fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<(u64, Value<'_>), NoIndex>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = field(&mut rest);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Value<'a>), NoIndex> {
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => Value::Number(varint(rest)?),
        1 => Value::Bytes(taken(rest, 8)?),
        2 => {
            let len = varint(rest)?;
            Value::Bytes(taken(rest, usize::try_from(len).map_err(|_| NoIndex::Malformed)?)?)
        }
        5 => Value::Bytes(taken(rest, 4)?),
        _ => return Err(NoIndex::Malformed),
    };
    Ok((tag >> 3, value))
}

fn taken<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], NoIndex> {
    let (taken, behind) = rest.split_at_checked(len).ok_or(NoIndex::Malformed)?;
    *rest = behind;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, NoIndex> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first().ok_or(NoIndex::Malformed)?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(NoIndex::Malformed)
}

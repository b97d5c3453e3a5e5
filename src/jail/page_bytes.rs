//! A page of output as bytes, for another host: the offset of the next page, whether the output is complete, and the chunks, each
//! with its offset, its stream and its length.
#![forbid(unsafe_code)]

use super::output::{Chunk, Page, Stream};

/// The size of a page's head: the offset of the next page, and whether the output is complete.
const PAGE_HEAD: usize = 9;

/// The size of a chunk's head: its offset, its stream and its length.
const CHUNK_HEAD: usize = 17;

impl Page {
    /// Encodes the page in at most `most` bytes: chunks that do not fit come with the next page.
    pub fn to_bytes(&self, most: usize) -> Vec<u8> {
        let (mut next, mut finished, mut all) = (self.next, self.finished, Vec::new());
        for chunk in &self.chunks {
            let room = most.saturating_sub(PAGE_HEAD + all.len() + CHUNK_HEAD);
            let part = &chunk.bytes[..chunk.bytes.len().min(room)];
            if !part.is_empty() {
                all.extend(chunk.at.to_be_bytes());
                all.push(u8::from(chunk.stream == Stream::Err));
                all.extend((part.len() as u64).to_be_bytes());
                all.extend_from_slice(part);
            }
            if part.len() < chunk.bytes.len() {
                (next, finished) = (chunk.at + part.len() as u64, false);
                break;
            }
        }
        [&next.to_be_bytes()[..], &[u8::from(finished)], &all].concat()
    }

    /// Decodes a page; `None` if the bytes are no page.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (next, rest) = bytes.split_first_chunk::<8>()?;
        let (finished, mut rest) = rest.split_first()?;
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let (at, after) = rest.split_first_chunk::<8>()?;
            let (stream, after) = after.split_first()?;
            let (length, after) = after.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
            let (content, after) = after.split_at_checked(length)?;
            let stream = if *stream == 1 { Stream::Err } else { Stream::Out };
            chunks.push(Chunk { at: u64::from_be_bytes(*at), stream, bytes: content.to_vec() });
            rest = after;
        }
        Some(Self { chunks, next: u64::from_be_bytes(*next), finished: *finished == 1 })
    }

    /// Returns the part from the offset `from` on.
    #[must_use]
    pub fn since(mut self, from: u64) -> Self {
        self.chunks = self.chunks.iter().filter(|it| it.end() > from).map(|it| it.since(from)).collect();
        self
    }
}

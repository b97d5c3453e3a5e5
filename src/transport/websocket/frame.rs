//! The encoding of frames: reads and writes heads, and removes masks. RFC 6455, 5.2 and 5.3.

use super::Code;

/// The kind of a frame. RFC 6455, 11.8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Continues a message.
    More,
    /// Begins a message, in UTF-8.
    Text,
    /// Begins a message of bytes.
    Binary,
    Close,
    Ping,
    Pong,
}

impl Kind {
    fn is_control(self) -> bool {
        matches!(self, Kind::Close | Kind::Ping | Kind::Pong)
    }

    fn number(self) -> u8 {
        match self {
            Kind::More => 0,
            Kind::Text => 1,
            Kind::Binary => 2,
            Kind::Close => 8,
            Kind::Ping => 9,
            Kind::Pong => 10,
        }
    }

    fn of(number: u8) -> Option<Self> {
        let all = [Kind::More, Kind::Text, Kind::Binary, Kind::Close, Kind::Ping, Kind::Pong];
        all.into_iter().find(|it| it.number() == number)
    }
}

/// The head of a frame, before its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// Whether it is the last frame of its message.
    pub(super) last: bool,
    pub(super) mask: [u8; 4],
    pub(super) len: u64,
}

/// The longest payload of a control frame, in bytes.
const CONTROL_LEN_MAX: u64 = 125;

/// The longest head of a client's frame, in bytes.
pub(super) const HEAD_LEN_MAX: usize = 14;

impl Head {
    /// Reads a client's head from the beginning of some bytes, and returns its length; `None` if bytes are missing.
    ///
    /// # Errors
    /// The code with which the connection is closed.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, Code> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        let kind = Kind::of(first & 0x0f).ok_or(Code::WRONG)?;
        let (last, masked) = (first & 0x80 != 0, second & 0x80 != 0);
        // No extension was negotiated that would use these bits.
        if first & 0x70 != 0 {
            return Err(Code::WRONG);
        }
        let (len, rest) = match second & 0x7f {
            126 => match rest.split_first_chunk() {
                Some((len, rest)) => (u64::from(u16::from_be_bytes(*len)), rest),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk() {
                Some((len, rest)) => (u64::from_be_bytes(*len), rest),
                None => return Ok(None),
            },
            len => (u64::from(len), rest),
        };
        if kind.is_control() && (!last || len > CONTROL_LEN_MAX) {
            return Err(Code::WRONG);
        }
        if !masked {
            // Emacs' websocket.el says goodbye like this; no other frame may come without a mask.
            let goodbye = kind == Kind::Close && len == 0;
            let head = Self { kind, last, mask: [0; 4], len };
            return if goodbye { Ok(Some((head, bytes.len() - rest.len()))) } else { Err(Code::WRONG) };
        }
        let Some((mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
        Ok(Some((Self { kind, last, mask: *mask, len }, bytes.len() - rest.len())))
    }
}

/// Removes the mask from a part of a payload; the part begins at a multiple of four bytes.
pub(super) fn unmask(part: &mut [u8], mask: [u8; 4]) {
    let (fours, rest) = part.as_chunks_mut::<4>();
    for four in fours {
        *four = (u32::from_ne_bytes(*four) ^ u32::from_ne_bytes(mask)).to_ne_bytes();
    }
    rest.iter_mut().zip(mask).for_each(|(byte, key)| *byte ^= key);
}

/// Writes the head of an outgoing frame, which is a whole message and has no mask.
pub(super) fn put_head(kind: Kind, len: usize, to: &mut Vec<u8>) {
    to.push(0x80 | kind.number());
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(len @ ..126), _) => to.push(len),
        (_, Ok(len)) => {
            to.push(126);
            to.extend_from_slice(&len.to_be_bytes());
        }
        _ => {
            to.push(127);
            to.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}

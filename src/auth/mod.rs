//! Authentication: which agent speaks.
//!
//! Promises: this module accepts no caller without proof, compares in constant time, and refuses with the
//! same words for every cause, while the log gets the cause. Neither a key nor an expected MAC leaves this
//! module except through a function that hands out a new key. `policy` and the rules decide what a proven
//! caller may do, and the doors word the refusals.
#![deny(unsafe_code)] // the one exception says why it is sound

pub mod answers;
pub mod bearer;
pub mod caller;
pub mod entries;
pub mod frame;
pub mod hub;
pub mod keys;
pub mod line;
#[cfg_attr(not(target_os = "linux"), path = "loopback_elsewhere.rs")]
pub mod loopback;
pub mod names;
pub mod passkeys;
#[cfg(target_os = "linux")]
pub mod peer;
#[cfg(windows)]
#[path = "peer_windows.rs"]
pub mod peer;
pub mod replay;
pub mod role;
mod speakers;
mod speakers_elsewhere;
pub mod token;
pub mod web_sessions;

pub use speakers::runs;
use zeroize::Zeroizing;

use provost_base::Secret;

/// The reason why the daemon did not believe a caller. The peer sees one text for all of them; [`Rejected::cause`] is for the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("authentication failed")]
pub enum Rejected {
    /// The MAC is not that of this message under any key of the sender.
    WrongMac,
    /// The MAC is not Base64, or has the wrong length.
    MalformedMac,
    /// No key speaks for this sender: it is revoked or all its keys have expired.
    NoKey,
    /// The message is older than the window allows.
    TooOld,
    /// The message is dated further ahead than the window allows.
    TooNew,
    /// The message is from before this start, and what was seen then is forgotten.
    BeforeStart,
    /// The message is older than the oldest second that is still remembered.
    Forgotten,
    /// This sender has used this nonce before.
    Replayed,
    /// So many messages came within one second that one more could not be remembered.
    TooMany,
    /// The peer runs as another user.
    OtherUser,
    /// The peer runs in another pid namespace than the daemon.
    Jailed,
    /// The peer is a program that carries connections of containers or virtual machines to this machine.
    Carried,
    /// The peer is not in a jail, and this door is for the workers of one.
    NotJailed,
    /// The peer has ended, or the kernel does not tell which process it is.
    Gone,
    /// The processes above the peer cannot all be seen, so that it may be below an agent.
    Unseen,
    /// The daemon has no descriptors or memory left to look at the peer, which may be any process.
    Busy,
    /// The name belongs to an agent that proves it in another way.
    Reserved,
    /// An agent has a token for the name, which the request did not show.
    Taken,
    /// An agent of another host has the name, and the caller has shown no proof of it.
    OtherHost,
    /// The token is valid, but for another name.
    OtherName,
    /// The request was not made to this door, or not by a program of this machine.
    Foreign,
    /// The token is unknown, or has expired, or belongs to another agent.
    BadToken,
}

impl Rejected {
    /// Returns one line for the log, which the peer never sees.
    pub fn cause(self) -> &'static str {
        match self {
            Self::WrongMac => "the MAC does not match",
            Self::MalformedMac => "the MAC is not the Base64 of 32 bytes",
            Self::NoKey => "no valid key for this sender",
            Self::TooOld => "the time stamp is too old",
            Self::TooNew => "the time stamp is in the future",
            Self::BeforeStart => "the time stamp is from before the daemon started",
            Self::Forgotten => "the time stamp is older than the memory of nonces",
            Self::Replayed => "the nonce was used before",
            Self::TooMany => "too many messages within one second",
            Self::OtherUser => "the peer is another user",
            Self::Jailed => "the peer is in another pid namespace",
            Self::Carried => "the peer carries connections of a container or virtual machine",
            Self::NotJailed => "the peer is not in a jail",
            Self::Gone => "the peer has gone",
            Self::Unseen => "the processes above the peer cannot all be seen",
            Self::Busy => "the peer is not known: too many descriptors are open to examine it",
            Self::Reserved => "the name is reserved",
            Self::Taken => "the name has a token, which was not shown",
            Self::OtherHost => "the name is that of an agent of another host, and was not proved",
            Self::OtherName => "the token is not for this name",
            Self::Foreign => "the request was made to another address, or by a page of a browser",
            Self::BadToken => "the token is not valid",
        }
    }
}

/// The text that the peer gets for [`Rejected::Unseen`], with the next step.
pub const UNSEEN: &str = "the processes above the one that asks cannot all be seen: it has ended, or there are too many of them; \
                          have a running process ask, below fewer others";

/// Returns the rejection for a failed look at a peer: [`Rejected::Busy`] if the daemon lacked something, since that
/// says nothing about the peer.
#[cfg(target_os = "linux")]
fn unless_busy(error: &std::io::Error, otherwise: Rejected) -> Rejected {
    if provost_system::is_out_of_something(error) { Rejected::Busy } else { otherwise }
}

/// Makes a secret for one use, such as one run of a worker.
///
/// # Errors
/// If the system has no randomness to give.
pub fn fresh_secret() -> Result<Secret, getrandom::Error> {
    random_hex()
}

/// Returns 32 random bytes as 64 hexadecimal digits.
fn random_hex() -> Result<Secret, getrandom::Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice())?;
    let hex = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
    Ok(Secret::new(bytes.iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).collect()))
}

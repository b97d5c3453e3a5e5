//! The token of a run, with which its own programs authenticate at the proxy.

use subtle::ConstantTimeEq as _;

use provost_base::Secret;

/// The user name beside the token, for schemes that need one.
pub(super) const USER: &str = "run";

/// The bytes of randomness; the text is twice as long.
const BYTES: usize = 24;

/// The token of a run; it has no `Debug`, so that it gets into no log.
pub(super) struct Token(Secret);

impl Token {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut random = [0; BYTES];
        getrandom::fill(&mut random)?;
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(Secret::new(text.into_bytes())))
    }

    /// Returns the token as text, for the worker's environment.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.0.expose()).into_owned()
    }

    /// Returns whether a guess is the token. Takes the same time for every guess of its length.
    pub(super) fn is(&self, guess: &[u8]) -> bool {
        self.0.expose().ct_eq(guess).into()
    }
}

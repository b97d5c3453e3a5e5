//! The token of one run, with which its own programs authenticate at the proxy.

use subtle::ConstantTimeEq as _;

use provost_base::Secret;

/// The user's name that goes with it where a scheme wants one.
pub(super) const USER: &str = "run";

/// Bytes of randomness; as text twice as many.
const BYTES: usize = 24;

/// The token of one run; it has no `Debug`, so that no log can have it.
pub(super) struct Token(Secret);

impl Token {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut random = [0; BYTES];
        getrandom::fill(&mut random)?;
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(Secret::new(text.into_bytes())))
    }

    /// The token as text, for the worker's environment.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.0.expose()).into_owned()
    }

    /// Whether this is it. Takes as long for every guess of its length.
    pub(super) fn is(&self, guess: &[u8]) -> bool {
        self.0.expose().ct_eq(guess).into()
    }
}

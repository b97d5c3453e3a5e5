//! Reads the outline of a message that is too long to keep: whether it is a request, and its id.
//!
//! It reads byte by byte, in little memory, however long the message is. It does not check whether the message is
//! valid JSON.

use rmcp::model::RequestId;

use provost_base::limits::MCP_ID_BYTES_MAX;

/// The outline of a message so far.
#[derive(Default, Debug)]
pub struct Outline {
    depth: usize,
    inside: ScanState,
    /// The member of the outermost object that is being read, without nested values; its name comes first.
    text: Vec<u8>,
    is_id: bool,
    has_id: bool,
    id: Option<RequestId>,
    has_method: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
enum ScanState {
    #[default]
    Nothing,
    Text,
    Escape,
}

impl Outline {
    /// Reads the beginning of a message.
    pub fn of(bytes: &[u8]) -> Self {
        let mut outline = Self::default();
        outline.read(bytes);
        outline
    }

    /// Reads further bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.take(*byte));
    }

    /// Returns the id of the request, if it is one.
    #[must_use]
    pub fn id(self) -> Option<RequestId> {
        self.id
    }

    /// Returns whether the message has a member `id`, valid or not.
    #[must_use]
    pub fn has_id(&self) -> bool {
        self.has_id
    }

    /// Returns whether the message needs no answer: it is a notice, or an answer itself.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.has_id != self.has_method
    }

    /// Returns whether it is an answer to a request.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.has_id && !self.has_method
    }

    fn take(&mut self, byte: u8) {
        match (self.inside, byte) {
            (ScanState::Text, b'\\') => self.inside = ScanState::Escape,
            (ScanState::Text, b'"') => self.inside = ScanState::Nothing,
            (ScanState::Text | ScanState::Escape, _) => self.inside = ScanState::Text,
            (ScanState::Nothing, b'"') => self.inside = ScanState::Text,
            (ScanState::Nothing, b'{' | b'[') => {
                self.depth += 1;
                return;
            }
            (ScanState::Nothing, b'}' | b']') => {
                if self.depth == 1 {
                    self.end_of_member();
                }
                self.depth = self.depth.saturating_sub(1);
                return;
            }
            (ScanState::Nothing, b':') if self.depth == 1 => return self.end_of_name(),
            (ScanState::Nothing, b',') if self.depth == 1 => return self.end_of_member(),
            (ScanState::Nothing, _) => {}
        }
        // A text that is too long for an id stays marked as too long.
        if self.depth == 1 && self.text.len() <= MCP_ID_BYTES_MAX {
            self.text.push(byte);
        }
    }

    fn end_of_name(&mut self) {
        let name = self.text.trim_ascii();
        self.is_id = name == b"\"id\"";
        self.has_id |= self.is_id;
        self.has_method |= name == b"\"method\"";
        self.text.clear();
    }

    fn end_of_member(&mut self) {
        if self.is_id && self.text.len() <= MCP_ID_BYTES_MAX {
            self.id = serde_json::from_slice(&self.text).ok();
        }
        self.is_id = false;
        self.text.clear();
    }
}

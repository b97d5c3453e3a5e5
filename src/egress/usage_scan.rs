//! Reads the token counts of a model's service from an answer that passes by: of Anthropic's messages, OpenAI's
//! responses and chat completions, and Gemini; whole, as events, and as an array.
//!
//! The answer is read byte by byte and not kept: only a stack of names, the present name or number, and the sums.
//! The boundaries of pieces do not matter. A number that is invalid, negative or too large is ignored, and an
//! answer that is not JSON ends the reading, never the answer.

/// The longest name of a member that is compared, in bytes; all names that count are shorter.
const NAME_MAX: usize = 40;
/// The most names of nested objects that are kept; those that count are at most this deep.
const NAMES_MAX: usize = 4;
/// The most nested objects and arrays; deeper content is ignored.
const NESTING_MAX: usize = 256;
/// The longest name of a model that is kept, in bytes.
const MODEL_MAX: usize = 200;
/// The most digits of a number that counts.
const DIGITS_MAX: usize = 12;
/// The most tokens of a kind that an answer is believed to have used. Contexts are far smaller.
const TOKENS_MAX: u64 = 100_000_000;
/// The beginning of a line with data, in a stream of events.
const DATA: &[u8] = b"data:";
/// The bytes of text that count as one token if the service reports none.
const BYTES_A_TOKEN: u64 = 3;

/// The usage that an answer reports; each number grows while the answer comes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ReportedUsage {
    /// Input tokens, without those from the cache.
    pub(super) input: u64,
    /// Output tokens, including reasoning.
    pub(super) output: u64,
    /// Reasoning tokens.
    pub(super) reasoning: u64,
    /// Tokens read from the service's cache.
    pub(super) cache_read: u64,
    /// Tokens written to that cache.
    pub(super) cache_write: u64,
}

/// The numbers under the services' names, each the largest that was reported.
#[derive(Default)]
struct Numbers {
    input: u64,
    output: u64,
    reasoning: u64,
    /// Anthropic's cached tokens, which are not part of the input.
    cache_beside: u64,
    /// The cached tokens of OpenAI and Gemini, which are part of the input.
    cache_within: u64,
    cache_write: u64,
    /// Gemini's output, which does not include reasoning.
    candidates: u64,
    thoughts: u64,
    tools: u64,
}

/// The position of the reader within a document.
enum At {
    /// Between words.
    Between,
    /// In a text; `escaped` says whether the next byte is escaped.
    Text { escaped: bool },
    /// In a number, or in a word such as `true`.
    Bare,
}

/// The meaning of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Means {
    /// The name of a member.
    Name,
    /// The name of the model.
    Model,
    /// Text that the model has written.
    Written,
    /// Any other text.
    Nothing,
}

/// A reader of JSON documents, one after the other.
struct Json {
    at: At,
    means: Means,
    /// For each level, whether it is an object.
    nest: Vec<bool>,
    /// The number of objects among them.
    objects: usize,
    /// The number of open arrays within objects: their content does not count.
    arrays: usize,
    /// The present member of each of the outer objects.
    names: Vec<Vec<u8>>,
    /// Whether a text here would be a member's name.
    before_name: bool,
    word: Vec<u8>,
    /// The number of open levels beyond those that are kept. Their content does not count.
    deeper: usize,
    is_over: bool,
}

/// The framing of an answer.
enum Framing {
    /// A single document.
    Whole,
    /// A stream of events, each with a document in its lines of data.
    Events { matched: usize, length: usize, is_other: bool, after_cr: bool },
}

/// A reader of an answer.
pub(super) struct UsageScan {
    framing: Framing,
    json: Json,
    numbers: Numbers,
    model: Option<Box<str>>,
    written: u64,
    has_told: bool,
    settled: Option<ReportedUsage>,
}

impl UsageScan {
    /// Makes a reader for an answer of this content type.
    pub(super) fn new(content_type: Option<&str>) -> Self {
        let is_events = content_type.is_some_and(|it| it.trim_start().starts_with("text/event-stream"));
        let framing = match is_events {
            true => Framing::Events { matched: 0, length: 0, is_other: false, after_cr: false },
            false => Framing::Whole,
        };
        let (json, numbers) = (Json::new(), Numbers::default());
        Self { framing, json, numbers, model: None, written: 0, has_told: false, settled: None }
    }

    /// Reads the next piece of the answer.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        for byte in piece {
            match self.framing {
                Framing::Whole => self.read(*byte),
                Framing::Events { .. } => self.read_line(*byte),
            }
        }
    }

    /// Returns whether the answer has reported any tokens.
    pub(super) fn has_told(&self) -> bool {
        self.has_told
    }

    /// Returns the model that the answer names.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the usage reported in objects that are complete by now.
    pub(super) fn settled(&self) -> Option<&ReportedUsage> {
        self.settled.as_ref()
    }

    /// Returns the usage reported so far.
    pub(super) fn told(&self) -> ReportedUsage {
        let it = &self.numbers;
        ReportedUsage {
            input: it.input.saturating_sub(it.cache_within).saturating_add(it.tools),
            output: it.output.max(it.candidates.saturating_add(it.thoughts)),
            reasoning: it.reasoning.max(it.thoughts),
            cache_read: it.cache_beside.max(it.cache_within),
            cache_write: it.cache_write,
        }
    }

    /// Returns the guessed number of tokens in the model's text.
    pub(super) fn guessed_output(&self) -> u64 {
        self.written.div_ceil(BYTES_A_TOKEN)
    }

    fn read_line(&mut self, byte: u8) {
        let Framing::Events { matched, length, is_other, after_cr } = &mut self.framing else { return };
        if byte == b'\n' && std::mem::take(after_cr) {
            return;
        }
        *after_cr = byte == b'\r';
        if byte == b'\n' || byte == b'\r' {
            let (is_empty, is_data) = (*length == 0, *matched == DATA.len());
            (*matched, *length, *is_other) = (0, 0, false);
            match (is_empty, is_data) {
                (true, _) => self.json = Json::new(),
                (false, true) => self.read(b'\n'),
                (false, false) => {}
            }
            return;
        }
        *length = length.saturating_add(1);
        if *matched == DATA.len() {
            self.read(byte);
        } else if !*is_other && DATA[*matched] == byte {
            *matched += 1;
        } else {
            *is_other = true;
        }
    }

    fn read(&mut self, byte: u8) {
        if self.json.is_over {
            return;
        }
        match self.json.at {
            At::Text { escaped: true } => {
                self.json.at = At::Text { escaped: false };
                self.in_text(byte);
            }
            At::Text { .. } if byte == b'\\' => {
                self.json.at = At::Text { escaped: true };
                // A name or a model with an escape is none that counts.
                self.json.word.resize(MODEL_MAX + 1, b'\\');
            }
            At::Text { .. } if byte == b'"' => self.end_text(),
            At::Text { .. } => self.in_text(byte),
            At::Bare if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) => {
                if self.json.word.len() <= DIGITS_MAX {
                    self.json.word.push(byte);
                }
            }
            At::Bare => {
                self.json.at = At::Between;
                self.end_number();
                self.between(byte);
            }
            At::Between => self.between(byte),
        }
    }

    fn between(&mut self, byte: u8) {
        let json = &mut self.json;
        if json.deeper > 0 {
            return json.far_within(byte);
        }
        match byte {
            b'{' | b'[' if json.nest.len() >= NESTING_MAX => json.deeper = 1,
            b'{' => json.open(true),
            b'[' => json.open(false),
            b'}' | b']' => {
                json.close(byte == b'}');
                // Within an object, a part may come before the total that includes it.
                if json.objects == 0 && self.has_told {
                    self.settled = Some(self.told());
                }
            }
            b',' => json.before_name = json.nest.last() == Some(&true),
            b':' => json.before_name = false,
            // A document is an object, or an array of objects.
            b'"' if json.nest.is_empty() => json.is_over = true,
            b'"' => {
                json.at = At::Text { escaped: false };
                json.word.clear();
                json.means = json.meaning();
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ if !json.nest.is_empty() && (byte.is_ascii_alphanumeric() || byte == b'-') => {
                json.at = At::Bare;
                json.word.clear();
                json.word.push(byte);
            }
            _ => json.is_over = true,
        }
    }

    fn in_text(&mut self, byte: u8) {
        let most = match self.json.means {
            Means::Name => NAME_MAX,
            Means::Model => MODEL_MAX,
            Means::Written => {
                self.written = self.written.saturating_add(1);
                return;
            }
            Means::Nothing => return,
        };
        // Another byte shows that it is too long.
        if self.json.word.len() <= most {
            self.json.word.push(byte);
        }
    }

    fn end_text(&mut self) {
        let json = &mut self.json;
        json.at = At::Between;
        match json.means {
            Means::Name => json.name_member(),
            Means::Model if self.model.is_none() && (1..=MODEL_MAX).contains(&json.word.len()) => {
                let is_plain = json.word.iter().all(u8::is_ascii_graphic);
                self.model = is_plain.then(|| String::from_utf8_lossy(&json.word).into());
            }
            _ => {}
        }
    }

    fn end_number(&mut self) {
        let json = &self.json;
        let digits = json.word.len() <= DIGITS_MAX && json.word.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(&json.word).ok().filter(|_| digits);
        let Some(number) = text.and_then(|it| it.parse::<u64>().ok()).filter(|it| *it <= TOKENS_MAX) else {
            return;
        };
        let Some(of) = self.numbers.named(&json.path()) else { return };
        *of = (*of).max(number);
        self.has_told = true;
    }
}

impl Json {
    fn new() -> Self {
        Self {
            at: At::Between,
            means: Means::Nothing,
            nest: Vec::new(),
            objects: 0,
            arrays: 0,
            names: Vec::new(),
            before_name: false,
            word: Vec::new(),
            deeper: 0,
            is_over: false,
        }
    }

    /// Reads a byte at a level so deep that only its end matters.
    fn far_within(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => self.deeper += 1,
            b'}' | b']' => self.deeper -= 1,
            b'"' => {
                self.at = At::Text { escaped: false };
                self.word.clear();
                self.means = Means::Nothing;
            }
            _ => {}
        }
    }

    fn open(&mut self, is_object: bool) {
        self.nest.push(is_object);
        self.before_name = is_object;
        if is_object {
            self.objects += 1;
            if self.objects <= NAMES_MAX {
                self.names.push(Vec::new());
            }
        } else if self.objects > 0 {
            self.arrays += 1;
        }
    }

    fn close(&mut self, is_object: bool) {
        if self.nest.pop() != Some(is_object) {
            self.is_over = true;
            return;
        }
        if is_object {
            if self.objects <= NAMES_MAX {
                self.names.pop();
            }
            self.objects -= 1;
        } else if self.objects > 0 {
            self.arrays -= 1;
        }
        self.before_name = false;
    }

    fn name_member(&mut self) {
        if self.objects <= NAMES_MAX
            && let Some(last) = self.names.last_mut()
        {
            last.clear();
            // A name that is too long does not count, and is stored as empty.
            if self.word.len() <= NAME_MAX {
                last.extend_from_slice(&self.word);
            }
        }
    }

    /// Returns the names that lead to a value; empty if it is too deep to count, or in an array within an object.
    fn path(&self) -> Vec<&[u8]> {
        if self.objects > NAMES_MAX || self.arrays > 0 {
            return Vec::new();
        }
        self.names.iter().map(Vec::as_slice).collect()
    }

    /// Returns the meaning of a text here.
    fn meaning(&self) -> Means {
        if self.before_name {
            return Means::Name;
        }
        // The model's text may contain any structure, at any depth.
        let names: Vec<&[u8]> = self.names.iter().map(Vec::as_slice).collect();
        match names[..] {
            [b"delta", ..] | [b"choices", b"delta" | b"message", ..] => Means::Written,
            [b"model" | b"modelVersion"] | [b"message" | b"response", b"model" | b"modelVersion"]
                if self.objects <= NAMES_MAX && self.arrays == 0 =>
            {
                Means::Model
            }
            _ => Means::Nothing,
        }
    }
}

impl Numbers {
    /// Returns the number for these names.
    fn named(&mut self, path: &[&[u8]]) -> Option<&mut u64> {
        let within = match path {
            [b"message" | b"response", within @ ..] => within,
            whole => whole,
        };
        Some(match within {
            [b"usage", b"input_tokens" | b"prompt_tokens"] => &mut self.input,
            [b"usage", b"output_tokens" | b"completion_tokens"] => &mut self.output,
            [b"usage", b"cache_read_input_tokens"] => &mut self.cache_beside,
            [b"usage", b"cache_creation_input_tokens"] => &mut self.cache_write,
            [b"usage", b"input_tokens_details" | b"prompt_tokens_details", b"cached_tokens"] => {
                &mut self.cache_within
            }
            [b"usage", b"output_tokens_details" | b"completion_tokens_details", b"reasoning_tokens"]
            | [b"usage", b"output_tokens_details", b"thinking_tokens"] => &mut self.reasoning,
            [b"usageMetadata", b"promptTokenCount"] => &mut self.input,
            [b"usageMetadata", b"candidatesTokenCount"] => &mut self.candidates,
            [b"usageMetadata", b"thoughtsTokenCount"] => &mut self.thoughts,
            [b"usageMetadata", b"cachedContentTokenCount"] => &mut self.cache_within,
            [b"usageMetadata", b"toolUsePromptTokenCount"] => &mut self.tools,
            _ => return None,
        })
    }
}

//! A search as it is typed, and what it finds.

use provost_base::limits::{SEARCH_EXCERPT_CHARS, SEARCH_LEN_MAX, SEARCH_WORDS_MAX};
use provost_base::{AgentId, EventSeq, PostSeq, TaskId, Timestamp};

/// The words of a search. All of them have to be there.
///
/// A word is a text, whatever signs are in it: `src/auth.rs` is these three words one behind the other. Words in quotation marks
/// stand together, and `log*` is the beginning of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchWords(Vec<SearchWord>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct SearchWord {
    text: String,
    is_beginning: bool,
}

/// Why a text is no search, and what to type instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SearchError {
    /// There is no word in it.
    #[error("there is nothing to search for: type a word that is in a task, a message or an event")]
    Empty,
    /// It is too long.
    #[error("a search has {SEARCH_LEN_MAX} bytes at the most: type fewer words")]
    TooLong,
    /// It has too many words.
    #[error("a search has {SEARCH_WORDS_MAX} words at the most: type fewer")]
    TooMany,
    /// A quotation mark without its partner.
    #[error(
        "a quotation mark is not closed: type \" at both ends of the words that stand together, or at none"
    )]
    Open,
    /// Signs alone.
    #[error("'{0}' has neither letters nor digits, and only these are searched: leave it out")]
    Signs(String),
    /// A character that no text has.
    #[error("there is a control character in it: type words alone")]
    Control,
}

impl SearchWords {
    /// Reads a search.
    ///
    /// # Errors
    /// [`SearchError`], in words for the person who has typed it.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        if text.len() > SEARCH_LEN_MAX {
            return Err(SearchError::TooLong);
        }
        if text.chars().any(|it| it.is_control() && !it.is_whitespace()) {
            return Err(SearchError::Control);
        }
        let mut words = Vec::new();
        for (n, part) in text.split('"').enumerate() {
            // What is between two marks stands together.
            let together = n % 2 == 1;
            let parts: Vec<&str> = if together { vec![part] } else { part.split_whitespace().collect() };
            for part in parts {
                words.push(SearchWord::parse(part, together)?);
            }
        }
        if text.matches('"').count() % 2 == 1 {
            return Err(SearchError::Open);
        }
        match words.len() {
            0 => Err(SearchError::Empty),
            count if count > SEARCH_WORDS_MAX => Err(SearchError::TooMany),
            _ => Ok(Self(words)),
        }
    }

    /// The same for the index: each word is a text in quotation marks there, so that nothing in it is a sign of the index's
    /// own language.
    pub(crate) fn expression(&self) -> String {
        let word = |it: &SearchWord| {
            let text = it.text.replace('"', "\"\"");
            format!("\"{text}\"{}", if it.is_beginning { "*" } else { "" })
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(" AND ")
    }

    /// Each word with whether it is the beginning of one.
    #[cfg(feature = "postgres")]
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|it| (&*it.text, it.is_beginning))
    }

    /// Some words around the first place in a text that has one of them; the beginning where none is found again.
    pub fn excerpt(&self, text: &str) -> String {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let low = line.to_lowercase();
        // Another case may have another length; then the place is near enough.
        let found = self.0.iter().filter_map(|it| low.find(&it.text.to_lowercase())).min().unwrap_or(0);
        let at = line.floor_char_boundary(found.min(line.len()));
        let before =
            line[..at].chars().rev().take(SEARCH_EXCERPT_CHARS / 4).map(char::len_utf8).sum::<usize>();
        let from = at - before;
        let shown: String = line[from..].chars().take(SEARCH_EXCERPT_CHARS).collect();
        let is_whole = from + shown.len() == line.len();
        format!("{}{shown}{}", if from > 0 { "…" } else { "" }, if is_whole { "" } else { "…" })
    }
}

impl SearchWord {
    fn parse(text: &str, together: bool) -> Result<Self, SearchError> {
        let beginning = text.strip_suffix('*').filter(|it| !together && it.ends_with(char::is_alphanumeric));
        let plain = beginning.unwrap_or(text).trim();
        if !plain.chars().any(char::is_alphanumeric) {
            return Err(if plain.is_empty() && together {
                SearchError::Empty
            } else {
                SearchError::Signs(plain.into())
            });
        }
        Ok(Self { text: plain.into(), is_beginning: beginning.is_some() })
    }
}

/// What is searched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchQuery {
    /// The words.
    pub words: SearchWords,
    /// Only hits of this kind.
    pub only: Option<HitKind>,
    /// Only messages and events with a smaller number, and no tasks: where the page before ended.
    pub before: Option<EventSeq>,
    /// How many tasks, and how many messages and events, at most.
    pub limit: usize,
}

impl SearchQuery {
    /// Whether hits of this kind are wanted.
    pub fn takes(&self, kind: HitKind) -> bool {
        self.only.is_none_or(|it| it == kind)
    }

    /// The expression for events.
    pub(crate) fn expression(&self) -> String {
        let words = self.words.expression();
        match self.only {
            Some(HitKind::Message) => format!("what : \"published\" AND {words}"),
            Some(HitKind::Event) => format!("({words}) NOT what : \"published\""),
            Some(HitKind::Task) | None => words,
        }
    }
}

/// The kind of something that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitKind {
    /// A task, finished or not.
    Task,
    /// A message between agents.
    Message,
    /// Any other event.
    Event,
}

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hit {
    /// What it is.
    pub kind: HitKind,
    /// The number of the event; `None` for a task.
    pub seq: Option<EventSeq>,
    /// The number of the message.
    pub post: Option<PostSeq>,
    /// When it happened; of a task, its last change.
    pub at: Timestamp,
    /// The kind of event, or the state of the task.
    pub what: Box<str>,
    /// The agent that caused it, or that has asked for the task.
    pub actor: AgentId,
    /// The task that it is or is about.
    pub task: Option<TaskId>,
    /// Some words around the first that was found. An agent may have written them.
    pub excerpt: Box<str>,
}

/// A page of what was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Tasks, then messages and events, each newest first.
    pub hits: Vec<Hit>,
    /// Whether there are more tasks than those.
    pub more_tasks: bool,
    /// Before which event the next page begins, where there is one.
    pub next: Option<EventSeq>,
    /// Up to which event there is an index.
    pub indexed_to: EventSeq,
}

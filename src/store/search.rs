//! A search as a person types it, and its results.

use provost_base::limits::{SEARCH_EXCERPT_CHARS, SEARCH_LEN_MAX, SEARCH_WORDS_MAX};
use provost_base::{AgentId, EventSeq, PostSeq, TaskId, Timestamp};

/// The words of a search. A hit has all of them.
///
/// A word is a text with any signs: `src/auth.rs` is a sequence of these three words. Words in quotation marks must
/// be adjacent, and `log*` is the beginning of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchWords(Vec<SearchWord>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct SearchWord {
    text: String,
    is_beginning: bool,
}

/// The reason why a text is not a search, with the correction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SearchError {
    /// The text has no words.
    #[error("there is nothing to search for: type a word that is in a task, a message or an event")]
    Empty,
    /// The text is too long.
    #[error("a search has {SEARCH_LEN_MAX} bytes at the most: type fewer words")]
    TooLong,
    /// The text has too many words.
    #[error("a search has {SEARCH_WORDS_MAX} words at the most: type fewer")]
    TooMany,
    /// A quotation mark without its partner.
    #[error(
        "a quotation mark is not closed: type \" at both ends of the words that stand together, or at none"
    )]
    Open,
    /// The text has only signs.
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
            // Words between two marks must be adjacent.
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

    /// Returns the search in the index's language: each word is a text in quotation marks there, so that no sign in
    /// it has a meaning.
    pub(crate) fn expression(&self) -> String {
        let word = |it: &SearchWord| {
            let text = it.text.replace('"', "\"\"");
            format!("\"{text}\"{}", if it.is_beginning { "*" } else { "" })
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(" AND ")
    }

    /// Returns each word, with whether it is only the beginning of one.
    #[cfg(feature = "postgres")]
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|it| (&*it.text, it.is_beginning))
    }

    /// Returns some words around the first match in a text; the text's beginning if there is no match.
    pub fn excerpt(&self, text: &str) -> String {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let low = line.to_lowercase();
        // In another case, the text may have another length; the place is near enough then.
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

/// A search, with its limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchQuery {
    /// The words to find.
    pub words: SearchWords,
    /// Only hits of this kind.
    pub only: Option<HitKind>,
    /// Only messages and events with a smaller number, and no tasks: the end of the page before.
    pub before: Option<EventSeq>,
    /// The highest number of tasks, and of messages and events.
    pub limit: usize,
}

impl SearchQuery {
    /// Checks whether hits of this kind are wanted.
    pub fn takes(&self, kind: HitKind) -> bool {
        self.only.is_none_or(|it| it == kind)
    }

    /// Returns the expression for events.
    pub(crate) fn expression(&self) -> String {
        let words = self.words.expression();
        match self.only {
            Some(HitKind::Message) => format!("what : \"published\" AND {words}"),
            Some(HitKind::Event) => format!("({words}) NOT what : \"published\""),
            Some(HitKind::Task) | None => words,
        }
    }
}

/// The kind of a hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitKind {
    /// A task, finished or not.
    Task,
    /// A message between agents.
    Message,
    /// Any other event.
    Event,
}

/// A hit of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hit {
    /// The kind of the hit.
    pub kind: HitKind,
    /// The number of the event; `None` for a task.
    pub seq: Option<EventSeq>,
    /// The number of the message.
    pub post: Option<PostSeq>,
    /// The time of the event; for a task, of its last change.
    pub at: Timestamp,
    /// The kind of event, or the state of the task.
    pub what: Box<str>,
    /// The agent that caused it, or that has asked for the task.
    pub actor: AgentId,
    /// The task that the hit is, or is about.
    pub task: Option<TaskId>,
    /// Some words around the first match. An agent may have written them.
    pub excerpt: Box<str>,
}

/// A page of hits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Tasks, then messages and events, each newest first.
    pub hits: Vec<Hit>,
    /// Whether there are more tasks than those.
    pub more_tasks: bool,
    /// The event before which the next page begins; `None` if this is the last page.
    pub next: Option<EventSeq>,
    /// The last event in the index.
    pub indexed_to: EventSeq,
}

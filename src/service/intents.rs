//! Intents: finds the places of their symbols, at the announcement and as long as an intent lives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::Provost;
use super::code::{Base, READ_TIME_MAX, Source};
use super::graph::{Call, CallDirection, cut};
use super::locks::known_as;
use provost_base::limits::{
    CALLERS_MAX, CODE_READERS_MAX, INTENT_FILES_MAX, INTENT_PLACES_MAX, INTENT_SYMBOLS_MAX, WARNINGS_MAX,
};
use provost_base::{Fence, IntentId, RepoPath, Span, Ttl};
use provost_domain::command::{
    Conflict, DeclareIntent, Declared, EndIntent, FreshSpans, IntendedFile, IntentEnded, IntentUpdated,
    RefreshIntents, UpdateIntent,
};
use provost_domain::view::{Collisions, IntentsOn, Named, SomeIntents};
use provost_domain::{Intent, IntentStatus, Principal, Refusal};
use provost_graph::FoundBy;
use provost_syntax::Reading;

/// An announcement of a change by an agent.
#[derive(Clone, Debug)]
pub struct IntentOrder {
    /// The checkout in which the caller works; `None` means the daemon's own.
    pub base: Option<Base>,
    /// The id of the intent, which no intent has had before.
    pub id: IntentId,
    /// The change, in the caller's words.
    pub description: Box<str>,
    /// The files of the change, each also as the caller wrote it.
    pub files: Vec<(RepoPath, Box<str>)>,
    /// The symbols of these files that it will change; empty for whole files.
    pub symbols: Vec<Box<str>>,
    /// The time after which the intent lapses.
    pub ttl: Option<Ttl>,
    /// The grants of the locks that the caller took for this intent.
    pub grants: Vec<Fence>,
}

impl Provost {
    /// Announces a change, and returns its collisions.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn declare(&self, who: &Principal, order: IntentOrder) -> Result<Declared, Refusal> {
        bounded(&order)?;
        let verb = self.announced(order).await?;
        self.submit(who, verb).await
    }

    /// Returns the collisions that a change would have if it were announced now, and the number of collisions beyond those.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub async fn collisions(
        &self,
        who: &Principal,
        order: IntentOrder,
    ) -> Result<(Vec<Conflict>, usize), Refusal> {
        bounded(&order)?;
        let verb = self.announced(order).await?;
        self.view(Collisions { by: who.agent().clone(), verb }).await
    }

    /// Turns an order into an announcement with the places in the present files.
    async fn announced(&self, order: IntentOrder) -> Result<DeclareIntent, Refusal> {
        let base = order.base.as_ref().unwrap_or(self.base());
        let paths: Vec<RepoPath> = order.files.iter().map(|(path, _)| path.clone()).collect();
        let sources = self.sources(base, &paths, order.symbols.is_empty()).await;
        let mut files = Vec::with_capacity(order.files.len());
        let (mut calls, mut callers) = (Vec::new(), Vec::new());
        for ((_, asked), source) in order.files.iter().zip(&sources) {
            files.push(intended(source, asked, &order.symbols));
            calls.extend(match order.symbols.is_empty() {
                true => self.of_whole(source, CallDirection::Callees).await,
                false => self.calls_from(base, source, &order.symbols).await,
            });
            callers.extend(self.callers_of_all(base, source, &order.symbols).await);
        }
        let mut gaps = self.graph_gaps(&sources, &order.symbols).await;
        if calls.len().max(callers.len()) > CALLERS_MAX {
            gaps.push(cut());
        }
        calls.truncate(CALLERS_MAX);
        callers.truncate(CALLERS_MAX);
        let is_guess = |it: &&Call| it.2 == FoundBy::Guess;
        let guessed = calls.iter().chain(&callers).filter(is_guess).map(|it| (it.0.clone(), it.1.clone()));
        let guessed = guessed.collect();
        let [calls, callers] =
            [calls, callers].map(|it| it.into_iter().map(|it| (it.0, it.1)).collect::<Vec<_>>());
        let on: Vec<RepoPath> = sources.iter().map(|it| it.path.clone()).collect();
        let fresh = self.fresh_spans(&self.view(IntentsOn(on)).await?, &sources);
        Ok(DeclareIntent {
            id: order.id,
            description: order.description,
            files,
            symbols: order.symbols,
            ttl: order.ttl,
            calls,
            callers,
            guessed,
            gaps,
            fresh,
            grants: order.grants,
        })
    }

    /// Sets the status of the caller's intent.
    ///
    /// # Errors
    /// [`Refusal::IntentNotFound`], [`Refusal::IntentNotOwned`], [`Refusal::IntentCannot`].
    pub async fn update_intent(
        &self,
        who: &Principal,
        id: IntentId,
        to: IntentStatus,
    ) -> Result<IntentUpdated, Refusal> {
        self.submit(who, UpdateIntent { id, to }).await
    }

    /// Ends the intent of any agent.
    ///
    /// # Errors
    /// [`Refusal::OutOfScope`], [`Refusal::IntentNotFound`], [`Refusal::IntentCannot`].
    pub async fn end_intent(&self, who: &Principal, id: IntentId) -> Result<IntentEnded, Refusal> {
        self.submit(who, EndIntent { id }).await
    }

    /// Returns intents, with the present places of their symbols as far as these can be found in time.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn intents(&self, which: SomeIntents) -> Result<Vec<Named<Arc<Intent>>>, Refusal> {
        let found = self.view(which.clone()).await?;
        let live = found.iter().filter(|it| it.it.status.is_live() && !it.it.symbols.is_empty());
        // Beyond this bound, intents are reported as they were at the last check.
        let files: BTreeSet<RepoPath> =
            live.flat_map(|it| it.it.files.iter().map(|file| file.path.clone())).take(WARNINGS_MAX).collect();
        if files.is_empty() {
            return Ok(found);
        }
        match self.refresh_files(&files.into_iter().collect::<Vec<_>>()).await? {
            0 => Ok(found),
            _ => self.view(which).await,
        }
    }

    /// Follows symbols of live intents in files that may have changed; returns the number of intents whose places have moved.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn refresh_files(&self, files: &[RepoPath]) -> Result<usize, Refusal> {
        let intents = self.view(IntentsOn(files.to_vec())).await?;
        if intents.iter().all(|it| it.symbols.is_empty()) {
            return Ok(0);
        }
        let sources = self.sources(self.base(), files, false).await;
        let spans = self.fresh_spans(&intents, &sources);
        if spans.is_empty() {
            return Ok(0);
        }
        Ok(self.submit(self.system(), RefreshIntents { spans }).await?.moved)
    }

    /// Reads the files, several at a time, all within the time for one file.
    async fn sources(&self, base: &Base, paths: &[RepoPath], names_only: bool) -> Vec<Source> {
        let until = Instant::now() + READ_TIME_MAX;
        let read = async |path| match names_only {
            true => {
                Source { path: self.code().spelling(base, path).await, content: super::code::Content::None }
            }
            false => self.code().read_until(base, path, until).await,
        };
        // The futures are boxed, since the compiler cannot prove that the closures are `Send`.
        let reads: Vec<_> = paths.iter().map(|path| read(path).boxed()).collect();
        stream::iter(reads).buffered(CODE_READERS_MAX).collect().await
    }

    /// Returns the places of intents' symbols that have moved in the files that were read.
    fn fresh_spans(&self, intents: &[Arc<Intent>], sources: &[Source]) -> Vec<FreshSpans> {
        let by_path: BTreeMap<&RepoPath, &Arc<Reading>> =
            sources.iter().filter_map(|it| Some((&it.path, it.reading()?))).collect();
        let mut fresh = Vec::new();
        for intent in intents.iter().filter(|it| !it.symbols.is_empty()) {
            for file in &intent.files {
                let Some(reading) = by_path.get(&file.path) else { continue };
                let spans = spans_of(reading, &intent.symbols);
                if spans != file.spans {
                    fresh.push(FreshSpans { intent: intent.id.clone(), file: file.path.clone(), spans });
                }
            }
        }
        fresh
    }
}

/// Checks the size of an announcement before any file is read for it.
fn bounded(order: &IntentOrder) -> Result<(), Refusal> {
    let (files, symbols) = (order.files.len(), order.symbols.len());
    let members = [
        (files, INTENT_FILES_MAX, "files"),
        (symbols, INTENT_SYMBOLS_MAX, "symbols"),
        (files * symbols, INTENT_PLACES_MAX, "symbols in all of its files together"),
    ];
    match members.into_iter().find(|(has, most, _)| has > most) {
        Some((_, most, unit)) => Err(Refusal::too_long("an intent", most, unit)),
        None => Ok(()),
    }
}

fn intended(source: &Source, asked: &str, symbols: &[Box<str>]) -> IntendedFile {
    let mut names = Vec::new();
    let mut spans = Vec::new();
    if let Some(reading) = source.reading() {
        spans = spans_of(reading, symbols);
        for (number, symbol) in (0u32..).zip(symbols) {
            names.extend(known_as(reading, symbol).1.into_iter().map(|name| (number, name)));
        }
    }
    IntendedFile { path: source.path.clone(), asked: asked.into(), spans, names }
}

fn spans_of(reading: &Reading, symbols: &[Box<str>]) -> Vec<Span> {
    let ranges = symbols.iter().filter(|it| !it.is_empty()).flat_map(|symbol| reading.ranges(symbol));
    let all: BTreeSet<Span> = ranges.map(|it| Span { start: it.start, end: it.end }).collect();
    all.into_iter().collect()
}

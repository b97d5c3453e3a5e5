//! "Did you mean": the known word nearest to an unknown one.

use strsim::osa_distance;

/// Returns the nearest candidate, at most a third of the word's letters away. Two letters that have changed places
/// count as one change.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let reach = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= reach)
        .min()
        .map(|(_, candidate)| candidate)
}

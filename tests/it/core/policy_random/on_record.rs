//! The part of a request that goes on record, judged once more.

use provost::domain::{Judge as _, JudgedRequest};
use provost::policy::{File, Layer, NotAskable, Request};
use provost_test_equipment::naive;

use super::{as_command, for_seeds, layers, request, stacked};

#[test]
fn what_goes_on_record_of_a_request_is_all_that_rules_look_at() {
    let asked = std::sync::atomic::AtomicU64::new(0);
    for_seeds(200, |dice| {
        let layers = layers(dice);
        let rules = stacked(&layers);
        let files: Vec<&File> = layers.iter().map(Layer::file).collect();
        for _ in 0..200 {
            let mut request = request(dice);
            request.root.get_or_insert_with(|| "/workspace".into());
            let Some((who, command, facts)) = as_command(&request) else { continue };
            let judged = JudgedRequest::of(&who, &command, &facts).unwrap();
            // As the journal has it.
            let text = serde_json::to_string(&judged).unwrap();
            let judged: JudgedRequest = serde_json::from_str(&text).unwrap();
            let line = command.work().and_then(|it| it.tool.command.as_deref());
            assert!(line.is_none_or(|it| it.len() < 8 || !text.contains(it)), "{text}");
            let root =
                Request::of(&who, &command, &facts).unwrap().root.unwrap_or_else(|| "/workspace".into());
            let again = match Request::on_record(&judged, line, &root) {
                Err(NotAskable::Arguments) => continue,
                again => again.unwrap(),
            };
            // What had no directory that rules allow is not put on record.
            if facts.directory_refused.is_some() {
                continue;
            }
            let decision = rules.decide(&who, &command, &facts);
            assert_eq!(decision, rules.decide_request(&again), "{again:#?}");
            assert_eq!(decision, naive::decide(&files, &again), "{again:#?}\n{files:#?}");
            asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(asked.into_inner() > 5_000);
}

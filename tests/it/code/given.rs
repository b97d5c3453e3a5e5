//! Calls on what a function gives to the functions that it is given, by its signature.

use provost::graph::FoundBy;

use crate::support::graphs::{assert_edges, callees, graph_of, symbol};

const STORE: &str = "export class Store {\n\
                     constructor(then?: (this: Store, entry: Entry) => void) {}\n\
                     each(then: (entry: Entry, at: number) => void) {}\n\
                     read() {}\n\
                     }\n\
                     export class Entry { read() {} next() {} open() {} }\n\
                     export interface Reader { read(): void }\n\
                     export interface Keeper extends Reader { keep(): void }\n";

#[test]
fn a_callback_is_given_what_the_signature_of_the_called_function_says() {
    let lift = "import { Entry, Store } from './store';\n\
                export function lift<T>(then: (store: Store, entry: Entry) => T, done?: (() => void) | null): void {}\n\
                export const later = (then: ((entry: Entry) => void) | number) => {};\n";
    let main = "import { Entry, Store } from './store';\n\
                import { later, lift } from './lift';\n\
                import * as all from './lift';\n\
                function called() { lift((store, entry) => { store.read(); entry.next(); }); }\n\
                function inner() { lift((store) => { const run = () => store.read(); }); }\n\
                function alone() { later(it => it.next()); }\n\
                function behind() { all.lift(function (_, entry) { entry.read(); }); }\n\
                function made() { new Store((entry) => entry.read()); }\n\
                function method(store: Store) { store.each((entry, at) => { entry.read(); at.toFixed(); }); }\n\
                function written() { lift((store: Entry) => store.read()); }\n";
    assert_edges(
        &graph_of(&[("store.ts", STORE), ("lift.ts", lift), ("main.ts", main)]),
        &[
            "main.ts:alone -> lift.ts:later",
            "main.ts:alone -> store.ts:Entry.next",
            "main.ts:behind -> lift.ts:lift",
            "main.ts:behind -> store.ts:Entry.read",
            "main.ts:called -> lift.ts:lift",
            "main.ts:called -> store.ts:Entry.next",
            "main.ts:called -> store.ts:Store.read",
            "main.ts:inner -> lift.ts:lift",
            "main.ts:inner.run -> store.ts:Store.read",
            "main.ts:made -> store.ts:Entry.read",
            "main.ts:made -> store.ts:Store",
            "main.ts:method -> ?:toFixed",
            "main.ts:method -> store.ts:Entry.read",
            "main.ts:method -> store.ts:Store.each",
            "main.ts:written -> lift.ts:lift",
            "main.ts:written -> store.ts:Entry.read",
        ],
    );
}

#[test]
fn the_type_of_a_callback_may_have_a_name_and_stand_in_the_same_file_or_in_another_one() {
    let lift = "import { Entry } from './store';\n\
                export type Then = (entry: Entry) => void;\n\
                export function lift(then: Then | null): void {}\n\
                export function twice(then: Then): void {}\n";
    let main = "import { twice } from './lift';\n\
                class Own { read() {} }\n\
                function here(then: (own: Own) => void) {}\n\
                class Shop { run(then: (own: Own) => void) {} open() { this.run((own) => own.read()); } }\n\
                function named() { twice((entry) => entry.next()); }\n\
                function near() { here((own) => own.read()); }\n";
    let graph = graph_of(&[("store.ts", STORE), ("lift.ts", lift), ("main.ts", main)]);
    let of = |caller: &str| callees(&graph, caller);
    assert_eq!(of("main.ts:named"), ["lift.ts:twice", "store.ts:Entry.next"]);
    assert_eq!(of("main.ts:near"), ["main.ts:here", "main.ts:Own.read"]);
    assert_eq!(of("main.ts:Shop.open"), ["main.ts:Shop.run", "main.ts:Own.read"]);
    for caller in ["main.ts:named", "main.ts:near", "main.ts:Shop.open"] {
        let found = graph.callees_found(&symbol(caller));
        assert!(found.iter().all(|(_, by)| *by == FoundBy::Rules), "{caller}: {found:?}");
    }
}

/// A call whose type is not written is guessed by name at most, and marked as a guess.
#[test]
fn what_a_signature_leaves_open_is_no_more_than_a_guess() {
    let lift = "import { Entry, Store } from './store';\n\
                export function chosen<Entry>(then: (entry: Entry) => void): void {}\n\
                export function either(then: (it: Store) => void): void;\n\
                export function either(then: (it: Entry) => void): void;\n\
                export function either(then: (it: any) => void): void {}\n";
    let main = "import { Entry, Store } from './store';\n\
                import { chosen, either } from './lift';\n\
                function generic() { chosen((it) => it.open()); }\n\
                function several() { either((it) => it.read()); }\n\
                function shadowed(either: any) { either((it) => it.open()); }\n\
                function foreign(list: any) { list.forEach((it) => it.open()); }\n";
    let graph = graph_of(&[("store.ts", STORE), ("lift.ts", lift), ("main.ts", main)]);
    for (caller, guess) in [("generic", true), ("several", false), ("shadowed", true), ("foreign", true)] {
        let found = graph.callees_found(&symbol(&format!("main.ts:{caller}")));
        let members: Vec<_> = found.iter().filter(|(it, _)| it.to_string().contains("store.ts")).collect();
        assert_eq!(members.len(), usize::from(guess), "{caller}: {found:?}");
        assert!(members.iter().all(|(_, by)| *by == FoundBy::Guess), "{caller}: {found:?}");
    }
}

#[test]
fn an_interface_has_what_it_extends_and_helper_types_have_what_they_are_made_for() {
    let main = "import { Keeper, Store } from './store';\n\
                function kept(it: Keeper) { it.read(); it.keep(); it.peek(); }\n\
                function part(it: Partial<Store>, own: Readonly<Store> | null) { it.each(x => x); own.read(); }\n";
    let store = "export interface Reader { read(): void; peek(): void }\n\
                 export interface Keeper extends Reader { keep(): void }\n\
                 export class Store { each(it) {} read() {} }\n";
    assert_edges(
        &graph_of(&[("store.ts", store), ("main.ts", main)]),
        &[
            "main.ts:kept -> store.ts:Keeper.keep",
            "main.ts:kept -> store.ts:Reader.peek",
            "main.ts:kept -> store.ts:Reader.read",
            "main.ts:kept -> store.ts:Store.read",
            "main.ts:part -> store.ts:Store.each",
            "main.ts:part -> store.ts:Store.read",
        ],
    );
}

/// The declaration in an interface is certain, and the class whose code may be meant is a guess beside it.
#[test]
fn a_call_of_what_an_interface_declares_leads_to_the_declaration() {
    let store =
        "export interface Reader { read(): void }\nexport class Store implements Reader { read() {} }\n";
    let main = "import { Reader, Store } from './store';\n\
                function kept(it: Reader) { it.read(); }\n\
                function own(it: Store) { it.read(); }\n";
    let alone = "import { Reader } from './store';\nfunction far(it: Reader) { it.read(); }\n";
    let graph = graph_of(&[("store.ts", store), ("main.ts", main), ("alone.ts", alone)]);
    let of = |caller: &str| {
        let mut found: Vec<(String, FoundBy)> =
            graph.callees_found(&symbol(caller)).into_iter().map(|(it, by)| (it.to_string(), by)).collect();
        found.sort();
        found
    };
    let declared = ("store.ts:Reader.read".to_owned(), FoundBy::Rules);
    let guessed = |by| ("store.ts:Store.read".to_owned(), by);
    assert_eq!(of("main.ts:kept"), [declared.clone(), guessed(FoundBy::Guess)]);
    assert_eq!(of("main.ts:own"), [guessed(FoundBy::Rules)]);
    assert_eq!(of("alone.ts:far")[0], declared);
}

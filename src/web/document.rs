//! The documents: the frame of each view, without data of the repository.

use maud::{DOCTYPE, Markup, html};

use super::assets;

/// A view that the navigation lists.
struct Listed {
    path: &'static str,
    name: &'static str,
    title: &'static str,
    /// The key that opens the view, after `g`.
    key: &'static str,
    /// Whether its rows can be filtered.
    filters: bool,
}

const fn listed(
    path: &'static str,
    name: &'static str,
    title: &'static str,
    key: &'static str,
    filters: bool,
) -> Listed {
    Listed { path, name, title, key, filters }
}

/// The views in the order of the navigation.
const VIEWS: [Listed; 12] = [
    listed("/", "needs-you", "Needs you", "n", false),
    listed("/tasks", "tasks", "Tasks", "t", true),
    listed("/agents", "agents", "Agents", "a", true),
    listed("/locks", "locks", "Locks", "l", true),
    listed("/waits", "waits", "Waits", "w", true),
    listed("/intents", "intents", "Intents", "i", true),
    listed("/messages", "messages", "Messages", "m", true),
    listed("/e", "events", "Events", "e", true),
    listed("/audit", "audit", "Audit", "u", true),
    listed("/health", "health", "Health", "h", false),
    listed("/search", "search", "Search", "s", true),
    listed("/passkeys", "passkeys", "Passkeys", "p", false),
];

/// The views over all repositories, on the page over all of them, in the order of the navigation.
const OVER_ALL: [Listed; 3] = [
    listed("/", "needs-you", "All repositories", "o", false),
    listed("/repositories", "repositories", "Repositories", "r", false),
    listed("/search", "search", "Search all", "f", true),
];

/// The page that a document belongs to: that of one repository, or the one over all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageScope<'a> {
    /// The page of one repository.
    One,
    /// The page over all repositories; below this path it shows one of them.
    OverAll(&'a str),
}

impl PageScope<'_> {
    fn base(&self) -> &str {
        match self {
            Self::One => "",
            Self::OverAll(base) => base,
        }
    }

    /// Returns the views that the navigation lists, each with its path.
    fn views(&self) -> Vec<(&'static Listed, String)> {
        let over = if *self == Self::One { &[][..] } else { &OVER_ALL[..] };
        let own = if *self == Self::OverAll("") { &[][..] } else { &VIEWS[..] };
        let base = self.base();
        let own = own.iter().map(|it| (it, format!("{base}{}", it.path)));
        over.iter().map(|it| (it, it.path.to_owned())).chain(own).collect()
    }
}

/// The views of a single thing, by the beginning of their paths: the path, the name and the title.
const ABOUT_ONE: [(&str, &str, &str); 3] =
    [("/a/", "approval", "Approval"), ("/t/", "task", "Task"), ("/e/", "event", "Event")];

/// The views that a row leads to, and that the navigation does not list.
const BEHIND_A_ROW: [(&str, &str, &str); 1] = [("/both", "both", "Both changes")];

/// Returns the view at a path: its name, its title, and whether its rows can be filtered.
fn shown(path: &str) -> Option<(&'static str, &'static str, bool)> {
    if let Some(view) = VIEWS.iter().find(|it| it.path == path) {
        return Some((view.name, view.title, view.filters));
    }
    if let Some((_, name, title)) = BEHIND_A_ROW.iter().find(|(at, ..)| *at == path) {
        return Some((name, title, false));
    }
    let (_, name, title) = ABOUT_ONE.iter().find(|(before, ..)| {
        path.strip_prefix(before).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
    })?;
    Some((name, title, false))
}

/// Returns whether the page of one repository has a document at a path.
pub(super) fn is_one(path: &str) -> bool {
    shown(path).is_some()
}

/// Returns the document at a path of the page of one repository. It is the same for all things of a kind: the
/// script takes the id of the thing from the address.
pub(super) fn at(path: &str) -> Option<String> {
    let view = shown(path)?;
    Some(document(path, view, PageScope::One).into_string())
}

/// The path of the document that a browser caches for times without a connection.
pub(super) const OFFLINE_PATH: &str = "/offline";

/// Returns the document that a browser shows if the daemon does not answer. It is the only document that the browser caches.
pub(super) fn offline() -> String {
    let made = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Not live · Provost" }
                link rel="icon" type="image/svg+xml" href=(assets::path("mark.svg"));
                link rel="stylesheet" href=(assets::path("page.css"));
            }
            body {
                header.top { p.mark { "Provost" } p #live data-live="stale" { "not live" } }
                main {
                    h1 { "The daemon does not answer" }
                    p {
                        "Nothing is shown, since nothing here would be live: requests may have been answered, or have "
                        "expired. Where the daemon runs, " code { "provost up" } " starts it, and " code { "provost web" } " opens the page."
                    }
                    p { a href="" { "Try again" } }
                }
            }
        }
    };
    made.into_string()
}

/// Returns the document at a path of the page over all repositories.
pub(super) fn over_all(path: &str) -> Option<String> {
    let view = OVER_ALL.iter().find(|it| it.path == path)?;
    Some(document(path, (view.name, view.title, view.filters), PageScope::OverAll("")).into_string())
}

/// Returns whether a request declares JSON, once. Other pages cannot send that without a preflight, which is refused.
pub(super) fn of_one(base: &str, path: &str) -> Option<String> {
    let view = shown(path)?;
    Some(document(path, view, PageScope::OverAll(base)).into_string())
}

fn document(path: &str, (name, title, filters): (&str, &str, bool), place: PageScope<'_>) -> Markup {
    let views = place.views();
    let here = format!("{}{path}", place.base());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Provost" }
                meta name="theme-color" content="#1f5f8b";
                @if place == PageScope::One {
                    link rel="manifest" href=(assets::MANIFEST_PATH);
                }
                link rel="apple-touch-icon" href=(assets::path("maskable-192.png"));
                link rel="icon" type="image/svg+xml" href=(assets::path("mark.svg"));
                link rel="stylesheet" href=(assets::path("page.css"));
                script type="module" src=(assets::path("main.js")) {}
            }
            body data-view=(name) data-version=(assets::version()) data-over=[(place != PageScope::One).then_some("all")] {
                a.skip href="#main" { "To the content" }
                header.top {
                    p.mark { "Provost" }
                    p #repository {}
                    p #live role="status" data-live="connecting" { "connecting" }
                    button #find type="button" { "Search" }
                    button #scheme type="button" { "Light or dark" }
                    button #sign-out type="button" hidden { "Sign out" }
                }
                nav #views .views aria-label="Views" {
                    ul {
                        @for (view, to) in &views {
                            li {
                                a href=(to) data-key=(view.key) aria-current=[(*to == here).then_some("page")] {
                                    (view.title)
                                }
                            }
                        }
                    }
                }
                main #main tabindex="-1" {
                    (heading(title, filters))
                    p #outcome .notice .good role="status" hidden {}
                    @if name == "tasks" {
                        section #chosen aria-label="Chosen tasks" hidden {}
                    }
                    p #news hidden { button #more-rows type="button" { "new" } }
                    div #blocks aria-busy="true" {
                        p.quiet { "Loading." }
                    }
                    p #next hidden { a { "Older" } }
                    noscript { p { "This page is made by its script. Without one, a terminal shows the same: provost" } }
                }
                (bar(&views, &here))
                svg #picture .visually-hidden aria-hidden="true" {}
                p #said .visually-hidden role="status" aria-live="polite" {}
                (palette())
                (keys(&views, place))
            }
        }
    }
}

/// The number of views in the bar at the bottom of a phone's screen.
const ON_THE_BAR: usize = 3;

/// Returns the bar at the bottom of a phone's screen: the most used views, and a button for all views.
fn bar(views: &[(&'static Listed, String)], here: &str) -> Markup {
    html! {
        nav #bar aria-label="Used most" {
            ul {
                @for (view, to) in views.iter().take(ON_THE_BAR) {
                    li { a href=(to) aria-current=[(to == here).then_some("page")] { (view.title) } }
                }
                li { button #all-views type="button" aria-expanded="false" aria-controls="views" { "More" } }
            }
        }
    }
}

/// Returns the document for a path that does not exist.
pub(super) fn nothing_there() -> String {
    let made = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Nothing here · Provost" }
                link rel="icon" type="image/svg+xml" href=(assets::path("mark.svg"));
                link rel="stylesheet" href=(assets::path("page.css"));
            }
            body {
                header.top { p.mark { "Provost" } }
                main {
                    h1 { "There is nothing at this address" }
                    p { "An approval is at /a/ and its number, a task at /t/ and its id or the beginning of it, an event at /e/ and its number." }
                    p { a href="/" { "To what needs you" } }
                }
            }
        }
    };
    made.into_string()
}

fn heading(title: &str, filters: bool) -> Markup {
    html! {
        div.heading {
            h1 { span #title { (title) } }
            p #state {}
            p #until {}
        }
        div #fault role="alert" hidden {
            p {}
            button #retry type="button" { "Try again" }
            " "
            button #copy-fault type="button" { "Copy details" }
        }
        @if filters {
            form #filter role="search" {
                label for="query" { (match title { "Search" | "Search all" => "Words", "Audit" => "Request", _ => "Filter" }) }
                input #query type="search" name="q" autocomplete="off" spellcheck="false" maxlength="200";
            }
        }
    }
}

fn palette() -> Markup {
    html! {
        dialog #palette aria-labelledby="palette-title" {
            h2 #palette-title { "Go to, or search" }
            input #palette-field type="search" role="combobox" aria-labelledby="palette-title" aria-controls="palette-ways"
                aria-expanded="false" aria-autocomplete="list" autocomplete="off" spellcheck="false" maxlength="200";
            ul #palette-ways role="listbox" aria-labelledby="palette-title" {}
            button #palette-close type="button" { "Close" }
        }
    }
}

fn keys(views: &[(&Listed, String)], place: PageScope<'_>) -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            p.field {
                label for="keys-find" { "Find a key" }
                input #keys-find type="search" autocomplete="off" spellcheck="false" maxlength="60";
            }
            p #keys-none .empty hidden { "No key does that." }
            dl {
                @for (view, _) in views {
                    div { dt { kbd { "g" } " " kbd { (view.key) } } dd { (view.title) } }
                }
                @if place != PageScope::One {
                    div { dt { kbd { "r" } } dd { "Another repository, where no row takes words" } }
                }
                div { dt { kbd { "j" } " " kbd { "k" } } dd { "Next and previous row" } }
                div { dt { kbd { "Enter" } } dd { "Open the row" } }
                div { dt { kbd { "a" } " " kbd { "d" } } dd { "Approve and deny, with a passkey" } }
                div { dt { kbd { "s" } } dd { "Put the row off for an hour, in this browser" } }
                div { dt { kbd { "." } } dd { "Commands of the row" } }
                div { dt { kbd { "n" } } dd { "Show new rows" } }
                div { dt { kbd { "r" } } dd { "Write to the agent of the row, or answer it" } }
                div { dt { kbd { "u" } } dd { "Show what an undo would bring back" } }
                div { dt { kbd { "x" } } dd { "Choose the task, to cancel several together" } }
                div { dt { kbd { "p" } } dd { "Hold the list of events, or go on" } }
                div { dt { kbd { "/" } } dd { "Filter, or search" } }
                div { dt { kbd { "Ctrl" } " " kbd { "K" } } dd { "Go to a view, or search everything" } }
                div { dt { kbd { "Esc" } } dd { "Close, or go back" } }
                div { dt { kbd { "?" } } dd { "These keys" } }
            }
            label.switch { input #keys-off type="checkbox"; " Single letters do nothing" }
            button #keys-close type="button" { "Close" }
        }
    }
}

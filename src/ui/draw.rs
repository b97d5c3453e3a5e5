//! Draws the whole screen from the model, and changes nothing.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::body::{ListLine, fitted, list_lines, list_offset, under};
use super::detail::{Detail, Part, cell};
use super::hints::{hints, tabs};
use super::merged::{Item, Section};
use super::model::{Confirm, Link, ListState, Mode, Model, SMALLEST, What};
use super::qr;
use super::screen::{KEYS, Where};
use super::text::{clock, cut, one_line, padded, width, wrapped};
use super::theme::sign;
use super::typed::Typed;
use provost_view::{Cell, Tone};

/// The buffer of a frame, into which texts are written at a place and within a number of columns.
struct Canvas<'a> {
    buffer: &'a mut Buffer,
}

impl Canvas<'_> {
    fn put(&mut self, x: u16, y: u16, columns: u16, line: &Line<'_>) {
        if y < self.buffer.area.bottom() && x < self.buffer.area.right() {
            self.buffer.set_line(x, y, line, columns);
        }
    }

    fn text(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) {
        let cut = cut(text, usize::from(columns));
        self.put(x, y, columns, &Line::styled(cut, style));
    }
}

/// Draws a frame.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut canvas = Canvas { buffer: frame.buffer_mut() };
    if model.is_too_small() {
        let (columns, rows) = SMALLEST;
        let text = format!("A larger terminal, please: {columns} columns and {rows} rows at the least.");
        for (n, line) in wrapped(&text, usize::from(area.width)).iter().enumerate() {
            let y = u16::try_from(n).unwrap_or(u16::MAX);
            canvas.text(0, y, area.width, line, Style::new());
        }
        return;
    }
    top(model, &mut canvas, area);
    let body = Rect { y: 2, height: area.height - 4, ..area };
    let (list, detail) = model.columns();
    if model.shows_list() {
        draw_list(model, &mut canvas, Rect { width: list, ..body });
    }
    if let Some(open) = &model.detail {
        draw_detail(model, open, &mut canvas, Rect { x: area.width - detail, width: detail, ..body });
        if list > 0 {
            for y in body.top()..body.bottom() {
                canvas.text(list, y, 1, "│", model.look.quiet());
            }
        }
    }
    over_the_body(model, &mut canvas, body);
    let cursor = said(model, &mut canvas, Rect { y: area.height - 2, height: 1, ..area });
    keys(model, &mut canvas, Rect { y: area.height - 1, height: 1, ..area });
    if let Some(at) = cursor {
        frame.set_cursor_position(at);
    }
}

/// Draws the tabs, and below them the place of the reader and the daemons that do not answer.
fn top(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let mut x = 0;
    for (screen, text) in tabs(model) {
        let style = if screen == model.screen { model.look.chosen() } else { Style::new() };
        canvas.text(x, 0, area.width.saturating_sub(x), &text, style);
        x = x.saturating_add(u16::try_from(width(&text)).unwrap_or(u16::MAX));
    }
    let mut spans = vec![Span::styled(format!(" {}", model.screen.title()), model.look.heading())];
    if let Some(detail) = &model.detail {
        spans.push(Span::raw(format!(" > {}", detail.title())));
        if model.known.len() > 1
            && let Some(known) = model.known.get(detail.repository)
        {
            spans.push(Span::styled(format!(" in {}", one_line(&known.repository.name)), model.look.quiet()));
        }
    }
    let filter = &model.list().filter;
    if !filter.is_empty() {
        let filter = format!("  filter: {}", one_line(filter));
        spans.push(Span::styled(filter, model.look.tone(Tone::Waiting)));
    }
    let stale = model.stale();
    let (text, tone) = match (stale.first(), model.known.len()) {
        (Some(first), _) => {
            let more =
                if stale.len() > 1 { format!(" (and {} more)", stale.len() - 1) } else { String::new() };
            (format!("! {first}{more}"), Tone::Bad)
        }
        (None, 0) => (String::new(), Tone::Quiet),
        (None, _) if model.known.iter().any(|it| it.link == Link::Asking) => ("asking".into(), Tone::Quiet),
        (None, 1) => (format!("{}  live", one_line(&model.known[0].repository.name)), Tone::Good),
        (None, count) => (format!("{count} repositories  live"), Tone::Good),
    };
    let left: usize = spans.iter().map(Span::width).sum();
    canvas.put(0, 1, area.width, &Line::from(spans));
    let room = usize::from(area.width).saturating_sub(left + 2);
    let text = cut(&text, room);
    let x = usize::from(area.width).saturating_sub(width(&text) + 1);
    let x = u16::try_from(x).unwrap_or(0);
    canvas.text(x, 1, area.width.saturating_sub(x), &text, model.look.tone(tone));
}

fn draw_list(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let list = model.list();
    if list.loaded.is_empty() && list.errors.is_empty() {
        return nothing_yet(model, canvas, area);
    }
    let mut y = area.top();
    for (repository, why) in &list.errors {
        let text = format!("! {}: {why}", name_of(model, *repository));
        canvas.text(area.x, y, area.width, &one_line(&text), model.look.tone(Tone::Bad));
        y += 1;
    }
    let rows = area.bottom().saturating_sub(y);
    let lines = list_lines(list);
    let from = list_offset(&lines, list.at, usize::from(rows));
    let widths: Vec<Vec<usize>> =
        list.merged.sections.iter().map(|it| widths_of(model, it, area.width)).collect();
    for line in lines.iter().skip(from).take(usize::from(rows)) {
        let row = Rect { y, height: 1, ..area };
        draw_list_line(model, list, *line, &widths, canvas, row);
        y += 1;
    }
}

/// Draws a text in place of a list that has not come yet.
fn nothing_yet(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let text = match (model.known.is_empty(), model.searching) {
        (_, true) => "Looking for the daemons of your repositories …",
        (true, false) => {
            "No daemon of yours runs. Start one in a repository with `provost up`; it appears here by itself."
        }
        (false, false) if model.known.iter().all(|it| matches!(it.link, Link::Stale { .. })) => {
            "No daemon answers; what to do about it stands above. What it has appears here by itself."
        }
        (false, false) => "Asking …",
    };
    for (line, y) in wrapped(text, usize::from(area.width.saturating_sub(2))).iter().zip(area.top()..) {
        canvas.text(area.x + 1, y, area.width.saturating_sub(2), line, model.look.quiet());
    }
}

fn name_of(model: &Model, repository: usize) -> String {
    model.known.get(repository).map(|it| one_line(&it.repository.name)).unwrap_or_default()
}

/// Checks whether rows name their repository.
fn names_repositories(model: &Model) -> bool {
    model.known.len() > 1
}

/// Returns the cells of a row in the order of its columns; the repository's name first, where there are several.
fn cells_of(model: &Model, item: &Item) -> Vec<(String, Style)> {
    let name = names_repositories(model).then(|| (name_of(model, item.repository), Style::new()));
    let cells = item.row.cells.iter().map(|it| match it {
        // A line above the row names the folders and files that contain it.
        Cell::Place { name, .. } => (one_line(name), Style::new()),
        it => {
            let (text, style) = cell(it, model.look, model.now_ms);
            (one_line(&text), style)
        }
    });
    name.into_iter().chain(cells).collect()
}

fn columns_of(model: &Model, section: &Section) -> Vec<&'static str> {
    let name = names_repositories(model).then_some("Repository");
    name.into_iter().chain(section.columns.iter().copied()).collect()
}

fn widths_of(model: &Model, section: &Section, columns: u16) -> Vec<usize> {
    let mut wanted: Vec<usize> = columns_of(model, section).iter().map(|it| width(it)).collect();
    for item in &section.items {
        for (wanted, (text, _)) in wanted.iter_mut().zip(cells_of(model, item)) {
            *wanted = (*wanted).max(width(&text));
        }
    }
    fitted(&wanted, usize::from(columns.saturating_sub(2)))
}

fn draw_list_line(
    model: &Model,
    list: &ListState,
    line: ListLine,
    widths: &[Vec<usize>],
    canvas: &mut Canvas<'_>,
    area: Rect,
) {
    let look = model.look;
    let section = |n: usize| &list.merged.sections[n];
    let mut put = |text: String, style: Style| canvas.text(area.x, area.y, area.width, &text, style);
    match line {
        ListLine::Blank => {}
        ListLine::Notice(n) => {
            let (repository, notice) = &list.merged.notices[n];
            let of = match names_repositories(model) {
                true => format!("{}: ", name_of(model, *repository)),
                false => String::new(),
            };
            let text = format!("{} {of}{}", sign(notice.tone), one_line(&notice.text));
            put(text, look.tone(notice.tone));
        }
        ListLine::Heading(n) => put(section(n).heading(), look.heading()),
        ListLine::Columns(n) => {
            let names = columns_of(model, section(n));
            let names: Vec<String> =
                names.iter().zip(&widths[n]).map(|(name, width)| padded(name, *width)).collect();
            put(format!("  {}", names.join("  ")), look.quiet());
        }
        ListLine::Empty(n) => {
            let empty = &section(n).empty;
            let last = empty.last.as_ref().map(|(what, at)| format!(" {what}: {}.", clock(at, model.now_ms)));
            put(format!("  {}{}", one_line(&empty.says), last.unwrap_or_default()), look.quiet());
        }
        ListLine::EmptyCommand(n) => {
            let command = section(n).empty.command.as_deref().unwrap_or_default();
            put(format!("  try: {}", one_line(command)), look.quiet());
        }
        ListLine::More(n) => {
            put(format!("  {} more; a filter finds them: /", section(n).more), look.quiet());
        }
        ListLine::Under(at, depth) => {
            let name = list.merged.item(at).and_then(|it| under(it).get(depth)).map_or("", String::as_str);
            put(format!("  {}{}", "  ".repeat(depth), one_line(name)), look.quiet());
        }
        ListLine::Item(n, at) => {
            let Some(item) = list.merged.item(at) else { return };
            let is_chosen = at == list.at;
            let mut spans = vec![Span::raw(if is_chosen { "> " } else { "  " })];
            for ((text, style), width) in cells_of(model, item).into_iter().zip(&widths[n]) {
                spans.push(Span::styled(padded(&text, *width), style));
                spans.push(Span::raw("  "));
            }
            let is_stale = model.known.get(item.repository).is_some_and(|it| it.link != Link::Live);
            let mut line = Line::from(spans);
            if is_stale {
                line = line.patch_style(look.quiet());
            }
            if is_chosen {
                line = line.patch_style(look.chosen());
            }
            canvas.put(area.x, area.y, area.width, &line);
        }
    }
}

fn draw_detail(model: &Model, detail: &Detail, canvas: &mut Canvas<'_>, area: Rect) {
    let mut x = area.x;
    if detail.is_task() {
        for part in Part::ALL {
            let text = format!(" {} ", part.title());
            let style = if part == detail.part { model.look.chosen() } else { Style::new() };
            canvas.text(x, area.y, area.right().saturating_sub(x), &text, style);
            x = x.saturating_add(u16::try_from(width(&text)).unwrap_or(u16::MAX));
        }
    }
    let rows = usize::from(area.height.saturating_sub(1));
    let left = detail.lines.len().saturating_sub(detail.scroll + rows);
    let place = match (detail.scroll, left) {
        (0, 0) => String::new(),
        (above, 0) => format!("{above} lines above "),
        (_, below) => format!("{below} lines below "),
    };
    let at = area.right().saturating_sub(u16::try_from(width(&place)).unwrap_or(0)).max(x);
    canvas.text(at, area.y, area.right().saturating_sub(at), &place, model.look.quiet());
    let lines = detail.lines.iter().skip(detail.scroll).take(rows);
    for (line, y) in lines.zip(area.top() + 1..) {
        canvas.put(area.x, y, area.width, line);
    }
}

/// Draws the content that covers list and detail: keys, commands to copy, and the address for a passkey.
fn over_the_body(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let look = model.look;
    let lines: Vec<Line<'static>> = match &model.mode {
        Mode::Help(typed, scroll) => {
            let rows = usize::from(area.height);
            help_lines(model, &typed.text()).into_iter().skip(*scroll).take(rows).collect()
        }
        Mode::Menu(commands, at) => {
            let heading = Line::styled("Commands about it; Enter copies one", look.heading());
            let row = |(n, (does, line)): (usize, &(String, String))| {
                let style = if n == *at { look.chosen() } else { Style::new() };
                Line::styled(format!("  {}: {}", one_line(does), one_line(line)), style)
            };
            std::iter::once(heading).chain(commands.iter().enumerate().map(row)).collect()
        }
        Mode::Passkey { repository, approval } => passkey_lines(model, *repository, *approval, area),
        _ => return,
    };
    let blank = " ".repeat(usize::from(area.width));
    for y in area.top()..area.bottom() {
        canvas.text(area.x, y, area.width, &blank, Style::reset());
    }
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        canvas.put(area.x + 1, y, area.width.saturating_sub(1), line);
    }
}

fn help_lines(model: &Model, filter: &str) -> Vec<Line<'static>> {
    let is_here = |at: Where| match at {
        Where::Anywhere => true,
        Where::List => model.detail.is_none(),
        Where::Detail => model.detail.is_some(),
        Where::Approval => model.approval().is_some(),
        Where::Question => {
            matches!(model.subject(), Some((_, super::keys::Subject::Question(_))))
        }
        Where::Agents => !model.told().1.is_empty(),
        Where::Task => matches!(model.subject(), Some((_, super::keys::Subject::Task(_)))),
        Where::TaskDetail => model.detail.as_ref().is_some_and(Detail::is_task),
    };
    let filter = filter.to_lowercase();
    let passes = |keys: &str, does: &str| format!("{keys} {does}").to_lowercase().contains(&filter);
    let row = |keys: &str, does: &str| {
        Line::from(vec![Span::styled(padded(keys, 26), model.look.key()), Span::raw(does.to_owned())])
    };
    let mut lines = vec![Line::styled(format!("Keys here: {}", model.screen.title()), model.look.heading())];
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        KEYS.iter().filter(|it| passes(it.keys, it.does)).partition(|it| is_here(it.at));
    lines.extend(here.iter().map(|it| row(it.keys, it.does)));
    if !elsewhere.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled("Keys elsewhere", model.look.heading()));
        lines.extend(elsewhere.iter().map(|it| row(it.keys, it.does)));
    }
    let commands = super::screen::COMMANDS.iter().filter(|it| passes(it.0, it.2));
    lines.push(Line::default());
    lines.push(Line::styled("Commands, behind :", model.look.heading()));
    lines.extend(commands.map(|it| row(format!("{} {}", it.0, it.1).trim_end(), it.2)));
    lines
}

/// Returns the lines that lead to the page where a passkey answers: the address as text and as a picture, or the command
/// that opens the page.
fn passkey_lines(model: &Model, repository: usize, approval: u64, area: Rect) -> Vec<Line<'static>> {
    let look = model.look;
    let columns = usize::from(area.width.saturating_sub(2));
    let title = format!("Approval {approval}: only an answer that is signed with a passkey counts.");
    let mut lines: Vec<Line<'static>> =
        wrapped(&title, columns).into_iter().map(|it| Line::styled(it, look.heading())).collect();
    let Some(address) = model.passkey_address(repository, approval) else {
        let text = "The page is not open. Press o to open it, or type this at a terminal:";
        lines.extend(wrapped(text, columns).into_iter().map(Line::raw));
        lines.push(Line::raw(format!("  {}", one_line(&model.web_command(repository)))));
        return lines;
    };
    lines.push(Line::styled(one_line(&address), look.link()));
    let waits = Line::styled("Waiting for the answer …", look.tone(Tone::Waiting));
    if is_of_this_machine(&address) {
        // A phone that reads this address from a picture would look for the page on itself.
        let text = "This address is of this machine alone. What a phone needs: provost web setup";
        lines.extend(wrapped(text, columns).into_iter().map(|it| Line::styled(it, look.quiet())));
        lines.push(waits);
        return lines;
    }
    let picture = qr::lines(&address, !look.colour && look.light).unwrap_or_default();
    let room = usize::from(area.height).saturating_sub(lines.len() + 1);
    if picture.len() <= room {
        // The picture has its own colours, because a terminal can show the others differently.
        let ink = match look.colour {
            true => Style::new().fg(Color::Rgb(255, 255, 255)).bg(Color::Rgb(0, 0, 0)),
            false => Style::new().remove_modifier(Modifier::all()),
        };
        lines.extend(picture.into_iter().map(|it| Line::styled(it, ink)));
    } else {
        let rows = area.height + 4 + u16::try_from(picture.len() - room).unwrap_or(0);
        lines.push(Line::styled(format!("(a picture of it needs {rows} rows)"), look.quiet()));
    }
    lines.push(waits);
    lines
}

/// Checks whether a page's address leads to the machine of the browser that opens it.
fn is_of_this_machine(address: &str) -> bool {
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]"
}

/// Draws the line of typed texts, questions and news; returns the cursor's place, if text is typed.
fn said(model: &Model, canvas: &mut Canvas<'_>, area: Rect) -> Option<(u16, u16)> {
    let look = model.look;
    let prompt = |text: &str, typed: &Typed, canvas: &mut Canvas<'_>| {
        let label = width(text);
        let room = usize::from(area.width).saturating_sub(label + 1);
        // Of a long line the end is shown, where the person types.
        let (before, whole) = (typed.before(), typed.text());
        let skipped = before.chars().count().saturating_sub(room.saturating_sub(1));
        let seen: String = whole.chars().skip(skipped).collect();
        let spans = vec![Span::styled(text.to_owned(), look.key()), Span::raw(super::text::shown(&seen))];
        canvas.put(area.x, area.y, area.width, &Line::from(spans));
        let seen_before: String = before.chars().skip(skipped).collect();
        u16::try_from(label + width(&seen_before)).ok().map(|x| (x.min(area.width - 1), area.y))
    };
    match &model.mode {
        Mode::Typing(What::Command, typed) => {
            let at = prompt(":", typed, canvas);
            candidates(model, typed, canvas, area);
            at
        }
        Mode::Typing(What::Filter, typed) => prompt("/", typed, canvas),
        Mode::Typing(What::Reason { approval, .. }, typed) => {
            prompt(&format!("deny {approval}, because: "), typed, canvas)
        }
        Mode::Typing(What::Note { approval, .. }, typed) => {
            prompt(&format!("approve {approval}, with this note: "), typed, canvas)
        }
        Mode::Typing(What::Answer { question, .. }, typed) => {
            prompt(&format!("answer to question {question}: "), typed, canvas)
        }
        Mode::Typing(What::Tell { to, .. }, typed) => {
            prompt(&format!("to {}: ", super::telling::named(to)), typed, canvas)
        }
        Mode::Help(typed, _) => prompt("keys with: ", typed, canvas),
        Mode::Confirm(confirm) => {
            canvas.text(area.x, area.y, area.width, &question(model, confirm), look.tone(Tone::Bad));
            None
        }
        _ => {
            if let Some((text, tone, _)) = &model.said {
                let text = format!(" {} {text}", sign(*tone));
                canvas.text(area.x, area.y, area.width, &text, look.tone(*tone));
            }
            None
        }
    }
}

fn question(model: &Model, confirm: &Confirm) -> String {
    match confirm {
        Confirm::Approve { approval, .. } => {
            let detail = model.detail.as_ref();
            if detail.is_none_or(|it| it.digest.is_none()) {
                return format!(" approve {approval}? The whole request is still being read.");
            }
            let risk = detail.and_then(|it| it.shown.as_ref()?.state.as_ref()).map(|it| it.word.clone());
            let risk = risk.map(|it| format!(", {it}")).unwrap_or_default();
            let rest = detail.map_or(0, |it| {
                it.lines.len().saturating_sub(it.scroll + model.body_rows().saturating_sub(1))
            });
            let rest = if rest > 0 { format!(", {rest} lines of it below") } else { String::new() };
            format!(" approve {approval}{}{rest}? The answer cannot be taken back.", one_line(&risk))
        }
        Confirm::Cancel { task, .. } => {
            format!(" end task {}? What its worker does is lost.", one_line(task))
        }
    }
}

fn candidates(model: &Model, typed: &Typed, canvas: &mut Canvas<'_>, area: Rect) {
    let words: Vec<String> = Model::candidates(typed)
        .iter()
        .map(|it| if it.1.is_empty() { it.0.to_owned() } else { format!("{} {}", it.0, it.1) })
        .collect();
    let x = area.x + 18.max(u16::try_from(width(&typed.text()) + 4).unwrap_or(18));
    canvas.text(x, area.y, area.width.saturating_sub(x), &words.join("  "), model.look.quiet());
}

fn keys(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    // Their line is taken while text is typed or a question is open: an error stands here until the next key.
    if matches!(model.mode, Mode::Typing(..) | Mode::Confirm(_))
        && let Some((text, Tone::Bad, _)) = &model.said
    {
        return canvas.text(area.x, area.y, area.width, &format!(" ! {text}"), model.look.tone(Tone::Bad));
    }
    let spans: Vec<Span<'static>> = hints(model)
        .into_iter()
        .flat_map(|(key, does, _)| [Span::styled(key, model.look.key()), Span::raw(format!(" {does}  "))])
        .collect();
    canvas.put(area.x, area.y, area.width, &Line::from(spans));
}

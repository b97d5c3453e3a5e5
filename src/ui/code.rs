//! Lines of a difference in colours: their signs tell added from removed lines, and marks of the view tell tokens and
//! changed words. A colour only repeats the text.

use ratatui::style::Style;
use ratatui::text::Span;

use super::Theme;
use super::text::{shown, wrapped};
use provost_view::{DiffLine, LineMarks, Piece, pieces};

/// Draws a line, with its sign, in as many lines of at most `columns` columns as it needs.
pub(crate) fn drawn(
    line: &DiffLine,
    marks: Option<&LineMarks>,
    look: Theme,
    columns: usize,
) -> Vec<Vec<Span<'static>>> {
    let base = look.difference(line.is);
    let sign = match line.is {
        "add" => "+",
        "remove" => "-",
        "same" => " ",
        _ => "",
    };
    let mut parts = vec![(sign.to_owned(), base)];
    parts.extend(pieces(&line.text, marks).iter().map(|it| (shown(it.text), style(it, base, look))));
    let text: String = parts.iter().map(|(text, _)| text.as_str()).collect();
    let mut source = parts.iter().flat_map(|(text, style)| text.chars().map(move |c| (c, *style)));
    let in_style = |piece: &String| {
        let mut spans: Vec<(String, Style)> = Vec::new();
        for c in piece.chars() {
            // Blanks are left out where a line is wrapped.
            let style = source.find(|(other, _)| *other == c).map_or(base, |it| it.1);
            match spans.last_mut() {
                Some((text, last)) if *last == style => text.push(c),
                _ => spans.push((c.to_string(), style)),
            }
        }
        spans.into_iter().map(|(text, style)| Span::styled(text, style)).collect()
    };
    wrapped(&text, columns).iter().map(in_style).collect()
}

fn style(piece: &Piece<'_>, base: Style, look: Theme) -> Style {
    let style = piece.kind.map_or(base, |kind| base.patch(look.token(kind)));
    if piece.is_changed { look.changed(style) } else { style }
}

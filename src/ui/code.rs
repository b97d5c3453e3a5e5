//! Lines of a difference in colours: their signs say what comes and goes, and marks of the view what stands in them. A colour only
//! repeats what the text says.

use ratatui::style::Style;
use ratatui::text::Span;

use super::Look;
use super::text::{shown, wrapped};
use provost_view::{DiffLine, LineMarks, Piece, pieces};

/// The lines of at most so many columns in which a line is drawn, its sign included.
pub(crate) fn drawn(
    line: &DiffLine,
    marks: Option<&LineMarks>,
    look: Look,
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
            // Where a line is parted, blanks are left out.
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

fn style(piece: &Piece<'_>, base: Style, look: Look) -> Style {
    let style = piece.kind.map_or(base, |kind| base.patch(look.token(kind)));
    if piece.is_changed { look.changed(style) } else { style }
}

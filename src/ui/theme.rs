//! Colours and styles: of the terminal's own palette, or none. A colour only repeats a word and a sign.

use ratatui::style::{Color, Modifier, Style};

use provost_view::{TokenKind, Tone};

/// The colours of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Theme {
    /// Whether colours are used; `NO_COLOR` switches them off.
    pub colour: bool,
    /// Whether the terminal's background is light: then other colours of its palette are readable.
    pub light: bool,
}

impl Theme {
    /// Returns the look that the environment asks for; `light`, which the person gave, takes precedence.
    pub fn of(environment: impl Fn(&str) -> Option<String>, light: Option<bool>) -> Self {
        let no_colour = environment("NO_COLOR").is_some_and(|it| !it.is_empty());
        let dumb = environment("TERM").is_some_and(|it| it == "dumb");
        // `COLORFGBG` is "FOREGROUND;BACKGROUND", in numbers of the palette: 7 and 9 to 15 are light.
        let ground = environment("COLORFGBG").and_then(|it| it.rsplit(';').next()?.parse::<u8>().ok());
        let guessed = ground.is_some_and(|it| it == 7 || (9..=15).contains(&it));
        Self { colour: !no_colour && !dumb, light: light.unwrap_or(guessed) }
    }

    fn in_colour(self, dark: Color, light: Color) -> Style {
        match (self.colour, self.light) {
            (false, _) => Style::new(),
            (true, false) => Style::new().fg(dark),
            (true, true) => Style::new().fg(light),
        }
    }

    /// Returns the style of a state.
    pub(crate) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Quiet => self.quiet(),
            Tone::Moving => self.in_colour(Color::Cyan, Color::Blue),
            Tone::Waiting => self.in_colour(Color::Yellow, Color::Magenta).add_modifier(Modifier::BOLD),
            Tone::Good => self.in_colour(Color::Green, Color::Green),
            Tone::Bad => self.in_colour(Color::LightRed, Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// The style of secondary text: dim and not grey, since a grey of the palette may be the background's.
    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The style of a heading.
    pub(crate) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The style of the chosen row.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of an agent's words.
    pub(crate) fn said(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    /// The style of a link to another view.
    pub(crate) fn link(self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED)
    }

    /// The style of a key in a list of keys.
    pub(crate) fn key(self) -> Style {
        self.in_colour(Color::Cyan, Color::Blue).add_modifier(Modifier::BOLD)
    }

    /// The style of a line of a difference, by its kind.
    pub(crate) fn difference(self, is: &str) -> Style {
        match is {
            "add" => self.in_colour(Color::Green, Color::Green),
            "remove" => self.in_colour(Color::LightRed, Color::Red),
            "hunk" => self.in_colour(Color::Cyan, Color::Blue),
            "head" => self.quiet(),
            _ => Style::new(),
        }
    }
}

impl Theme {
    /// The style of a token, beside the colour that tells added from removed lines.
    pub(crate) fn token(self, kind: TokenKind) -> Style {
        match (self.colour, kind) {
            (false, _) => Style::new(),
            (true, TokenKind::Comment) => Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC),
            (true, TokenKind::Text) => self.in_colour(Color::Yellow, Color::Magenta),
            (true, TokenKind::Number) => self.in_colour(Color::LightMagenta, Color::Magenta),
            (true, TokenKind::Word) => self.in_colour(Color::LightBlue, Color::Blue),
            (true, TokenKind::Type) => self.in_colour(Color::Cyan, Color::Blue),
            (true, TokenKind::Name) => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// Returns the style of a changed part of a line.
    pub(crate) fn changed(self, style: Style) -> Style {
        match self.colour {
            true => style.add_modifier(Modifier::UNDERLINED),
            false => style,
        }
    }
}

/// Returns the sign before a state.
pub(crate) fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Quiet => "·",
        Tone::Moving => "»",
        Tone::Waiting => "?",
        Tone::Good => "+",
        Tone::Bad => "!",
    }
}

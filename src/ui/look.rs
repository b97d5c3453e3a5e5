//! How things look: the colours of the terminal's own palette, or none. A colour only repeats what a word and a sign say.

use ratatui::style::{Color, Modifier, Style};

use provost_view::{TokenKind, Tone};

/// How the terminal is drawn upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Whether there are colours; `NO_COLOR` takes them away.
    pub colour: bool,
    /// Whether the terminal's ground is light: then other colours of its palette can be read.
    pub light: bool,
}

impl Look {
    /// The look that the environment asks for; a theme that was typed counts more.
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

    /// The style of a state.
    pub(crate) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Quiet => self.quiet(),
            Tone::Moving => self.in_colour(Color::Cyan, Color::Blue),
            Tone::Waiting => self.in_colour(Color::Yellow, Color::Magenta).add_modifier(Modifier::BOLD),
            Tone::Good => self.in_colour(Color::Green, Color::Green),
            Tone::Bad => self.in_colour(Color::LightRed, Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// What is read last. Dim, and not grey: a grey of the palette may be the ground's.
    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A heading.
    pub(crate) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The row at which the reader is.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Words of an agent.
    pub(crate) fn said(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    /// What leads to another view.
    pub(crate) fn link(self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED)
    }

    /// A key in a list of keys.
    pub(crate) fn key(self) -> Style {
        self.in_colour(Color::Cyan, Color::Blue).add_modifier(Modifier::BOLD)
    }

    /// A line of a difference, by its kind.
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

impl Look {
    /// What stands out in a line, besides the colour that says whether it comes or goes.
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

    /// The same, of what is different from the line in whose place it stands.
    pub(crate) fn changed(self, style: Style) -> Style {
        match self.colour {
            true => style.add_modifier(Modifier::UNDERLINED),
            false => style,
        }
    }
}

/// The sign before a state.
pub(crate) fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Quiet => "·",
        Tone::Moving => "»",
        Tone::Waiting => "?",
        Tone::Good => "+",
        Tone::Bad => "!",
    }
}

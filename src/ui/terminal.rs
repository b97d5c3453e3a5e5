//! Takes the terminal over, and gives it back as it was at every end, a panic and a signal included.

use std::io::{self, Stdout, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::Rect;

use super::Model;
use super::draw::draw;

/// Most bytes that are put on the clipboard: terminals take no more than some tens of thousands.
const COPY_BYTES_MAX: usize = 64 << 10;

/// Whether the screen has the terminal at the moment.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, until this is dropped.
pub(super) struct TakenTerminal(Terminal<CrosstermBackend<Stdout>>);

impl TakenTerminal {
    /// Takes the terminal over.
    pub(super) fn take(mouse: bool) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // A panic in any thread ends the program: the other threads would go on drawing over the shell.
            let was_taken = TAKEN.load(Ordering::SeqCst);
            give_back();
            before(info);
            if was_taken {
                std::process::exit(101);
            }
        }));
        TAKEN.store(true, Ordering::SeqCst);
        let taken = Self::prepared(mouse);
        if taken.is_err() {
            give_back();
        }
        taken
    }

    fn prepared(mouse: bool) -> io::Result<Self> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        if mouse {
            execute!(io::stdout(), EnableMouseCapture)?;
        }
        Terminal::new(CrosstermBackend::new(io::stdout())).map(Self)
    }

    /// Draws the changes, in one piece where the terminal supports that.
    pub(super) fn draw(&mut self, model: &Model) -> io::Result<()> {
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        self.0.draw(|frame| draw(model, frame))?;
        execute!(io::stdout(), EndSynchronizedUpdate)
    }

    /// Returns its columns and rows.
    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        self.0.size().map(|it| (it.width, it.height))
    }

    /// Has the whole next frame drawn. `Terminal::clear` would ask for the cursor's position, and the thread that
    /// reads keys would get the answer.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        let (width, height) = self.size()?;
        self.0.resize(Rect { x: 0, y: 0, width, height })
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, once. Errors are ignored: they occur when the terminal has gone.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _gone = execute!(
        out,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _gone = disable_raw_mode();
}

/// Puts a text on the clipboard, where the terminal lets programs do that (OSC 52).
pub(super) fn copy(text: &str) -> io::Result<()> {
    let mut end = text.len().min(COPY_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = io::stdout().lock();
    write!(out, "\x1b]52;c;{}\x07", STANDARD.encode(&text[..end]))?;
    out.flush()
}

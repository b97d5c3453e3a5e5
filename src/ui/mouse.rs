//! The wheel, and clicks on rows, tabs and keys.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::body::{ListLine, list_lines, list_offset};
use super::hints::{hint_at, tab_at};
use super::keys::moved;
use super::model::{Mode, Model};

impl Model {
    pub(crate) fn take_mouse(&mut self, mouse: MouseEvent) {
        if !matches!(self.mode, Mode::Normal) {
            return;
        }
        match mouse.kind {
            MouseEventKind::ScrollDown => self.wheel(mouse, 3),
            MouseEventKind::ScrollUp => self.wheel(mouse, -3),
            MouseEventKind::Down(MouseButton::Left) => self.click(mouse.column, mouse.row),
            _ => {}
        }
    }

    fn wheel(&mut self, mouse: MouseEvent, by: isize) {
        let over_list = self.is_wide() && mouse.column < self.columns().0;
        if over_list && self.detail.is_some() {
            let list = self.list_mut();
            list.at = moved(list.at, by, list.merged.len().saturating_sub(1));
        } else {
            self.move_by(by);
        }
    }

    fn click(&mut self, column: u16, row: u16) {
        if row == 0 {
            if let Some(screen) = tab_at(self, column) {
                self.go(screen);
            }
        } else if row + 1 == self.size.1 {
            if let Some(key) = hint_at(self, column) {
                self.take_key(key);
            }
        } else if row >= 2 && column < self.columns().0 {
            let lines = list_lines(self.list());
            let at = list_offset(&lines, self.list().at, self.body_rows()) + usize::from(row - 2);
            if let Some(ListLine::Item(_, item)) = lines.get(at) {
                let (item, was) = (*item, self.list().at);
                self.list_mut().at = item;
                if was == item || self.detail.is_some() {
                    self.open();
                }
            }
        }
    }
}

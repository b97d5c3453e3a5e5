//! The text of a Swift file as its grammar sees it: text that would confuse the grammar is blanked out, or gets a form that it knows.
//!
//! One pass over the bytes. No text changes its position: each change replaces bytes by as many others. Symbols, names and
//! signatures are read from the file itself.

/// The longest run of `#` that the grammar is shown. Its scanner looks at the whole run from each of its places, in one step that no time limit ends.
const MARKS_MAX: usize = 64;

/// An open bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Round,
    Square,
    Curly,
    /// The bracket of a `switch`, in which compiler conditions stand between the cases.
    Switch,
    /// `\(` within a text: how many `#` surround the text, and whether it may have several lines.
    Inserted {
        marks: usize,
        lines: bool,
    },
}

/// A branch of `#if`: how many brackets were open at its beginning, and whether branches are left out since the first one did not
/// close its own.
struct Branch {
    depth: usize,
    left_out_from: Option<usize>,
}

struct Mask<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The changed text; made at the first change.
    shown: Option<Vec<u8>>,
    open: Vec<Open>,
    branches: Vec<Branch>,
    /// The last byte that is no blank and in no comment.
    before: u8,
    /// The last word; empty once another token follows it.
    word: (usize, usize),
    /// Whether a `switch` was read whose bracket has not come yet.
    switch: bool,
    /// Whether the position is within the pattern of a `case`.
    case: bool,
    /// The beginning of the comment at the end of the present line.
    remark: Option<usize>,
    /// Whether the position is behind `associatedtype`, whose conditions the grammar accepts only on one line.
    associated: bool,
}

/// What the grammar is shown instead of a file; none where it can be shown the file itself.
pub(crate) fn mask(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut mask = Mask {
        bytes,
        at: 0,
        shown: None,
        open: Vec::new(),
        branches: Vec::new(),
        before: b'\n',
        word: (0, 0),
        switch: false,
        case: false,
        remark: None,
        associated: false,
    };
    while mask.at < bytes.len() {
        mask.step();
    }
    mask.shown
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'`') || byte >= 0x80
}

impl Mask<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    fn last_word(&self) -> &[u8] {
        self.bytes.get(self.word.0..self.word.1).unwrap_or_default()
    }

    fn put(&mut self, at: usize, text: &[u8]) {
        let shown = self.shown.get_or_insert_with(|| self.bytes.to_vec());
        if let Some(place) = shown.get_mut(at..at + text.len()) {
            place.copy_from_slice(text);
        }
    }

    /// Blanks bytes, but for the ends of lines.
    fn blank(&mut self, from: usize, to: usize) {
        let shown = self.shown.get_or_insert_with(|| self.bytes.to_vec());
        let to = to.min(shown.len());
        for byte in shown.get_mut(from..to).into_iter().flatten() {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b' ';
            }
        }
    }

    /// The place of the next byte that is no blank, from a place on.
    fn next(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().position(|it| !it.is_ascii_whitespace()).unwrap_or(rest.len())
    }

    fn word_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().position(|it| !is_word(*it)).unwrap_or(rest.len())
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len())
    }

    /// The place behind the bracket that closes the one at a place, on one line of few bytes.
    fn closed(&self, from: usize, pair: (u8, u8)) -> Option<usize> {
        const LOOKED_AT: usize = 200;
        let mut depth = 0_i32;
        for (nth, byte) in self.bytes.get(from..)?.iter().take(LOOKED_AT).enumerate() {
            match *byte {
                it if it == pair.0 => depth += 1,
                it if it == pair.1 && self.byte(from + nth - usize::from(nth > 0)) != b'-' => depth -= 1,
                b'\n' | b'{' | b'}' | b'"' | b';' => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(from + nth + 1);
            }
        }
        None
    }

    fn starts(&self, text: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(text)
    }

    fn step(&mut self) {
        let byte = self.byte(self.at);
        match byte {
            b'/' if self.starts(b"//") => {
                self.remark = Some(self.at);
                self.at = self.line_end(self.at);
            }
            b'/' if self.starts(b"/*") => self.comment(),
            b'"' => self.text(0),
            b'#' => self.number_sign(),
            b'\n' => self.line_ends(),
            _ if byte.is_ascii_whitespace() => self.at += 1,
            _ if is_word(byte) => self.a_word(),
            _ => self.mark(byte),
        }
    }

    /// Comments of Swift lie within each other.
    fn comment(&mut self) {
        let mut depth = 0;
        while self.at < self.bytes.len() {
            if self.starts(b"/*") {
                depth += 1;
                self.at += 2;
            } else if self.starts(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }

    /// A text from its opening quotation mark on, with so many `#` around it.
    fn text(&mut self, marks: usize) {
        let lines = self.starts(b"\"\"\"");
        self.at += if lines { 3 } else { 1 };
        self.rest_of_text(marks, lines);
    }

    /// The rest of a text, up to its end or to something inserted in it.
    fn rest_of_text(&mut self, marks: usize, lines: bool) {
        let bytes = self.bytes;
        let has_marks = |at: usize| (0..marks).all(|nth| bytes.get(at + nth) == Some(&b'#'));
        let quotes: &[u8] = if lines { b"\"\"\"" } else { b"\"" };
        while self.at < self.bytes.len() {
            let byte = self.byte(self.at);
            if byte == b'\n' && !lines {
                return;
            }
            if byte == b'\\' && has_marks(self.at + 1) {
                let behind = self.at + 1 + marks;
                if self.byte(behind) == b'(' {
                    self.at = behind + 1;
                    self.open.push(Open::Inserted { marks, lines });
                    self.before = b'(';
                    self.word = (0, 0);
                    return;
                }
                self.at = if self.byte(behind) == b'\n' { behind } else { behind + 1 };
            } else if self.bytes[self.at..].starts_with(quotes) && has_marks(self.at + quotes.len()) {
                self.at += quotes.len() + marks;
                self.before = b'"';
                self.word = (0, 0);
                return;
            } else {
                self.at += 1;
            }
        }
    }

    /// A text with marks around it, a pattern, an order to the compiler, or a macro.
    fn number_sign(&mut self) {
        let marks = self.bytes[self.at..].iter().take_while(|it| **it == b'#').count();
        if marks > MARKS_MAX {
            self.blank(self.at, self.at + marks);
            self.at += marks;
            return;
        }
        if self.byte(self.at + marks) == b'"' {
            self.at += marks;
            return self.text(marks);
        }
        if self.byte(self.at + marks) == b'/' {
            let end: Vec<u8> = [b"/".as_slice(), &b"#".repeat(marks)].concat();
            let rest = &self.bytes[self.at + marks + 1..];
            let found = rest.windows(end.len()).position(|it| it == end);
            self.at = found.map_or(self.bytes.len(), |it| self.at + marks + 1 + it + end.len());
            self.before = b'/';
            return;
        }
        let end = self.word_end(self.at + 1);
        match &self.bytes[self.at + 1..end] {
            b"if" => self.condition(true),
            b"elseif" | b"else" => self.condition(false),
            b"endif" => self.condition_ends(),
            _ => {
                self.before = b'#';
                // Of several signs, only the last one may begin a word.
                self.at += marks.saturating_sub(1).max(1);
            }
        }
    }

    /// A line of a condition, which the grammar takes between declarations and statements alone.
    fn leave_out_line(&mut self) {
        let end = self.line_end(self.at);
        if matches!(self.open.last(), Some(Open::Round | Open::Square | Open::Switch)) {
            self.blank(self.at, end);
        }
        self.at = end;
        self.word = (0, 0);
    }

    fn condition(&mut self, begins: bool) {
        if begins {
            self.branches.push(Branch { depth: self.open.len(), left_out_from: None });
        } else if let Some(branch) = self.branches.last_mut()
            && branch.depth != self.open.len()
            && branch.left_out_from.is_none()
        {
            branch.left_out_from = Some(self.at);
            return self.leave_out_branches();
        }
        self.leave_out_line();
    }

    /// Leaves out the branches behind one that has left a bracket open.
    fn leave_out_branches(&mut self) {
        let (from, mut depth) = (self.at, 0);
        while self.at < self.bytes.len() {
            let line = self.bytes[self.at..self.line_end(self.at)].trim_ascii_start();
            depth += i32::from(line.starts_with(b"#if"));
            if line.starts_with(b"#endif") {
                if depth == 0 {
                    break;
                }
                depth -= 1;
            }
            self.at = self.line_end(self.at) + 1;
        }
        self.at = self.at.min(self.bytes.len());
        self.blank(from, self.at);
        self.at = self.next(self.at);
    }

    fn condition_ends(&mut self) {
        let branch = self.branches.pop();
        // With its other branches, the condition itself is gone.
        if branch.is_some_and(|it| it.left_out_from.is_some()) {
            let end = self.line_end(self.at);
            self.blank(self.at, end);
        }
        self.leave_out_line();
    }

    /// Makes one line of two, without the comment between them.
    fn join_lines(&mut self, remark: Option<usize>, to: usize) {
        // The end of a line may be two bytes.
        let end = self.at - usize::from(self.at > 0 && self.byte(self.at - 1) == b'\r');
        for at in remark.unwrap_or(end)..to {
            self.put(at, b" ");
        }
        self.at = to;
    }

    fn line_ends(&mut self) {
        let remark = self.remark.take();
        self.case &= self.before == b',';
        if self.associated {
            if self.before == b',' || self.last_word() == b"where" {
                return self.join_lines(remark, self.at + 1);
            }
            self.associated = false;
        }
        // A line that begins with these goes on with the one above it.
        let next = self.next(self.at);
        let goes_on = matches!(self.byte(next), b'*' | b'%') && self.byte(next + 1) == b' ';
        if goes_on && (is_word(self.before) || matches!(self.before, b')' | b']')) {
            return self.join_lines(remark, next);
        }
        // Empty lines behind this one say nothing else.
        self.at = next;
    }

    fn a_word(&mut self) {
        let (start, end) = (self.at, self.word_end(self.at));
        match &self.bytes[start..end] {
            b"switch" => self.switch = true,
            b"case" => self.case = true,
            b"associatedtype" => self.associated = true,
            b"nonisolated" => self.not_isolated(start, end),
            // Where a value is given up, the grammar takes none in every place.
            b"consume" if self.byte(end) == b' ' && is_word(self.byte(end + 1)) => {
                self.blank(start, end);
                self.at = end;
                return;
            }
            // The older words for how a value is passed, which only the compiler's own libraries write.
            b"__owned" | b"__shared" | b"__consuming" => {
                self.blank(start, end);
                self.at = end;
                return;
            }
            b"sending" => {
                let next = self.byte(self.next(end));
                let is_before_type =
                    self.byte(end) == b' ' && (is_word(next) || matches!(next, b'@' | b'(' | b'['));
                if is_before_type && matches!(self.before, b':' | b'>') {
                    self.blank(start, end);
                    // The following text is still behind the colon.
                    self.at = end;
                    return;
                }
            }
            _ => {}
        }
        self.word = (start, end);
        self.before = self.byte(end - 1);
        self.at = end;
        if self.byte(end) == b'<' {
            self.arguments_before_member(end);
        }
    }

    /// `nonisolated(unsafe) let`: the grammar does not take it within functions.
    fn not_isolated(&mut self, start: usize, end: usize) {
        let end = if self.bytes[end..].starts_with(b"(unsafe)") { end + 8 } else { end };
        let next = self.next(end);
        if matches!(&self.bytes[next..self.word_end(next)], b"let" | b"var") {
            self.blank(start, end);
        }
    }

    /// `A<B>.make()`, which the grammar takes for two comparisons.
    fn arguments_before_member(&mut self, from: usize) {
        let is_type = self.byte(self.word.0).is_ascii_uppercase();
        if let Some(end) = self.closed(from, (b'<', b'>')).filter(|_| is_type)
            && self.byte(end) == b'.'
            && self.byte(end + 1).is_ascii_lowercase()
        {
            self.blank(from, end);
            self.at = end;
        }
    }

    fn mark(&mut self, byte: u8) {
        let at = self.at;
        match byte {
            // `case .success():`, which says no more than `case .success:`.
            b'(' if self.case && self.word.1 == at && self.byte(self.next(at + 1)) == b')' => {
                let end = self.next(at + 1) + 1;
                self.blank(at, end);
                self.at = end;
                return;
            }
            b':' | b'=' | b'{' | b'}' if self.case => {
                self.case = false;
                return self.mark(byte);
            }
            b'(' if self.is_empty_value() => {
                let end = self.next(at + 1);
                self.put(at, b"[");
                self.put(end, b"]");
                self.at = end;
            }
            b'(' => self.open.push(Open::Round),
            b'[' => self.open.push(Open::Square),
            b'{' => {
                let is_choice = std::mem::take(&mut self.switch);
                self.open.push(if is_choice { Open::Switch } else { Open::Curly });
            }
            b')' | b']' | b'}' => {
                if let Some(Open::Inserted { marks, lines }) = self.open.pop() {
                    self.at += 1;
                    return self.rest_of_text(marks, lines);
                }
            }
            // Both are between two statements; the grammar takes the one alone everywhere.
            b';' => self.put(at, b"\n"),
            b'~' if self.is_before_value() && is_word(self.byte(at + 1)) => self.put(at, b" "),
            b'@' => return self.attribute(),
            b'/' if matches!(self.before, b'=' | b'(' | b',' | b':') && self.byte(at + 1) != b' ' => {
                self.pattern();
            }
            _ => {}
        }
        self.before = byte;
        self.word = (0, 0);
        self.at += 1;
    }

    /// Whether what follows here can be nothing but a value.
    fn is_before_value(&self) -> bool {
        matches!(self.before, b'=' | b'(' | b',' | b'[') || self.last_word() == b"return"
    }

    /// Passes over a pattern between two slashes, if it ends on its line.
    fn pattern(&mut self) {
        let line = &self.bytes[self.at + 1..self.line_end(self.at)];
        let mut is_escaped = false;
        let end = line.iter().position(|it| {
            let ends = *it == b'/' && !is_escaped;
            is_escaped = *it == b'\\' && !is_escaped;
            ends
        });
        if let Some(end) = end {
            self.at += 1 + end;
        }
    }

    /// Whether `()` is a value here, which the grammar does not know: shown as an empty list, it is one to it.
    fn is_empty_value(&self) -> bool {
        let end = self.next(self.at + 1);
        if self.byte(end) != b')' {
            return false;
        }
        let next = self.next(end + 1);
        let rest = self.bytes.get(next..).unwrap_or_default();
        let is_type = |rest: &[u8]| {
            rest.starts_with(b"->") || rest.starts_with(b"throws") || rest.starts_with(b"async")
        };
        let behind_bracket = || self.bytes.get(self.next(next + 1)..).unwrap_or_default();
        let stands =
            matches!(self.before, b'=' | b'(' | b',' | b'[' | b':' | b'?') || self.last_word() == b"return";
        let ends_type = rest.starts_with(b">")
            || (self.before == b':' && rest.starts_with(b"="))
            || (self.before == b'(' && rest.starts_with(b")") && is_type(behind_bracket()));
        stands && !is_type(rest) && !ends_type
    }

    /// Of several attributes of one parameter the grammar takes the last alone.
    fn attribute(&mut self) {
        let start = self.at;
        let mut end = self.word_end(start + 1);
        while self.byte(end) == b'.' && is_word(self.byte(end + 1)) {
            end = self.word_end(end + 1);
        }
        for pair in [(b'<', b'>'), (b'(', b')')] {
            if self.byte(end) == pair.0
                && let Some(closed) = self.closed(end, pair)
            {
                end = closed;
            }
        }
        let is_first = matches!(self.before, b'(' | b',') && self.open.last() == Some(&Open::Round);
        if is_first && self.byte(self.next(end)) == b'@' {
            self.blank(start, end);
            self.at = end;
            return;
        }
        self.before = b'@';
        self.word = (0, 0);
        self.at += 1;
    }
}

//! The lines that can still change, and the cursor on them.

use std::collections::VecDeque;

use super::{COLUMNS, ROWS, visible};

/// Maximum column to which the cursor can move beyond the end of a line. A screen is
/// about this wide, and without a limit a few bytes could create a very long line of
/// spaces.
const REACH: usize = 256;

/// A line, or the part of a very long one that can still change.
#[derive(Debug, Default)]
struct Row {
    cells: Vec<char>,
    /// Part of the row was overwritten or erased, so trailing spaces are trimmed.
    edited: bool,
    /// The next row continues the same line.
    wraps: bool,
}

/// The last lines of the output, and the finished lines that were not taken yet.
#[derive(Debug)]
pub(super) struct Screen {
    done: String,
    /// Never empty.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            done: String::new(),
            rows: VecDeque::from([Row::default()]),
            row: 0,
            column: 0,
        }
    }
}

impl Screen {
    pub(super) fn take_done(&mut self) -> String {
        std::mem::take(&mut self.done)
    }

    pub(super) fn drain(&mut self) -> String {
        while self.rows.len() > 1 {
            self.scroll();
        }
        if let Some(row) = self.rows.front_mut() {
            write_row(&mut self.done, row);
            *row = Row::default();
        }
        (self.row, self.column) = (0, 0);
        self.take_done()
    }

    /// Moves the first row to the finished lines.
    fn scroll(&mut self) {
        if let Some(row) = self.rows.pop_front() {
            write_row(&mut self.done, &row);
            if !row.wraps {
                self.done.push('\n');
            }
            self.row = self.row.saturating_sub(1);
        }
    }

    /// Moves to the start of the next row and creates it if needed.
    fn next_row(&mut self) {
        self.column = 0;
        self.row += 1;
        if self.row >= self.rows.len() {
            self.rows.push_back(Row::default());
            if self.rows.len() > ROWS {
                self.scroll();
            }
        }
    }

    /// Moves up or down within the existing rows.
    fn move_rows(&mut self, by: isize) {
        let last = self.rows.len() - 1;
        self.row = self.row.saturating_add_signed(by).min(last);
        self.move_to(self.column);
    }

    fn move_to(&mut self, column: usize) {
        let end = self.rows.get(self.row).map_or(0, |row| row.cells.len());
        self.column = column.min(end.max(REACH));
    }

    fn put(&mut self, c: char) {
        if self.column >= COLUMNS {
            if let Some(row) = self.rows.get_mut(self.row) {
                row.wraps = true;
            }
            self.next_row();
        }
        let Some(row) = self.rows.get_mut(self.row) else {
            return;
        };
        if self.column > row.cells.len() {
            row.cells.resize(self.column, ' ');
        }
        match row.cells.get_mut(self.column) {
            Some(cell) => {
                *cell = c;
                row.edited = true;
            }
            None => row.cells.push(c),
        }
        self.column += 1;
    }

    fn erase_in_line(&mut self, which: usize) {
        let column = self.column;
        let Some(row) = self.rows.get_mut(self.row) else {
            return;
        };
        row.edited = true;
        match which {
            0 => row.cells.truncate(column),
            1 => {
                let erased = row.cells.iter_mut().take(column.min(REACH) + 1);
                erased.for_each(|cell| *cell = ' ');
            }
            2 => row.cells.clear(),
            _ => {}
        }
        self.move_to(column);
    }

    fn erase_in_display(&mut self, which: usize) {
        match which {
            0 => {
                self.erase_in_line(0);
                self.rows.truncate(self.row + 1);
                if let Some(row) = self.rows.back_mut() {
                    row.wraps = false;
                }
            }
            2 | 3 => self.start_new_line(),
            _ => {}
        }
    }

    /// Starts a new line below everything, unless the last line is empty.
    fn start_new_line(&mut self) {
        self.row = self.rows.len() - 1;
        if self.rows.back().is_some_and(|row| !row.cells.is_empty()) {
            self.next_row();
        }
        self.column = 0;
    }
}

fn write_row(text: &mut String, row: &Row) {
    let mut cells = &row.cells[..];
    if row.edited && !row.wraps {
        while let [shorter @ .., ' '] = cells {
            cells = shorter;
        }
    }
    text.extend(cells);
}

/// Actions of the parser.
impl Screen {
    pub(super) fn print(&mut self, c: char) {
        // No terminal shows a delete character.
        if c != '\x7f' {
            self.put(visible(c));
        }
    }

    pub(super) fn control(&mut self, byte: u8) {
        match byte {
            b'\n' | 0x0b | 0x0c => {
                if let Some(row) = self.rows.get_mut(self.row) {
                    row.wraps = false;
                }
                self.next_row();
            }
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            // Bell, character sets, and the characters that cancel a sequence.
            0x07 | 0x0e | 0x0f | 0x18 | 0x1a => {}
            byte => self.put(visible(char::from(byte))),
        }
    }

    /// Executes a control sequence. An omitted number is zero.
    pub(super) fn sequence(&mut self, action: u8, numbers: [u16; 2]) {
        let [first, second] = numbers.map(usize::from);
        let count = first.max(1);
        match action {
            b'A' => self.move_rows(-(count as isize)),
            b'B' => self.move_rows(count as isize),
            b'C' | b'a' => self.move_to(self.column.saturating_add(count)),
            b'D' => self.column = self.column.saturating_sub(count),
            b'E' | b'F' => {
                self.column = 0;
                let by = count as isize;
                self.move_rows(if action == b'E' { by } else { -by });
            }
            b'G' | b'`' => self.move_to(count - 1),
            b'H' | b'f' => self.move_to(second.saturating_sub(1)),
            b'J' => self.erase_in_display(first),
            b'K' => self.erase_in_line(first),
            _ => {}
        }
    }

    pub(super) fn escape(&mut self, byte: u8) {
        match byte {
            // A reset clears the screen.
            b'c' => self.start_new_line(),
            b'E' => self.control(b'\n'),
            _ => {}
        }
    }
}

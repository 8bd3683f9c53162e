//! Tables for people: plain columns, without colour, that `grep` and `awk` can read, too.

use unicode_width::UnicodeWidthStr;

/// Wider cells are cut.
const WIDEST: usize = 80;

/// A table that grows row by row.
#[derive(Debug)]
pub(super) struct Columns {
    heads: Vec<Head>,
    rows: Vec<Vec<String>>,
}

/// The head of a column, and on which side its cells stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    /// Of words.
    Left(&'static str),
    /// Of numbers.
    Right(&'static str),
}

impl Columns {
    pub(super) fn new(heads: &[Head]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; texts from outside are made fit for a terminal.
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.heads.len(), "a cell for each head");
        self.rows.push(cells.iter().map(|cell| one_line(cell)).collect());
    }

    /// The table, or these words if it has no row.
    pub(super) fn or(self, if_empty: &str) -> String {
        if self.rows.is_empty() { format!("{if_empty}\n") } else { self.written() }
    }

    fn written(self) -> String {
        let heads: Vec<String> = self.heads.iter().map(|head| head.text().to_owned()).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&heads]).map(|row| row[column].width());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let mut text = String::new();
        for row in [&heads].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for ((cell, head), width) in row.iter().zip(&self.heads).zip(&widths) {
                let space = " ".repeat(width - cell.width());
                match head {
                    Head::Left(_) => line += &format!("{cell}{space}  "),
                    Head::Right(_) => line += &format!("{space}{cell}  "),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

impl Head {
    const fn text(self) -> &'static str {
        match self {
            Self::Left(text) | Self::Right(text) => text,
        }
    }
}

/// The first line of a text, at most so wide, and without what a terminal would obey.
fn one_line(text: &str) -> String {
    let mut lines = text.lines();
    let mut line = plain(lines.next().unwrap_or_default());
    let mut is_cut = lines.next().is_some();
    while line.width() > WIDEST {
        line.pop();
        is_cut = true;
    }
    if is_cut { line + "…" } else { line }
}

/// A text without what a terminal would obey; it may have lines.
pub(super) fn plain(text: &str) -> String {
    let is_told = |char: char| {
        char.is_control() && char != '\n' || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|char| if is_told(char) { '\u{fffd}' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_one_below_the_other_whatever_is_in_them() {
        let mut columns = Columns::new(&[Head::Left("TASK"), Head::Right("JOBS"), Head::Left("ERROR")]);
        columns.row(["send".into(), "7".into(), "\u{1b}[31mred\nand more".into()]);
        columns.row(["日本".into(), "1000".into(), "x".repeat(200)]);
        let cut = "x".repeat(80);
        assert_eq!(
            columns.or("nothing"),
            format!("TASK  JOBS  ERROR\nsend     7  \u{fffd}[31mred…\n日本  1000  {cut}…\n")
        );
        assert_eq!(Columns::new(&[Head::Left("TASK")]).or("no task"), "no task\n");
    }
}

//! Columns.

use std::fmt::Write as _;

/// Columns of a screen that every table should fit.
const SCREEN: usize = 80;

/// How text may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// With ANSI colours.
    pub colour: bool,
}

/// What a text says, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// As it should be: green.
    Good,
    /// Worth a look: yellow.
    Warning,
    /// Wrong: red.
    Bad,
    /// A heading: bold.
    Heading,
}

impl Style {
    /// The text in its tone's colour, where colours are allowed.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.colour || text.is_empty() => return text.into(),
            Tone::Plain => return text.into(),
            Tone::Good => "32",
            Tone::Warning => "33",
            Tone::Bad => "31",
            Tone::Heading => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A text on one line that does nothing to a terminal: control characters are written as `\n` and the
/// like. Names and reasons may come from anywhere.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// [`harmless`], but lines stay lines: for what gives a reason a line.
pub fn harmless_lines(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// Characters of a typed text that an error says again.
const ECHO: usize = 120;

/// The beginning of a text, [`harmless`]: enough to recognize what was typed.
pub fn brief(text: &str) -> String {
    match text.char_indices().nth(ECHO) {
        Some((end, _)) => format!("{}\u{2026}", harmless(&text[..end])),
        None => harmless(text),
    }
}

/// A text in a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A text with a tone, made [`harmless`].
    pub fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Cell { text: harmless(text.as_ref()), tone }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(value: T) -> Self {
        Cell::new(Tone::Plain, value.to_string())
    }
}

/// Rows under headings. A heading that begins with `>` has its column flush right.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub fn new(headings: &[&'static str]) -> Self {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row: a cell a heading.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.headings.len());
        self.rows.push(cells.into());
    }

    /// Lines, each indented by so many blanks. Columns are two blanks apart, or one where the table
    /// would not fit the screen else.
    pub fn render(&self, indent: usize, style: Style) -> String {
        let width = |text: &str| text.chars().count();
        let titles: Vec<&str> = self.headings.iter().map(|title| title.trim_start_matches('>')).collect();
        let widths: Vec<usize> = (0..titles.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| width(&cell.text).max(1)).max().unwrap_or(0).max(width(titles[column]))
            })
            .collect();
        let total = indent + widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let gap = if total > SCREEN { " " } else { "  " };
        let mut text = String::new();
        let mut line = |cells: &[Cell]| {
            let mut out = " ".repeat(indent);
            for (column, cell) in cells.iter().enumerate() {
                let shown = if cell.text.is_empty() { "-" } else { &cell.text };
                let pad = " ".repeat(widths[column].saturating_sub(width(shown)));
                let (before, after) = if self.headings[column].starts_with('>') {
                    (pad.as_str(), "")
                } else if column + 1 == cells.len() {
                    ("", "")
                } else {
                    ("", pad.as_str())
                };
                let gap = if column == 0 { "" } else { gap };
                let _ = write!(out, "{gap}{before}{}{after}", style.paint(cell.tone, shown));
            }
            text.push_str(&out);
            text.push('\n');
        };
        line(&titles.iter().map(|title| Cell::new(Tone::Heading, *title)).collect::<Vec<_>>());
        self.rows.iter().for_each(|row| line(row));
        text
    }
}

/// Names and values, one a line.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(String, Cell)>);

impl Fields {
    /// None yet.
    pub fn new() -> Self {
        Fields::default()
    }

    /// Adds a field.
    pub fn field(&mut self, name: &str, value: impl Into<Cell>) {
        self.0.push((name.into(), value.into()));
    }

    /// Adds a field that may have no value; then it is `-`.
    pub fn maybe(&mut self, name: &str, value: Option<impl ToString>) {
        self.field(name, value.map_or_else(String::new, |value| value.to_string()));
    }

    /// Lines, each indented by so many blanks, values aligned.
    pub fn render(&self, indent: usize, style: Style) -> String {
        let width = self.0.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        self.0.iter().fold(String::new(), |mut text, (name, cell)| {
            let shown = if cell.text.is_empty() { "-" } else { &cell.text };
            let blanks = " ".repeat(indent);
            let _ = writeln!(text, "{blanks}{name:width$}  {}", style.paint(cell.tone, shown));
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_reach_no_terminal() {
        let mut table = Table::new(&["Name"]);
        table.row(["a\x1b[2J\nb".into()]);
        assert_eq!(table.render(0, Style::default()), "Name\na\\u{1b}[2J\\nb\n");
    }

    #[test]
    fn columns_line_up_and_close_up_when_too_wide() {
        let mut table = Table::new(&["Name", ">Packets", "Why"]);
        table.row(["a".into(), 5.into(), Cell::new(Tone::Bad, "no reason")]);
        table.row(["longer".into(), 12345.into(), "".into()]);
        assert_eq!(
            table.render(0, Style::default()),
            "Name    Packets  Why\na             5  no reason\nlonger    12345  -\n"
        );
        assert!(table.render(0, Style { colour: true }).contains("\x1b[31mno reason\x1b[0m"));
        table.row(["n".repeat(57).into(), 0.into(), "w".repeat(13).into()]);
        let text = table.render(0, Style::default());
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.starts_with(&format!("Name{} Packets Why\n", " ".repeat(53))));
    }
}

//! What a terminal shows of what is written to it, as far as sluice goes.

/// The screen.
pub struct Glass {
    columns: usize,
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The beginning of an escape sequence that is not complete.
    part: String,
    /// The alternate screen is shown.
    pub alternate: bool,
    /// The cursor is shown.
    pub cursor: bool,
    /// Colours that were asked for.
    pub colours: usize,
}

impl Glass {
    pub fn new(columns: usize, rows: usize) -> Self {
        let cells = vec![vec![' '; columns]; rows];
        let part = String::new();
        Glass { columns, cells, row: 0, column: 0, part, alternate: false, cursor: true, colours: 0 }
    }

    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.columns = columns;
        self.cells.resize(rows, Vec::new());
        self.cells.iter_mut().for_each(|row| row.resize(columns, ' '));
    }

    pub fn text(&self) -> String {
        let lines = self.cells.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned() + "\n");
        lines.collect()
    }

    pub fn has(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    pub fn line(&self, row: usize) -> String {
        self.cells[row].iter().collect()
    }

    pub fn write(&mut self, text: &str) {
        let text = std::mem::take(&mut self.part) + text;
        let mut rest = text.as_str();
        while let Some(character) = rest.chars().next() {
            if character != '\x1b' {
                self.put(character);
                rest = &rest[character.len_utf8()..];
            } else if let Some(end) =
                rest.get(2..).and_then(|after| after.find(|c: char| ('@'..='~').contains(&c)))
            {
                self.sequence(&rest[2..=end + 2]);
                rest = &rest[end + 3..];
            } else {
                self.part = rest.into();
                return;
            }
        }
    }

    fn put(&mut self, character: char) {
        match character {
            '\r' => self.column = 0,
            '\n' => self.row = (self.row + 1).min(self.cells.len() - 1),
            character if character.is_control() => {}
            character => {
                assert!(self.column < self.columns, "written beyond the screen:\n{}", self.text());
                self.cells[self.row][self.column] = character;
                self.column += 1;
            }
        }
    }

    /// Behind `ESC [`.
    fn sequence(&mut self, sequence: &str) {
        let (arguments, end) = sequence.split_at(sequence.len() - 1);
        match (arguments, end) {
            ("?1049", "h") => self.alternate = true,
            ("?1049", "l") => self.alternate = false,
            ("?25", "h") => self.cursor = true,
            ("?25", "l") => self.cursor = false,
            (_, "H") => {
                let mut numbers = arguments.split(';').map(|number| number.parse().unwrap_or(1) - 1);
                self.row = numbers.next().unwrap_or(0).min(self.cells.len() - 1);
                self.column = numbers.next().unwrap_or(0).min(self.columns - 1);
            }
            ("2", "J") => self.cells.iter_mut().for_each(|row| row.fill(' ')),
            (_, "m") => {
                self.colours += usize::from(arguments.starts_with("38;") || arguments.starts_with("48;"))
            }
            other => panic!("a sequence that no test knows: {other:?}"),
        }
    }
}

//! What of the figures is looked at, and how keys change it.

use std::collections::BTreeSet;

use api::{Pair, Unit};

use super::figures::{Figures, slower};
use super::keys::Key;

/// Order of pairs within their unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Those that are not up first.
    #[default]
    State,
    /// As configured.
    Name,
    /// Those with most frames first.
    Rate,
    /// The slowest first.
    Delay,
}

impl Sort {
    /// The word that the screen shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Sort::State => "state",
            Sort::Name => "name",
            Sort::Rate => "rate",
            Sort::Delay => "delay",
        }
    }

    fn next(self) -> Self {
        match self {
            Sort::State => Sort::Name,
            Sort::Name => Sort::Rate,
            Sort::Rate => Sort::Delay,
            Sort::Delay => Sort::State,
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A unit.
    Unit(&'a Unit),
    /// One of its pairs, below it.
    Pair(&'a Unit, &'a Pair),
}

impl Row<'_> {
    fn name(&self) -> Name {
        match self {
            Row::Unit(unit) => (unit.name.clone(), None),
            Row::Pair(unit, pair) => (unit.name.clone(), Some(pair.name.clone())),
        }
    }
}

/// Of a unit, or of a pair of it.
type Name = (String, Option<String>);

/// What the next keys do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Something on the screen is other than before.
    Draw,
    /// The whole screen is to be drawn anew.
    Refresh,
    /// The screen is left.
    Leave,
}

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Order of pairs.
    pub sort: Sort,
    /// Only pairs whose unit, name or state has this in it.
    pub filter: String,
    /// The filter is being typed.
    pub typing: bool,
    /// The keys are explained.
    pub help: bool,
    /// Units whose pairs are not shown.
    collapsed: BTreeSet<String>,
    /// Where the bar is: on which row, and which number that had.
    selected: (usize, Option<Name>),
    /// First row that is shown.
    top: usize,
    /// Rows that were shown the last time.
    page: usize,
}

impl View {
    /// The pairs of that unit are not shown.
    pub fn is_collapsed(&self, unit: &str) -> bool {
        self.collapsed.contains(unit)
    }

    /// Rows that there are to see, in their order.
    pub fn rows<'a>(&self, figures: &'a Figures) -> Vec<Row<'a>> {
        let mut rows = Vec::new();
        for unit in figures.units() {
            let mut pairs: Vec<&Pair> = unit.pairs.iter().filter(|pair| self.admits(unit, pair)).collect();
            if pairs.is_empty() && !self.filter.is_empty() {
                continue;
            }
            rows.push(Row::Unit(unit));
            if self.is_collapsed(&unit.name) {
                continue;
            }
            let sent = |pair: &Pair| {
                let rate = figures.track(&unit.name, &pair.name).and_then(|track| track.sent());
                rate.map_or(-1.0, |rate| rate.packets)
            };
            match self.sort {
                Sort::Name => {}
                Sort::State => pairs.sort_by_key(|pair| urgency(&pair.state)),
                Sort::Rate => pairs.sort_by(|one, other| sent(other).total_cmp(&sent(one))),
                Sort::Delay => pairs.sort_by_key(|pair| std::cmp::Reverse(slower(pair))),
            }
            rows.extend(pairs.into_iter().map(|pair| Row::Pair(unit, pair)));
        }
        rows
    }

    fn admits(&self, unit: &Unit, pair: &Pair) -> bool {
        let filter = self.filter.to_lowercase();
        [&unit.name, &pair.name, &pair.state].iter().any(|text| text.to_lowercase().contains(&filter))
    }

    /// Number of the row with the bar, and of the first that is shown where there is room for so many. The bar stays
    /// on its unit or pair wherever that goes.
    pub fn place(&mut self, rows: &[Row<'_>], room: usize) -> (usize, usize) {
        let (number, name) = &self.selected;
        let found = name.as_ref().and_then(|name| rows.iter().position(|row| row.name() == *name));
        let at = found.unwrap_or(*number).min(rows.len().saturating_sub(1));
        // A bar that nobody moved stays at the top, whatever is there.
        self.selected = (at, rows.get(at).map(Row::name).filter(|_| name.is_some()));
        self.page = room.max(1);
        let last = rows.len().saturating_sub(self.page);
        self.top = self.top.clamp((at + 1).saturating_sub(self.page), at).min(last);
        (at, self.top)
    }

    /// A key was pressed.
    pub fn press(&mut self, key: Key, figures: &Figures) -> Then {
        match key {
            Key::Control('c' | 'd') => return Then::Leave,
            Key::Control('l') => return Then::Refresh,
            _ if self.help => self.help = false,
            key if self.typing => self.type_filter(key),
            Key::Char('q' | 'Q') => return Then::Leave,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('/') => self.typing = true,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Escape => self.filter.clear(),
            Key::Char('C') => self.collapse_all(figures),
            Key::Char('c' | ' ') | Key::Enter => self.collapse(figures),
            key => self.travel(key, figures),
        }
        Then::Draw
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(character) if !character.is_control() => self.filter.push(character),
            _ => {}
        }
    }

    fn travel(&mut self, key: Key, figures: &Figures) {
        let rows = self.rows(figures);
        let (at, _) = self.place(&rows, self.page);
        let last = rows.len().saturating_sub(1);
        let to = match key {
            Key::Up | Key::Char('k') => at.saturating_sub(1),
            Key::Down | Key::Char('j') => at + 1,
            Key::PageUp | Key::Char('b') => at.saturating_sub(self.page),
            Key::PageDown | Key::Char('f') => at + self.page,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return,
        };
        self.select(&rows, to.min(last));
    }

    fn select(&mut self, rows: &[Row<'_>], at: usize) {
        self.selected = (at, rows.get(at).map(Row::name));
    }

    /// The unit of the bar's row, or not any more; the bar goes to the unit.
    fn collapse(&mut self, figures: &Figures) {
        let rows = self.rows(figures);
        let (at, _) = self.place(&rows, self.page);
        let Some(row) = rows.get(at) else { return };
        let (unit, _) = row.name();
        if !self.collapsed.remove(&unit) {
            self.collapsed.insert(unit.clone());
        }
        self.selected.1 = Some((unit, None));
    }

    /// All units, or none where all are.
    fn collapse_all(&mut self, figures: &Figures) {
        let all: BTreeSet<String> = figures.units().iter().map(|unit| unit.name.clone()).collect();
        let done = all.is_subset(&self.collapsed);
        self.collapsed = if done { BTreeSet::new() } else { all };
        if let (_, Some((_, pair))) = &mut self.selected {
            *pair = None;
        }
    }
}

/// The lower, the sooner somebody has to look.
fn urgency(state: &str) -> u8 {
    match state {
        "down" => 0,
        "up" => 3,
        "admin-down" => 2,
        _ => 1,
    }
}

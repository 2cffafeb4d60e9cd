//! Filters after a bar, applied line by line so that they work on what never ends too.

use crate::grammar::Filter;

/// A chain of filters.
#[derive(Debug)]
pub struct Filters {
    stages: Vec<Stage>,
}

#[derive(Debug)]
struct Stage {
    filter: Filter,
    lines: u64,
}

impl Filters {
    /// The chain in the order in which it was typed.
    pub fn new(filters: &[Filter]) -> Self {
        Filters { stages: filters.iter().map(|filter| Stage { filter: filter.clone(), lines: 0 }).collect() }
    }

    /// What comes out for one line.
    pub fn line(&mut self, line: &str) -> Option<String> {
        through(&mut self.stages, line)
    }

    /// What comes out at the end.
    pub fn end(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        for at in 0..self.stages.len() {
            let (before, after) = self.stages.split_at_mut(at + 1);
            if let Some(Stage { filter: Filter::Count, lines }) = before.last() {
                let unit = if *lines == 1 { "line" } else { "lines" };
                out.extend(through(after, &format!("Count: {lines} {unit}")));
            }
        }
        out
    }

    /// What comes out for a whole text.
    pub fn text(&mut self, text: &str) -> Vec<String> {
        let mut out: Vec<String> = text.lines().filter_map(|line| self.line(line)).collect();
        out.extend(self.end());
        out
    }
}

fn through(stages: &mut [Stage], line: &str) -> Option<String> {
    for stage in stages {
        match &stage.filter {
            Filter::Match(regex) if !regex.is_match(line) => return None,
            Filter::Except(regex) if regex.is_match(line) => return None,
            Filter::Count => {
                stage.lines += 1;
                return None;
            }
            Filter::Match(_)
            | Filter::Except(_)
            | Filter::Json
            | Filter::Xml
            | Filter::Set
            | Filter::Defaults
            | Filter::NoMore => {}
        }
    }
    Some(line.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ROOT;
    use crate::grammar::parse;

    fn piped(pipe: &str) -> Vec<String> {
        let command = parse(&ROOT, &format!("show ports {pipe}")).unwrap().unwrap();
        Filters::new(&command.filters).text("p1 up\np2 down\np10 up\n")
    }

    #[test]
    fn filters_chain_in_order() {
        assert_eq!(piped("| match p1"), ["p1 up", "p10 up"]);
        assert_eq!(piped("| except up"), ["p2 down"]);
        assert_eq!(piped("| match \"^p\\d+ up\" | except p10"), ["p1 up"]);
        assert_eq!(piped("| match up | count"), ["Count: 2 lines"]);
        assert_eq!(piped("| match p2 | count"), ["Count: 1 line"]);
        assert_eq!(piped("| count | match 4"), Vec::<String>::new());
        assert_eq!(piped("| count | count"), ["Count: 1 line"]);
        assert_eq!(piped("| no-more").len(), 3);
    }
}

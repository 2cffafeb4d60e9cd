//! 20,000 configuration files that somebody or something has damaged: each is read, or refused with a reason; nothing
//! panics, nothing hangs, and what is read keeps the rules of the modules.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

use std::sync::Arc;

use controller::datastore::{read_text, site_of, xml_document};
use controller::early;
use site::Site;
use tree::{Defaults, Path, Tree, json, set_lines};
use yang::Yang;

const FILES: u64 = 20_000;
const SITES: [&str; 2] =
    [include_str!("../../configs/examples/site.json"), include_str!("../../configs/examples/two-units.json")];
const EARLY: [&str; 2] = [
    include_str!("../../configs/examples/early/site.conf"),
    include_str!("../../configs/examples/early/two-units.conf"),
];
/// Texts that are likely to hurt.
const SPICE: [&str; 24] = [
    "\0",
    "\u{feff}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "<",
    ">",
    "&",
    "<!DOCTYPE a [<!ENTITY b \"c\">]>",
    "&b;",
    "<port><name>p2</name><name>p1</name></port>",
    "null",
    "-1",
    "99999999999999999999",
    "1e9",
    "\n",
    "set ",
    "del ",
    "{\"port\": [[[[[[[[",
    "\u{202e}",
    "nc:operation=\"delete\"",
];

/// Repeatable numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// One to four damages.
fn damaged(text: &str, other: &str, numbers: &mut Numbers) -> String {
    let mut text = text.to_owned();
    if numbers.below(3) > 0 {
        // A slip of the finger: what it is in stays readable more often than not.
        for _ in 0..=numbers.below(2) {
            let letters: Vec<usize> =
                text.char_indices().filter(|(_, c)| c.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
            let at = letters[numbers.below(letters.len())];
            let with = ["0", "1", "7", "a", "f", "", ".", "99"][numbers.below(8)];
            text.replace_range(at..=at, with);
        }
        return text;
    }
    for _ in 0..=numbers.below(4) {
        let mut cut =
            [numbers.below(text.len() + 1), numbers.below(text.len() + 1)].map(|at| boundary(&text, at));
        cut.sort_unstable();
        let [from, to] = cut;
        let near = boundary(&text, to.min(from + numbers.below(40)));
        match numbers.below(7) {
            0 => text.replace_range(from..near, ""),
            1 => text.insert_str(from, SPICE[numbers.below(SPICE.len())]),
            2 => text.replace_range(from..near, SPICE[numbers.below(SPICE.len())]),
            3 => {
                let copy = text[from..near].to_owned();
                text.insert_str(to, &copy);
            }
            4 => text.truncate(to),
            5 => {
                let begin = boundary(other, numbers.below(other.len()));
                let end = boundary(other, (begin + numbers.below(200)).min(other.len()));
                text.insert_str(from, &other[begin..end]);
            }
            _ => {
                let mut swapped: Vec<char> = text[from..near].chars().collect();
                swapped.reverse();
                text.replace_range(from..near, &swapped.into_iter().collect::<String>());
            }
        }
    }
    text
}

#[test]
fn damaged_files_are_read_or_refused_with_a_reason() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema().clone();
    let whole = Path::default();
    let mut texts: Vec<String> = Vec::new();
    for site in SITES {
        let tree = json::read(&schema, site).unwrap();
        texts.push(json::write(&tree, &whole, Defaults::Explicit));
        texts.push(xml_document(&tree, Defaults::Explicit));
        texts.push(set_lines::write(&tree, &whole));
        // What is written is what was read, in each format.
        for text in &texts[texts.len() - 3..] {
            assert_eq!(read_text(&schema, text).unwrap(), tree);
        }
    }
    let empty = (Tree::new(schema.clone()), Arc::new(Site::from_json("{}").unwrap()));
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let (mut refused, mut invalid, mut fine) = (0, 0, 0);
    for _ in 0..FILES {
        let text = &texts[numbers.below(texts.len())];
        let other = &texts[numbers.below(texts.len())];
        let text = damaged(text, other, &mut numbers);
        match read_text(&schema, &text) {
            Err(reason) => {
                assert!(!reason.trim().is_empty(), "{text}");
                refused += 1;
            }
            Ok(tree) => match site_of(&yang, (&empty.0, &empty.1), &tree) {
                Err(reason) => {
                    assert!(!reason.to_string().trim().is_empty(), "{text}");
                    invalid += 1;
                }
                Ok(_) => {
                    let written = set_lines::write(&tree, &whole);
                    let mut again = Tree::new(schema.clone());
                    set_lines::read(&mut again, &written).unwrap();
                    assert_eq!(again, tree, "{text}");
                    fine += 1;
                }
            },
        }
    }
    assert!(
        refused > 300 && invalid > 300 && fine > 300,
        "{refused} refused, {invalid} invalid, {fine} fine"
    );
}

#[test]
fn damaged_early_files_are_turned_or_refused() {
    let yang = Yang::load().unwrap();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut refused, mut turned) = (0, 0);
    for _ in 0..5000 {
        let text = damaged(EARLY[numbers.below(2)], EARLY[numbers.below(2)], &mut numbers);
        match early::read(yang.schema(), &text) {
            Ok(_) => turned += 1,
            Err(reason) => {
                assert!(!reason.to_string().trim().is_empty(), "{text}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && turned > 100, "{refused} refused, {turned} turned");
}

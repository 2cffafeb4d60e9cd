//! Somebody who has never seen the shell: from an empty configuration to a site, by what `?` and Tab offer alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use support::terminal::Terminal;
use support::{Machine, can_run, eventually};

/// What is typed: plain words must be offered, words in <> are values of one's own where a value is offered.
const SITE: &[&str] = &[
    "set port <p1> number <1> interface <eth1> mtu <1500>",
    "set port <p2> number <2> interface <eth2> mtu <1500>",
    "set port <p3> number <3> interface <eth3> mtu <1500>",
    "set port <p4> number <4> interface <eth4> mtu <1500>",
    "set port <p5> number <5> interface <eth5> mtu <1504>",
    "set port <p6> number <6> interface <eth6> mtu <1504>",
    "set port <p7> number <7> interface <eth7> mtu <1504>",
    "set port <p8> number <8> interface <eth8> mtu <1504>",
    "set ecofilter-balancer link <north> lan-port p1 wan-port p2",
    "set ecofilter-balancer link <south> lan-port p3 wan-port p4",
    "edit ecofilter-balancer ecofilter-unit <main>",
    "set pair <f1-1> lan-port p5 wan-port p6",
    "set pair <f1-2> lan-port p7 wan-port p8",
    "up",
    "set flow <bgp> priority <200> match ip-proto <6> dst-port <179>",
    "set flow bgp action bypass",
    "set flow <rest> priority <1> action to-ecofilter",
    "set flow rest ecofilter-unit main",
    "top",
    "compare",
    "check",
    "apply comment <first>",
    "save",
];

/// The lines that must be in the startup file then.
const SAVED: &[&str] = &[
    "set ecofilter-balancer link north lan-port p1",
    "set ecofilter-balancer link north wan-port p2",
    "set ecofilter-balancer link south lan-port p3",
    "set ecofilter-balancer link south wan-port p4",
    "set ecofilter-balancer ecofilter-unit main pair f1-1 lan-port p5",
    "set ecofilter-balancer ecofilter-unit main pair f1-1 wan-port p6",
    "set ecofilter-balancer ecofilter-unit main pair f1-2 lan-port p7",
    "set ecofilter-balancer ecofilter-unit main pair f1-2 wan-port p8",
    "set ecofilter-balancer flow bgp priority 200",
    "set ecofilter-balancer flow bgp match ip-proto 6",
    "set ecofilter-balancer flow bgp match dst-port 179",
    "set ecofilter-balancer flow bgp action bypass",
    "set ecofilter-balancer flow rest priority 1",
    "set ecofilter-balancer flow rest action to-ecofilter",
    "set ecofilter-balancer flow rest ecofilter-unit main",
];

/// The new user.
struct Novice {
    terminal: Terminal,
    /// Before what is typed.
    prompt: &'static str,
    /// What is on the line.
    line: String,
}

impl Novice {
    /// What can stand next, as `?` lists it; each with a description.
    fn offers(&mut self) -> Vec<String> {
        self.terminal.press("?");
        self.terminal.see("Possible completions:");
        let list = self.terminal.see(&format!("{}{}", self.prompt, self.line));
        let mut offers = Vec::new();
        // A description that goes on in a second line is indented by more.
        for row in list.lines().filter_map(|row| row.trim_end().strip_prefix("  ")) {
            if let Some((word, description)) = row.split_once("  ")
                && !word.is_empty()
            {
                assert!(!description.trim().is_empty(), "{row:?} says nothing");
                offers.push(word.to_owned());
            }
        }
        offers
    }

    /// Takes a word that is offered: as many letters as tell it from the others, and Tab.
    fn take(&mut self, word: &str) {
        let offers = self.offers();
        assert!(offers.iter().any(|offer| offer == word), "{}{word}: offered are {offers:?}", self.line);
        let length = (1..=word.len())
            .find(|length| offers.iter().filter(|offer| offer.starts_with(&word[..*length])).count() == 1);
        match length {
            Some(length) => self.terminal.press(&format!("{}\t", &word[..length])),
            None => self.terminal.press(&format!("{word} ")),
        }
        self.line.push_str(word);
        self.line.push(' ');
        if length.is_some() {
            self.terminal.see(&format!("{}{}", self.prompt, self.line));
        }
    }

    /// Types a value where one is asked for.
    fn invent(&mut self, value: &str) {
        let offers = self.offers();
        let asked = offers.iter().any(|offer| offer.starts_with('<') && offer != "<Enter>");
        assert!(asked, "{}: offered are {offers:?}", self.line);
        self.line.push_str(value);
        self.line.push(' ');
        self.terminal.press(&format!("{value} "));
    }

    fn run(&mut self, line: &str) -> String {
        for word in line.split(' ') {
            match word.strip_prefix('<').and_then(|word| word.strip_suffix('>')) {
                Some(value) => self.invent(value),
                None => self.take(word),
            }
        }
        let offers = self.offers();
        assert!(offers.iter().any(|offer| offer == "<Enter>"), "{line}: offered are {offers:?}");
        self.line.clear();
        if line == "configure" {
            self.prompt = "# ";
        }
        self.terminal.press("\r");
        self.terminal.see("\n");
        self.terminal.see(self.prompt)
    }
}

#[test]
fn a_new_user_gets_a_site_running_by_what_is_offered() {
    if !can_run("a_new_user_gets_a_site_running_by_what_is_offered") {
        return;
    }
    let machine = Machine::start();
    let mut terminal = Terminal::start(&machine.command("sluice"), 60);
    terminal.see("> ");
    let mut novice = Novice { terminal, prompt: "> ", line: String::new() };
    assert!(novice.run("configure").contains("[edit]"));
    for line in SITE {
        let said = novice.run(line);
        for fault in ["unknown", "refused", "must be", "not known", "expected"] {
            assert!(!said.contains(fault), "{line}: {said}");
        }
        match *line {
            "check" => assert!(said.contains("the candidate is valid"), "{said}"),
            "apply comment <first>" => assert!(said.contains("applied"), "{said}"),
            _ => {}
        }
    }
    novice.terminal.press("exit\rexit\r");
    assert_eq!(novice.terminal.leave(), 0);
    let saved = machine.ask("show startup | set");
    for line in SAVED {
        assert!(saved.lines().any(|saved| saved == *line), "{line:?} is not in\n{saved}");
    }
    eventually("both pairs are up", || {
        machine.ask("show ecofilter-balancer").contains("main: up, mode auto, 2 of 2 pairs up")
    });
}

//! Every example of the pages that an engineer works by, done in order on a machine of its own that begins with an empty
//! configuration.
//!
//! Blocks are by language: `sluice` lines for `sluice` on standard input, `sh` a shell, `python` a script (with ncclient),
//! `text` what the block before it says. A block whose first line is a comment with a file's name becomes that file. A
//! block marked `refused` must fail, any other must not. DOCS_SHOW=1 shows what every block says.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking; modules of its own"
)]

#[path = "support/page.rs"]
mod page;
#[path = "support/python.rs"]
mod python;
mod support;

use std::time::{Duration, Instant};

use page::{Block, Page, missing};
use python::ansible;
use support::{Machine, Said, can_run, repository};

/// How long what is looked at may take to look so.
const PATIENCE: Duration = Duration::from_secs(30);

/// Does one block.
fn run(machine: &Machine, block: &Block) -> Said {
    match block.language.as_str() {
        "sluice" => machine.sluice(&block.text),
        "sh" => machine.shell(&block.text),
        "python" => {
            let mut command = machine.command("python3");
            command.arg("-");
            Said::of(command, &block.text)
        }
        language => panic!("nothing is known of blocks in {language:?}"),
    }
}

fn follow(machine: &Machine, page: &Page) {
    let show = std::env::var_os("DOCS_SHOW").is_some();
    let mut faults = Vec::new();
    let mut blocks = page.blocks.iter().peekable();
    while let Some(block) = blocks.next() {
        let place = page.place(block);
        if let Some(file) = block.file() {
            let mut command = machine.command("tee");
            command.arg(file);
            assert_eq!(Said::of(command, &block.text).status, Some(0), "{place}");
            continue;
        }
        assert_ne!(block.language, "text", "{place}: nothing says it");
        let expected = blocks.next_if(|next| next.language == "text");
        let end = Instant::now() + PATIENCE;
        let fault = loop {
            let said = run(machine, block);
            if show {
                eprintln!("--- {place}: {:?}\n{}{}", said.status, block.text, said.text);
            }
            let refused = block.mark == "refused";
            let fault = if said.status.is_none_or(|status| (status != 0) != refused) {
                format!("{place}: exit status {:?}\n{}{}", said.status, block.text, said.text)
            } else {
                match expected.and_then(|expected| Some((expected, missing(&expected.text, &said.text)?))) {
                    None => break None,
                    Some((expected, line)) => {
                        format!("{}: {line:?} is not said\n{}{}", page.place(expected), block.text, said.text)
                    }
                }
            };
            if !block.only_looks() || Instant::now() > end {
                break Some(fault);
            }
            std::thread::sleep(Duration::from_millis(200));
        };
        if let Some(fault) = fault {
            // What follows may depend on it.
            if !show {
                panic!("{fault}");
            }
            faults.push(fault);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A machine on which the cookbook's first site runs.
fn with_first_site() -> Machine {
    let machine = Machine::start();
    follow(&machine, &Page::read("docs/cookbook.md").first_section());
    machine
}

#[test]
fn the_cookbook_works_from_an_empty_configuration() {
    if !can_run("the_cookbook_works_from_an_empty_configuration") {
        return;
    }
    follow(&Machine::start(), &Page::read("docs/cookbook.md"));
}

#[test]
fn the_page_on_configurations_tells_the_truth() {
    if !can_run("the_page_on_configurations_tells_the_truth") {
        return;
    }
    follow(&with_first_site(), &Page::read("docs/configuration.md"));
}

#[test]
fn the_page_on_netconf_works_with_clients_that_nobody_here_wrote() {
    if !can_run("the_page_on_netconf_works_with_clients_that_nobody_here_wrote") {
        return;
    }
    let machine = with_first_site();
    let mut page = Page::read("docs/netconf.md");
    match ansible() {
        Ok((python, collections)) => {
            let playbook = python.with_file_name("ansible-playbook");
            machine.program("python3", &format!("exec {} \"$@\"", python.display()));
            machine.program(
                "ansible-playbook",
                &format!(
                    "ANSIBLE_COLLECTIONS_PATH={} exec {} \"$@\"",
                    collections.display(),
                    playbook.display()
                ),
            );
        }
        Err(reason) => {
            eprintln!("SKIPPED the examples in Python and for Ansible of docs/netconf.md: {reason}");
            page.without("python");
            page.without_section("Ansible");
        }
    }
    follow(&machine, &page);
}

#[test]
fn commands_in_the_readme_run_and_have_json() {
    if !can_run("commands_in_the_readme_run_and_have_json") {
        return;
    }
    let machine = with_first_site();
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let commands: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| line.starts_with("show ") || line.starts_with("call "))
        .collect();
    assert!(commands.len() > 4, "{commands:?}");
    for command in commands {
        assert!(!machine.ask(command).is_empty(), "{command}");
        let json = machine.ask(&format!("{command} | json"));
        serde_json::from_str::<serde_json::Value>(&json).unwrap_or_else(|error| panic!("{command}: {error}"));
    }
}

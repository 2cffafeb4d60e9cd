//! Set lines, and what may follow the words of one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use proptest::prelude::*;
use support::{changed, grown, keeps_its_rules, node, path, schema, tree};
use tree::{CandidateKind, Path, Tree, Verb, line, set_lines};

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn fault(line: &str) -> String {
    let mut tree = Tree::new(schema());
    set_lines::read(&mut tree, line).unwrap_err().to_string()
}

fn following(line: &str, verb: Verb) -> Vec<String> {
    let found = line::following(&schema(), &Path::default(), &words(line), verb).unwrap();
    found.into_iter().map(|candidate| candidate.text).collect()
}

#[test]
fn leaves_of_an_entry_on_one_line() {
    let one = tree("set port p1 number 1 lane 2 speed 10g\n");
    let three = "set port p1 number 1\nset port p1 lane 2\nset port p1 speed 10g\n";
    assert_eq!(set_lines::write(&one, &Path::default()), three);
    assert_eq!(tree(three), one);
}

#[test]
fn after_a_value_the_line_goes_on_around_it() {
    let line = "set ecofilter-balancer flow bgp match ip-proto 6 dst-port 179 action bypass copy priority 7";
    let expected = "\
set ecofilter-balancer flow bgp priority 7
set ecofilter-balancer flow bgp match ip-proto 6
set ecofilter-balancer flow bgp match dst-port 179
set ecofilter-balancer flow bgp action bypass
set ecofilter-balancer flow bgp copy
";
    assert_eq!(set_lines::write(&tree(line), &Path::default()), expected);
    // Within what the engineer edits the line goes out to that, no further.
    let at = path("ecofilter-balancer flow bgp match");
    let fault = line::set(&schema(), &at, &words("ip-proto 6 action bypass")).unwrap_err();
    assert_eq!((fault.word, fault.message.as_str()), (2, "action is not known here"));
    // Nor out of an entry.
    let fault = line::set(
        &schema(),
        &Path::default(),
        &words("ecofilter-balancer ecofilter-unit u pair p weight 1 cores 1"),
    );
    assert_eq!(fault.unwrap_err().word, 7);
    // Nor out of a top-level container.
    let fault =
        line::set(&schema(), &Path::default(), &words("ecofilter-balancer balancing-method dst-ip port p"));
    assert_eq!(fault.unwrap_err().word, 3);
    tree("set ecofilter-balancer steering-header mode native balancing-method dst-ip");
}

#[test]
fn names_and_enumerations_may_be_shortened_but_not_values() {
    let short = tree("set ecof flow bgp mat ip- 6 act by");
    assert_eq!(short, tree("set ecofilter-balancer flow bgp match ip-proto 6 action bypass"));
    assert_eq!(fault("set port p1 s 10g m 5"), "line 1: mtu must be 64..10240 (got 5); expected 64..10240");
    assert_eq!(
        fault("set ecofilter-balancer balancing-method layer"),
        "line 1: balancing-method layer could be several things; expected layer-3, layer-4"
    );
    assert_eq!(
        fault("set port p1 d x\nset ecof e u p p1 w 1000").split(';').next(),
        Some("line 2: weight must be 1..100 (got 1000)")
    );
    let fault = line::set(&schema(), &Path::default(), &words("ecof flow f match s")).unwrap_err();
    assert_eq!(fault.word, 5, "{fault}");
}

#[test]
fn faults_name_the_word_and_what_is_right() {
    let check = |line: &str, word: usize, message: &str| {
        let fault = line::set(&schema(), &Path::default(), &words(line)).unwrap_err();
        assert_eq!((fault.word, fault.message.as_str()), (word, message));
        fault.expected
    };
    assert_eq!(check("port p1 number 70", 3, "number must be 1..65 (got 70)"), ["1..65"]);
    assert!(check("prot p1", 0, "prot is not known here").contains(&"port".to_owned()));
    assert_eq!(check("port", 1, "something must follow port"), ["The name."]);
    assert_eq!(check("port p1 number", 3, "something must follow number"), ["1..65"]);
    assert_eq!(check("ecofilter-balancer flow f match", 4, "something must follow match").len(), 3);
    assert_eq!(check("port p1 number 1 number 2", 4, "number is given twice"), [""; 0]);
    assert_eq!(check("port p1 name p1", 2, "name is not known here").len(), 7);
    assert_eq!(check("port p1 state up true", 2, "state is not known here").len(), 7);
    check("", 0, "something must follow");
    check("hostname x y", 2, "nothing may follow, but y does");
    check("ecofilter-balancer flow f apply-to-links [ a", 6, "something must follow a");
    assert_eq!(fault("set port p1\nfrob"), "line 2: must begin with set or del");
    assert_eq!(fault("\n\nset hostname \"x"), "line 3: this quote has no end; expected a closing \"");
}

#[test]
fn a_faulty_text_changes_nothing() {
    let mut tree = tree("set port p1 number 1");
    let before = tree.clone();
    set_lines::read(&mut tree, "del port p1\nset port p2 number 99").unwrap_err();
    assert_eq!(tree, before);
    assert_eq!(set_lines::read(&mut tree, "# none\n\ndelete port\n"), Ok(1));
    assert!(tree.is_empty());
}

#[test]
fn what_del_removes() {
    let mut tree = tree(
        "set port p1 number 1 lane 2\nset port p2\nset ecofilter-balancer flow f apply-to-links [ a b c ]\n\
         set ecofilter-balancer flow f match ip-proto 6\nset ecofilter-balancer flow g copy",
    );
    let mut does = |line: &str, left: &str| {
        set_lines::read(&mut tree, line).unwrap();
        assert_eq!(set_lines::write(&tree, &Path::default()), left);
    };
    let flows = "set ecofilter-balancer flow f apply-to-links [ a b c ]\n\
                 set ecofilter-balancer flow f match ip-proto 6\nset ecofilter-balancer flow g copy\n";
    does("del port p1 lane", &format!("set port p1 number 1\nset port p2\n{flows}"));
    does("del port p1", &format!("set port p2\n{flows}"));
    does("del port", flows);
    does(
        "del ecof flow f match",
        "set ecofilter-balancer flow f apply-to-links [ a b c ]\nset ecofilter-balancer flow g copy\n",
    );
    does(
        "del ecof flow f apply [ a c ]",
        "set ecofilter-balancer flow f apply-to-links b\nset ecofilter-balancer flow g copy\n",
    );
    does("del ecof flow f apply b", "set ecofilter-balancer flow f\nset ecofilter-balancer flow g copy\n");
    does("del ecof flow g copy\ndel ecof flow f", "set ecofilter-balancer flow g\n");
    does("del ecofilter-balancer", "");
    let fault = line::del(&schema(), &Path::default(), &words("port p1 lane 2")).unwrap_err();
    assert_eq!(fault.message, "nothing may follow, but 2 does");
}

#[test]
fn edit_and_show_name_places() {
    let top = Path::default();
    assert_eq!(line::edit(&schema(), &top, &words("ecof flow f")), Ok(path("ecofilter-balancer flow f")));
    assert_eq!(line::edit(&schema(), &top, &words("ecof flow")).unwrap_err().word, 2);
    assert_eq!(line::edit(&schema(), &top, &words("port p1 number")).unwrap_err().word, 2);
    assert_eq!(line::edit(&schema(), &top, &[]).unwrap_err().word, 0);
    assert_eq!(line::show(&schema(), &path("port p1"), &[]), Ok(path("port p1")));
    assert_eq!(
        line::show(&schema(), &path("port p1"), &["number"]).unwrap().words(&schema()),
        "port p1 number"
    );
    assert_eq!(line::show(&schema(), &top, &words("route 10.0.0.0/8")).unwrap_err().word, 2);
}

#[test]
fn candidates_of_names_come_with_their_descriptions() {
    assert_eq!(following("", Verb::Set), ["port", "ecofilter-balancer", "route", "hostname", "server"],);
    assert_eq!(
        following("port p1 number 1", Verb::Set),
        ["lane", "speed", "mtu", "description", "colour", "optics", "<cr>"]
    );
    assert_eq!(
        following("ecof flow f match ip-proto 1", Verb::Set),
        ["src-port", "dst-port", "priority", "apply-to-links", "match", "action", "copy", "<cr>"]
    );
    assert_eq!(following("port p1", Verb::Edit), ["optics", "<cr>"]);
    let all = line::following(&schema(), &Path::default(), &[], Verb::Show).unwrap();
    assert_eq!(all[0].help, "The port.");
    assert_eq!(all[0].kind, CandidateKind::Keyword(node("port")));
    assert_eq!(all.last().map(|end| &end.kind), Some(&CandidateKind::End));
    assert_eq!(
        line::following(&schema(), &Path::default(), &words("port p1 foo"), Verb::Set).unwrap_err().word,
        2
    );
}

#[test]
fn candidates_of_values_say_what_a_type_takes() {
    assert_eq!(following("port p1 number", Verb::Set), ["<1..65>"]);
    assert_eq!(following("port p1 speed", Verb::Set), ["10g", "25g", "40g", "100g"]);
    assert_eq!(following("ecof flow f match src-port", Verb::Set), ["any", "<0..65535>", "<src-port>"]);
    assert_eq!(following("port", Verb::Set), ["<name>"]);
    assert_eq!(following("port", Verb::Del), ["<name>", "<cr>"]);
    assert_eq!(following("route 1", Verb::Set), ["main", "local", "<table>"]);
    assert_eq!(following("ecof flow f apply", Verb::Set), ["<name>", "["]);
    assert_eq!(following("ecof flow f apply [", Verb::Set), ["<name>"]);
    assert_eq!(following("ecof flow f apply [ a", Verb::Set), ["<name>", "]"]);
    assert_eq!(following("ecof flow f apply", Verb::Del), ["<apply-to-links>", "[", "<cr>"]);
}

#[test]
fn candidates_of_names_from_elsewhere_say_from_where() {
    let tree = tree(
        "set port p10\nset port p2\nset ecof e u pair b\nset ecof e u pair a\nset ecof e v pair c\n\
         set route x 1\nset route x main\nset route y 2\nset ecof flow f apply [ l2 l1 ]",
    );
    let kind = |line: &str, verb: Verb| {
        let found = line::following(&schema(), &Path::default(), &words(line), verb).unwrap();
        found.into_iter().find(|candidate| !candidate.literal).unwrap().kind
    };
    let CandidateKind::Reference { leaf } = kind("ecof link l lan-port", Verb::Set) else { panic!() };
    assert_eq!(leaf.xpath(&schema()), "/sl:port/sl:name");
    assert_eq!(tree.values(&leaf), ["p2", "p10"]);
    // Up from where it is, and down again within the same unit.
    let CandidateKind::Reference { leaf } = kind("ecof e u first-pair", Verb::Set) else { panic!() };
    assert_eq!(tree.values(&leaf), ["a", "b"]);
    let CandidateKind::Reference { leaf } = kind("ecof flow f apply", Verb::Del) else { panic!() };
    assert_eq!(tree.values(&leaf), ["l1", "l2"]);
    let CandidateKind::Key { list, given } = kind("route x", Verb::Set) else { panic!() };
    assert_eq!(tree.keys(&list, &given), ["1", "main"]);
    let CandidateKind::Key { list, given } = kind("route", Verb::Set) else { panic!() };
    assert_eq!(tree.keys(&list, &given), ["x", "y"]);
}

#[test]
fn the_input_of_a_call_is_a_line_too() {
    let input = Path::default().child(node("lookup")).child(node("lookup input"));
    let mut tree = Tree::new(schema());
    for edit in line::set(&schema(), &input, &words("src 1.2.3.4 proto 6 link l1")).unwrap() {
        tree.apply(&edit).unwrap();
    }
    let json = tree::json::value(&tree, &input);
    assert_eq!(json, serde_json::json!({"src": "1.2.3.4", "proto": 6, "link": "l1"}));
    assert_eq!(tree.state().unwrap().words(&schema()), "lookup");
}

#[test]
fn brackets_alone_are_values() {
    let tree =
        tree("set route r 1 hop [ a b ]\nset route r 1 hop [\nset route r 1 hop ]\nset route r 1 hop c");
    let lines = set_lines::write(&tree, &Path::default());
    assert_eq!(
        lines,
        "set route r 1 hop [ a b ]\nset route r 1 hop [\nset route r 1 hop ]\nset route r 1 hop c\n"
    );
}

proptest! {
    #[test]
    fn lines_make_the_same_tree_again(numbers in prop::collection::vec(any::<u64>(), 0..60)) {
        let tree = grown(&numbers, true);
        keeps_its_rules(&tree);
        let text = set_lines::write(&tree, &Path::default());
        let mut again = Tree::new(schema());
        prop_assert!(set_lines::read(&mut again, &text).is_ok(), "{}", text);
        prop_assert_eq!(&again, &tree, "{}", text);
    }

    #[test]
    fn any_words_are_a_line_or_a_fault_within_it(
        line in prop::collection::vec(
            "ecof|port|p1|flow|match|route|\\[|\\]|[a-z0-9]{0,3}|link|apply|pair|number|blackhole|\\PC{0,3}", 0..12),
        verb in prop::sample::select(vec![Verb::Set, Verb::Del, Verb::Show, Verb::Edit]),
    ) {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let top = Path::default();
        let fault = match verb {
            Verb::Set => line::set(&schema(), &top, &words).err(),
            Verb::Del => line::del(&schema(), &top, &words).err(),
            Verb::Show => line::show(&schema(), &top, &words).err(),
            Verb::Edit => line::edit(&schema(), &top, &words).err(),
        };
        if let Some(fault) = fault {
            prop_assert!(fault.word <= words.len());
        } else {
            line::following(&schema(), &top, &words, verb).unwrap();
        }
    }

    /// Whatever is offered is taken.
    #[test]
    fn a_candidate_is_taken(picks in prop::collection::vec(any::<u16>(), 1..10)) {
        let mut line: Vec<String> = Vec::new();
        for pick in picks {
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            let all = line::following(&schema(), &Path::default(), &words, Verb::Set).unwrap();
            let literal: Vec<_> = all.iter().filter(|candidate| candidate.literal).collect();
            if literal.is_empty() {
                // A name, or a number of a range.
                let open = all.iter().find(|candidate| candidate.kind != CandidateKind::End);
                let Some(open) = open else { break };
                let first = open.text.trim_start_matches('<').split("..").next().unwrap_or("");
                line.push(if first.parse::<i64>().is_ok() { first.into() } else { "x".into() });
            } else {
                line.push(literal[usize::from(pick) % literal.len()].text.clone());
            }
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            if words.contains(&"power") || words.contains(&"secret") || words.contains(&"flags") {
                break;
            }
            let followed = line::following(&schema(), &Path::default(), &words, Verb::Set);
            prop_assert!(followed.is_ok(), "{:?}: {:?}", line, followed);
        }
    }

    #[test]
    fn changing_a_copy_leaves_the_original(
        first in prop::collection::vec(any::<u64>(), 0..30),
        more in prop::collection::vec(any::<u64>(), 0..30),
    ) {
        let tree = grown(&first, false);
        let text = tree::json::write(&tree, &Path::default(), tree::Defaults::Explicit);
        let other = changed(&tree, &more, false);
        keeps_its_rules(&other);
        prop_assert_eq!(tree::json::write(&tree, &Path::default(), tree::Defaults::Explicit), text);
    }
}

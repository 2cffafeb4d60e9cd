//! The tables of commands, one a mode. What can be configured is not here: the schema says it.

use api::{EventFilter, EventKind, LoadMode, LookupQuery, Request, Severity, UnitMode};
use tree::line::Verb;

use crate::grammar::{Action, Args, End, Filter, Kind, Node, Opt, Run, Source, Step, Value, What};
use crate::render;

/// Words that are taken for others.
pub const ALIASES: &[(&str, &str)] = &[("delete", "del")];

const fn word(word: &'static str, help: &'static str, then: Step) -> Node {
    Node { what: What::Word(word), help, then }
}

const fn value(name: &'static str, kind: Kind, help: &'static str, then: Step) -> Node {
    Node { what: What::Value(Value { name, kind }), help, then }
}

/// Words about the configuration.
const fn tree(verb: Verb, help: &'static str, then: Step) -> Node {
    Node { what: What::Tree(verb), help, then }
}

/// Something must follow.
const fn more(nodes: &'static [Node]) -> Step {
    Step { nodes, options: &[], end: End::More }
}

/// A command, complete here.
const fn run(run: Run) -> Step {
    Step { nodes: &[], options: &[], end: End::Run(run) }
}

/// A command, complete here, that can be said more narrowly.
const fn run_or(run: Run, nodes: &'static [Node]) -> Step {
    Step { nodes, options: &[], end: End::Run(run) }
}

/// An option's value, complete here.
const BACK: Step = Step { nodes: &[], options: &[], end: End::Back };

const fn filter(filter: fn(&Args) -> Filter) -> Step {
    Step { nodes: &[], options: &[], end: End::Filter(filter) }
}

const fn required(node: Node) -> Opt {
    Opt { node, required: true }
}

const fn optional(node: Node) -> Opt {
    Opt { node, required: false }
}

/// IP protocols that can be called by name, with number and meaning.
pub const PROTOCOLS: &[(&str, u8, &str)] = &[
    ("ah", 51, "IP Authentication Header"),
    ("esp", 50, "IP Encapsulating Security Payload"),
    ("gre", 47, "Generic Routing Encapsulation"),
    ("icmp", 1, "Internet Control Message Protocol"),
    ("icmpv6", 58, "Internet Control Message Protocol of IPv6"),
    ("igmp", 2, "Internet Group Management Protocol"),
    ("ipip", 4, "IPv4 inside IP"),
    ("l2tp", 115, "Layer Two Tunnelling Protocol"),
    ("ospf", 89, "Open Shortest Path First"),
    ("pim", 103, "Protocol Independent Multicast"),
    ("sctp", 132, "Stream Control Transmission Protocol"),
    ("tcp", 6, "Transmission Control Protocol"),
    ("udp", 17, "User Datagram Protocol"),
    ("udplite", 136, "Lightweight User Datagram Protocol"),
    ("vrrp", 112, "Virtual Router Redundancy Protocol"),
];

/// Every command of operational mode.
pub static ROOT: Step = more(&[
    SHOW_WORD,
    CALL_WORD,
    word("load", "Put a configuration from a file in force", more(LOAD_NOW)),
    MONITOR_WORD,
    PING_WORD,
    word("configure", "Go to configuration mode", run(Run::Configure(Action::Enter))),
    word("edit", "Go to configuration mode, to a level of it", run_or(Run::Configure(Action::Enter), LEVEL)),
    word("help", "Explain the commands that begin with these words", run(Run::Help)),
    word("exit", "Leave this shell", run(Run::Exit)),
    word("quit", "Leave this shell", run(Run::Exit)),
]);

const SHOW_WORD: Node = word("show", "Show state, counters and configuration", more(SHOW));
const CALL_WORD: Node = word("call", "Do something to the running system", more(CALL));
const MONITOR_WORD: Node = word("monitor", "Watch something until Ctrl-C", more(MONITOR));
const PING_WORD: Node =
    word("ping", "Round trips to sluiced and its data plane, or through a pair", PING_STEP);

/// Every command of configuration mode.
pub static CONFIGURE: Step = more(&[
    word("set", "Set a value, or make an entry", more(SET)),
    word("del", "Delete a value, an entry or all below a level; also delete", more(DEL)),
    word("edit", "Go down to a level", more(LEVEL)),
    word("up", "Go one level up, or more", run_or(Run::Configure(Action::Up), LEVELS)),
    word("top", "Go to the top level", run(Run::Configure(Action::Top))),
    word("dir", "What is here, one level", run_or(Run::Configure(Action::Dir), DIR)),
    word("show", "Show the candidate, or a part of it", run_or(SHOW_CANDIDATE, SHOW_CANDIDATE_PATH)),
    word("compare", "Differences of the candidate to what runs", run_or(COMPARE, COMPARE_WITH)),
    word("check", "Whether the candidate could be applied, and what it would do", run(CHECK)),
    word(
        "apply",
        "Put the candidate in force, or confirm what waits for it",
        Step { nodes: &[], options: APPLY, end: End::Run(Run::Configure(Action::Apply)) },
    ),
    word(
        "save",
        "Keep what runs for the next start, or write the candidate to a file",
        run_or(Run::Configure(Action::Save), SAVE),
    ),
    word("rollback", "Make the candidate what a revision was; what runs without a number", ROLLBACK_STEP),
    word("load", "Put a text into the candidate", more(LOAD)),
    word("discard", "Make the candidate what runs: forget all changes", run(DISCARD)),
    word(
        "run",
        "Run a command of operational mode",
        Step { nodes: &[], options: &[], end: End::Table(&RUN) },
    ),
    word("help", "Explain the commands that begin with these words", run(Run::Help)),
    word(
        "exit",
        "Leave this level, at the top configuration mode",
        run_or(Run::Configure(Action::Exit), EXIT),
    ),
    word("quit", "Leave configuration mode", run(Run::Configure(Action::Quit))),
]);

const SET: &[Node] =
    &[tree(Verb::Set, "Where from this level, and the value", run(Run::Configure(Action::Change)))];
const DEL: &[Node] = &[tree(
    Verb::Del,
    "Where from this level, and for one of several values that",
    run(Run::Configure(Action::Change)),
)];
const LEVEL: &[Node] = &[tree(Verb::Edit, "Where from this level", run(Run::Configure(Action::Edit)))];
const LEVELS: &[Node] =
    &[value("levels", Kind::Number { min: 1, max: 99 }, "How many levels", run(Run::Configure(Action::Up)))];
const DIR: &[Node] = &[tree(Verb::Show, "Where from this level", run(Run::Configure(Action::Dir)))];
const SHOW_CANDIDATE: Run = Run::ShowTree(|_| api::Source::Candidate);
const SHOW_CANDIDATE_PATH: &[Node] = &[tree(Verb::Show, "Where from this level", run(SHOW_CANDIDATE))];
const COMPARE: Run = Run::Ask {
    request: |args| Request::Compare {
        with: args.number("number").map_or(api::Source::Running, api::Source::Rollback),
    },
    render: |answer, _, style| Ok(render::differences(&serde_json::from_value::<Vec<_>>(answer)?, style)),
};
const COMPARE_STARTUP: Run = Run::Ask {
    request: |_| Request::Compare { with: api::Source::Startup },
    render: |answer, _, style| Ok(render::differences(&serde_json::from_value::<Vec<_>>(answer)?, style)),
};
const COMPARE_WITH: &[Node] = &[
    word("rollback", "To an earlier revision", more(COMPARE_REVISION)),
    word("startup", "To what a start of the machine begins with", run(COMPARE_STARTUP)),
];
const COMPARE_REVISION: &[Node] =
    &[value("number", REVISION, "Number of the revision, 0 is what runs", run(COMPARE))];
/// As `show rollbacks` numbers them.
const REVISION: Kind = Kind::Number { min: 0, max: 9999 };

const CHECK: Run = Run::Ask {
    request: |_| Request::Check,
    render: |answer, _, style| Ok(render::checked(&serde_json::from_value(answer)?, style)),
};
const APPLY: &[Opt] = &[
    optional(word("confirmed", "Roll back by itself unless an apply follows", more(MINUTES))),
    optional(word("comment", "Kept with the revision", more(COMMENT))),
];
const MINUTES: &[Node] =
    &[value("minutes", Kind::Number { min: 1, max: 10080 }, "Minutes until then, 1 to 10080: a week", BACK)];
const COMMENT: &[Node] = &[value("text", Kind::Text, "A text, in \"...\" if it has blanks", BACK)];
const SAVE: &[Node] = &[value(
    "file",
    Kind::File,
    "File on this machine; .json and .xml so, else set lines",
    run(Run::Configure(Action::Save)),
)];
const ROLLBACK: Run = Run::Ask {
    request: |args| Request::Rollback { number: args.number("number").unwrap_or(0) },
    render: |answer, _, style| Ok(render::changed(&serde_json::from_value(answer)?, style)),
};
const ROLLBACK_STEP: Step = run_or(ROLLBACK, ROLLBACK_NUMBER);
const ROLLBACK_NUMBER: &[Node] =
    &[value("number", REVISION, "Number of the revision, as \"run show rollbacks\" has it", run(ROLLBACK))];
const LOAD: &[Node] = &[
    word("merge", "Set what the text has, leave the rest", more(LOAD_MERGE)),
    word("replace", "In the place of the whole candidate", more(LOAD_REPLACE)),
    word("set", "Lines of set and del, one after the other", more(LOAD_SET)),
    word("early", "In the place of the candidate, from the early generation's names", more(LOAD_EARLY)),
];
const LOAD_MERGE: &[Node] = &load(LoadMode::Merge);
const LOAD_REPLACE: &[Node] = &load(LoadMode::Replace);
const LOAD_SET: &[Node] = &load(LoadMode::Set);
const LOAD_EARLY: &[Node] = &load(LoadMode::Early);
const fn load(mode: LoadMode) -> [Node; 2] {
    [
        word(
            "terminal",
            "What is typed or pasted next, up to Ctrl-D",
            run(Run::Configure(Action::Load(mode))),
        ),
        value(
            "file",
            Kind::File,
            "File on this machine: set lines, JSON or XML",
            run(Run::Configure(Action::Load(mode))),
        ),
    ]
}
const DISCARD: Run = Run::Ask {
    request: |_| Request::Discard,
    render: |answer, _, style| Ok(render::changed(&serde_json::from_value(answer)?, style)),
};
static RUN: Step = more(&[SHOW_WORD, CALL_WORD, MONITOR_WORD, PING_WORD]);
const EXIT: &[Node] = &[word(
    "configuration-mode",
    "Leave configuration mode from any level",
    run(Run::Configure(Action::Quit)),
)];
const SHOW: &[Node] = &[
    word("version", "Version, time since start and data plane of sluiced", run(SHOW_VERSION)),
    word("ports", "All ports with carrier, counters and what they serve", run(SHOW_PORTS)),
    word("port", "One port in detail", more(PORT)),
    word("link", "Links with the frames of both sides", run(SHOW_LINK)),
    word(
        "ecofilter-balancer",
        "The balancer on one screen: units, pairs, load",
        run_or(SHOW_BALANCER, BALANCER),
    ),
    word("liveness", "Keep-alives through the appliances", more(LIVENESS)),
    word("counters", "Where the frames went", more(COUNTERS)),
    word(
        "events",
        "What happened, oldest first",
        Step { nodes: &[], options: EVENTS, end: End::Run(SHOW_EVENTS) },
    ),
    word(
        "configuration",
        "The running configuration, or a part of it",
        run_or(SHOW_RUNNING, SHOW_RUNNING_PATH),
    ),
    word("startup", "The configuration that a start begins with", run_or(SHOW_STARTUP, SHOW_STARTUP_PATH)),
    word("rollbacks", "Applied configurations: who, when, from where", run(SHOW_ROLLBACKS)),
    word("rollback", "An earlier configuration, or a part of it", more(SHOW_REVISION)),
    word("target", "The data plane: address, state, table usage", run(SHOW_TARGET)),
];

const SHOW_RUNNING: Run = Run::ShowTree(|_| api::Source::Running);
const SHOW_RUNNING_PATH: &[Node] = &[tree(Verb::Show, "Where from the top", run(SHOW_RUNNING))];
const SHOW_STARTUP: Run = Run::ShowTree(|_| api::Source::Startup);
const SHOW_STARTUP_PATH: &[Node] = &[tree(Verb::Show, "Where from the top", run(SHOW_STARTUP))];
const SHOW_ROLLBACK: Run = Run::ShowTree(|args| api::Source::Rollback(args.number("number").unwrap_or(0)));
const SHOW_REVISION: &[Node] = &[value(
    "number",
    REVISION,
    "Number of the revision, 0 is what runs",
    run_or(SHOW_ROLLBACK, SHOW_ROLLBACK_PATH),
)];
const SHOW_ROLLBACK_PATH: &[Node] = &[tree(Verb::Show, "Where from the top", run(SHOW_ROLLBACK))];

const PORT: &[Node] = &[value(
    "name",
    Kind::Name(Source::Ports),
    "Name of a port",
    more(&[word("statistics", "Settings and counters of the port", run(SHOW_PORT))]),
)];

const BALANCER: &[Node] = &[
    word("ecofilter-unit", "Units in detail, all or one", run_or(SHOW_UNIT, UNIT)),
    word("flow", "Flow rules with packets, bytes and rates", run_or(SHOW_FLOW, FLOW)),
    word("balancing-config-hash", "Digests of the bucket tables, to compare devices", run(SHOW_HASH)),
    word(
        "lookup",
        "Which rule, bucket, unit, pair and core serve a session now",
        Step { nodes: &[], options: LOOKUP, end: End::Run(SHOW_LOOKUP) },
    ),
];
const UNIT: &[Node] =
    &[value("name", Kind::Name(Source::Units), "Name of an ecofilter-unit", run(SHOW_UNIT))];
const FLOW: &[Node] = &[value("name", Kind::Name(Source::Flows), "Name of a flow rule", run(SHOW_FLOW))];

const LOOKUP: &[Opt] = &[
    required(word("src", "Source address of the session", more(SRC))),
    required(word("dst", "Destination address of the session", more(DST))),
    optional(word("proto", "IP protocol; tcp without it", more(PROTO))),
    optional(word("src-port", "Source port, tcp and udp", more(SRC_PORT))),
    optional(word("dst-port", "Destination port, tcp and udp", more(DST_PORT))),
    optional(word("vlan", "VLAN tags of the frame", more(VLAN))),
    optional(word("link", "Link that the frame comes in by; the first without it", more(LINK))),
    optional(word("side", "Side that the frame comes in by; lan without it", more(SIDE))),
];
const SRC: &[Node] = &[value("address", Kind::Address, "IPv4 or IPv6 address", BACK)];
const DST: &[Node] = &[value("address", Kind::Address, "IPv4 or IPv6 address", BACK)];
const PROTO: &[Node] = &[value("protocol", Kind::Protocol, "Number, or a name such as tcp", BACK)];
const SRC_PORT: &[Node] = &[value("port", Kind::Number { min: 0, max: 65535 }, "Port, 0 to 65535", BACK)];
const DST_PORT: &[Node] = &[value("port", Kind::Number { min: 0, max: 65535 }, "Port, 0 to 65535", BACK)];
const VLAN: &[Node] = &[value("vlans", Kind::Vlans, "VLAN ids, outermost first, such as 100,20", BACK)];
const LINK: &[Node] = &[value("link", Kind::Name(Source::Links), "Name of a link", BACK)];
const SIDE: &[Node] = &[value("side", Kind::Choice(SIDES), "Side of the link", BACK)];
const SIDES: &[(&str, &str)] =
    &[("lan", "By the LAN port of the link"), ("wan", "By the WAN port of the link")];

const LIVENESS: &[Node] =
    &[word("profile-status", "Keep-alives of every pair, by profile", run_or(SHOW_LIVENESS, PROFILE))];
const PROFILE: &[Node] =
    &[value("name", Kind::Name(Source::Profiles), "Name of a liveness profile", run(SHOW_LIVENESS))];
const COUNTERS: &[Node] =
    &[word("drops", "Verdict of every frame, by reason, link and pair", run(SHOW_DROPS))];
const EVENTS: &[Opt] = &[
    KIND_OPTION,
    SEVERITY_OPTION,
    SUBJECT_OPTION,
    optional(word("last", "Only the newest of them", more(LAST))),
];
const NEW_EVENTS: &[Opt] = &[
    KIND_OPTION,
    SEVERITY_OPTION,
    SUBJECT_OPTION,
    optional(word("last", "So many that happened before come first", more(LAST))),
];
const KIND_OPTION: Opt = optional(word("kind", "Only events about that", more(KIND)));
const SEVERITY_OPTION: Opt = optional(word("severity", "Only events as severe, or worse", more(SEVERITY)));
const SUBJECT_OPTION: Opt = optional(word("subject", "Only events whose subject begins so", more(SUBJECT)));
const LAST: &[Node] = &[value("count", Kind::Number { min: 1, max: 1_000_000 }, "How many events", BACK)];
const KIND: &[Node] = &[value("kind", Kind::Choice(KINDS), "What the events are about", BACK)];
const KINDS: &[(&str, &str)] = &[
    (EventKind::Pair.as_str(), "A pair"),
    (EventKind::Core.as_str(), "A worker core behind a pair"),
    (EventKind::Unit.as_str(), "An ecofilter-unit"),
    (EventKind::Mode.as_str(), "The mode of a unit, by hand"),
    (EventKind::Port.as_str(), "A port"),
    (EventKind::Configuration.as_str(), "A configuration, or what follows it"),
    (EventKind::Access.as_str(), "Who came in, or was kept out"),
    (EventKind::Target.as_str(), "The data plane"),
    (EventKind::Liveness.as_str(), "The watching of pairs itself"),
];
const SEVERITY: &[Node] =
    &[value("severity", Kind::Choice(SEVERITIES), "The least that an event must be", BACK)];
const SEVERITIES: &[(&str, &str)] = &[
    (Severity::Info.as_str(), "All events"),
    (Severity::Warning.as_str(), "Something is not as it should be, or worse"),
    (Severity::Error.as_str(), "Somebody has to do something"),
];
const SUBJECT: &[Node] =
    &[value("subject", Kind::Beginning(Source::Subjects), "Such as a unit, or UNIT/PAIR", BACK)];

/// Which events `show events` and `monitor events` are about.
pub fn event_filter(args: &Args) -> EventFilter {
    let word = |name| args.text(name).unwrap_or_default();
    EventFilter {
        kind: EventKind::ALL.into_iter().find(|kind| kind.as_str() == word("kind")),
        severity: Severity::ALL.into_iter().find(|severity| severity.as_str() == word("severity")),
        subject: args.text("subject"),
    }
}

const CALL: &[Node] = &[word("ecofilter-balancer", "Something about the balancer", more(CALL_BALANCER))];
const CALL_BALANCER: &[Node] = &[
    word("set-bypass-ecofilter-unit", "Take a unit out of the path by hand, or back", more(CALL_UNIT)),
    word("clear-hold", "End the hold of a pair that went up and down too often", more(HOLD_UNIT)),
];
const HOLD_UNIT: &[Node] =
    &[value("unit", Kind::Name(Source::Units), "Name of an ecofilter-unit", more(HOLD_PAIR))];
const HOLD_PAIR: &[Node] =
    &[value("pair", Kind::Name(Source::Pairs), "Name of a pair of the unit", run(CLEAR_HOLD))];
const CALL_UNIT: &[Node] =
    &[value("name", Kind::Name(Source::Units), "Name of an ecofilter-unit", more(CALL_MODE))];
const CALL_MODE: &[Node] = &[value("mode", Kind::Choice(MODES), "Mode of the unit", run(SET_MODE))];
const MODES: &[(&str, &str)] = &[
    ("auto", "Balance while enough pairs are up, else bypass"),
    ("bypass", "All traffic of the unit to the peer port of its link"),
    ("primary", "Balance, whatever the state of the pairs"),
];

const LOAD_NOW: &[Node] = &[word("replace", "Replace the whole running configuration", more(LOAD_FILE))];
const LOAD_FILE: &[Node] =
    &[value("file", Kind::File, "File on this machine, RFC 7951 JSON", run(Run::LoadReplace))];

const PING_STEP: Step = Step { nodes: PING_PAIR, options: COUNT, end: End::Run(Run::Ping) };
const PING_PAIR: &[Node] = &[word("pair", "By the keep-alives of a pair", more(PING_UNIT))];
const PING_UNIT: &[Node] =
    &[value("unit", Kind::Name(Source::Units), "Name of an ecofilter-unit", more(PING_NAME))];
const PING_NAME: &[Node] = &[value(
    "pair",
    Kind::Name(Source::Pairs),
    "Name of a pair of the unit",
    Step { nodes: &[], options: COUNT, end: End::Run(Run::PingPair) },
)];
const COUNT: &[Opt] = &[optional(word("count", "How often, once a second; 5 without it", more(TIMES)))];
const TIMES: &[Node] =
    &[value("times", Kind::Number { min: 1, max: 1_000_000 }, "How many times, 1 to 1000000", BACK)];

const MONITOR: &[Node] = &[
    word(
        "events",
        "Events as they happen, until Ctrl-C",
        Step { nodes: &[], options: NEW_EVENTS, end: End::Run(Run::MonitorEvents) },
    ),
    word(
        "ecofilter-balancer",
        "The balancer as it is now, on the whole screen, until q",
        run(Run::MonitorBalancer),
    ),
];

/// What can follow a bar.
pub static FILTERS: Step = more(&[
    word("match", "Only lines that match a regular expression", more(MATCH)),
    word("except", "Only lines that do not match a regular expression", more(EXCEPT)),
    word("count", "The number of lines", filter(|_| Filter::Count)),
    word("json", "The answer as one JSON document", filter(|_| Filter::Json)),
    word("xml", "The configuration as XML", filter(|_| Filter::Xml)),
    word("set", "The configuration as set lines", filter(|_| Filter::Set)),
    word("defaults", "With what is in force without being set", filter(|_| Filter::Defaults)),
    word("no-more", "All at once, without a pager", filter(|_| Filter::NoMore)),
]);
const MATCH: &[Node] = &[value(
    "regex",
    Kind::Pattern,
    "Regular expression, in \"...\" if it has blanks or |",
    filter(|args| args.pattern("regex").map_or(Filter::NoMore, Filter::Match)),
)];
const EXCEPT: &[Node] = &[value(
    "regex",
    Kind::Pattern,
    "Regular expression, in \"...\" if it has blanks or |",
    filter(|args| args.pattern("regex").map_or(Filter::NoMore, Filter::Except)),
)];

const SHOW_VERSION: Run = Run::Ask {
    request: |_| Request::ShowVersion,
    render: |answer, _, style| Ok(render::version(&serde_json::from_value(answer)?, style)),
};
const SHOW_PORTS: Run = Run::Ask {
    request: |_| Request::ShowPorts,
    render: |answer, _, style| Ok(render::ports(&serde_json::from_value::<Vec<_>>(answer)?, style)),
};
const SHOW_PORT: Run = Run::Ask {
    request: |args| Request::ShowPortStatistics { port: args.text("name").unwrap_or_default() },
    render: |answer, _, style| Ok(render::port(&serde_json::from_value(answer)?, style)),
};
const SHOW_LINK: Run = Run::Ask {
    request: |_| Request::ShowLink,
    render: |answer, _, style| Ok(render::links(&serde_json::from_value::<Vec<_>>(answer)?, style)),
};
const SHOW_BALANCER: Run = Run::Ask {
    request: |_| Request::ShowBalancer,
    render: |answer, _, style| Ok(render::balancer(&serde_json::from_value(answer)?, style)),
};
const SHOW_UNIT: Run = Run::Ask {
    request: |args| Request::ShowUnit { unit: args.text("name") },
    render: |answer, _, style| Ok(render::units(&serde_json::from_value::<Vec<_>>(answer)?, style)),
};
const SHOW_FLOW: Run = Run::Ask {
    request: |args| Request::ShowFlow { flow: args.text("name") },
    render: |answer, args, style| {
        let flows = serde_json::from_value::<Vec<_>>(answer)?;
        Ok(match args.text("name") {
            Some(_) => flows.iter().map(|flow| render::flow(flow, style)).collect(),
            None => render::flows(&flows, style),
        })
    },
};
const SHOW_HASH: Run = Run::Ask {
    request: |_| Request::ShowConfigHash,
    render: |answer, _, style| Ok(render::config_hash(&serde_json::from_value(answer)?, style)),
};
const SHOW_LOOKUP: Run = Run::Ask {
    request: |args| {
        Request::Lookup(LookupQuery {
            src: args.text("src").unwrap_or_default(),
            dst: args.text("dst").unwrap_or_default(),
            proto: args.number("proto"),
            src_port: args.number("src-port"),
            dst_port: args.number("dst-port"),
            vlan: args.numbers("vlan"),
            link: args.text("link"),
            side: args.text("side"),
        })
    },
    render: |answer, _, style| Ok(render::lookup(&serde_json::from_value(answer)?, style)),
};
const SHOW_LIVENESS: Run = Run::Ask {
    request: |args| Request::ShowLiveness { profile: args.text("name") },
    render: |answer, args, style| {
        let pairs = serde_json::from_value::<Vec<_>>(answer)?;
        Ok(match args.text("name") {
            Some(_) => render::liveness_in_detail(&pairs, style),
            None => render::liveness(&pairs, style),
        })
    },
};
const SHOW_DROPS: Run = Run::Ask {
    request: |_| Request::ShowDrops,
    render: |answer, _, style| Ok(render::drops(&serde_json::from_value(answer)?, style)),
};
const SHOW_EVENTS: Run = Run::Ask {
    request: |args| Request::ShowEvents { after: 0, last: args.number("last"), filter: event_filter(args) },
    render: |answer, _, style| {
        let events = serde_json::from_value::<Vec<_>>(answer)?;
        Ok(events.iter().map(|event| render::event(event, style)).collect())
    },
};
const SHOW_ROLLBACKS: Run = Run::Ask {
    request: |_| Request::ShowRollbacks,
    render: |answer, _, style| Ok(render::rollbacks(&serde_json::from_value::<Vec<_>>(answer)?, style)),
};
const SHOW_TARGET: Run = Run::Ask {
    request: |_| Request::ShowTarget,
    render: |answer, _, style| Ok(render::target(&serde_json::from_value(answer)?, style)),
};
const SET_MODE: Run = Run::Ask {
    request: |args| Request::SetUnitMode {
        unit: args.text("name").unwrap_or_default(),
        mode: match args.text("mode").as_deref() {
            Some("bypass") => UnitMode::Bypass,
            Some("primary") => UnitMode::Primary,
            _ => UnitMode::Auto,
        },
    },
    render: |_, args, _| {
        let text = |name| args.text(name).unwrap_or_default();
        Ok(format!("ecofilter-unit {}: mode {}\n", text("name"), text("mode")))
    },
};
const CLEAR_HOLD: Run = Run::Ask {
    request: |args| Request::ClearHold {
        unit: args.text("unit").unwrap_or_default(),
        pair: args.text("pair").unwrap_or_default(),
    },
    render: |_, args, _| {
        let text = |name| args.text(name).unwrap_or_default();
        Ok(format!("pair {} of ecofilter-unit {}: hold ended\n", text("pair"), text("unit")))
    },
};

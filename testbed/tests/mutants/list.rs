//! The mistakes.

use dataplane::SteeringMode;
use dataplane::entry::{Condition, Entry};
use dataplane::tables::{LinkEntry, SteeringEntry, TableEntry};
use serde_json::{Value, json};

use crate::edit::{
    action_id, actions, and_not, cases, conditions, conditions_of, const_entries, constant, count_elsewhere,
    drop_case, drop_const_entries, hash_input, mask_case, redirect, state, swap_choice, table,
};

/// Where a mistake is made.
pub(crate) enum Mistake {
    /// In the compiled program.
    Program(fn(&mut Value)),
    /// In entries on their way to it.
    Entries(fn(&mut Entry)),
}

use Mistake::{Entries, Program};

const CHOSEN_HIGH: &str = "(hdr.outer_v4.src < hdr.outer_v4.dst) ? hdr.outer_v4.dst : hdr.outer_v4.src";
const CHOSEN_PORT: &str = "(hdr.ports.src < hdr.ports.dst) ? hdr.ports.src : hdr.ports.dst";

/// Name and mistake.
pub(crate) const MUTANTS: &[(&str, Mistake)] = &[
    // Parse: tags and labels.
    ("a third tag is not parsed", Program(|p| redirect(p, "vlan1", "vlan2", "accept"))),
    ("a fourth tag is not noticed", Program(|p| redirect(p, "vlan2", "vlan_too_deep", "accept"))),
    ("0x9100 is no tag behind the first", Program(|p| drop_case(p, "vlan0", "0x9100"))),
    ("a seventh label is not noticed", Program(|p| redirect(p, "mpls5", "mpls_too_deep", "accept"))),
    ("MPLS multicast is not parsed", Program(|p| drop_case(p, "vlan0", "0x8848"))),
    ("LLC lengths end at 0x4ff", Program(|p| mask_case(p, "vlan0", "0x0400", "0xff00"))),
    ("the checksum below labels does not matter", Program(|p| drop_const_entries(p, "session", "none()"))),
    ("IPv6 below labels is not looked for", Program(|p| redirect(p, "below_labels", "outer_v6", "accept"))),
    ("the PPPoE code does not matter", Program(|p| mask_case(p, "pppoe", "0x11000021", "0xff00ffff"))),
    ("the PPPoE version does not matter", Program(|p| mask_case(p, "pppoe", "0x11000057", "0x00ffffff"))),
    // Parse: IPv4.
    (
        "15 words of IPv4 header are taken for 14",
        Program(|p| redirect(p, "outer_v4", "outer_options10", "outer_options9")),
    ),
    ("the top bit of a fragment's offset does not matter", Program(top_bit_of_offset)),
    ("DF is taken for MF", Program(dont_fragment)),
    ("a first fragment is not marked", Program(|p| state(p, "first_fragment")["parser_ops"] = json!([]))),
    (
        "a first fragment has no ports",
        Program(|p| redirect(p, "outer_v4_whole", "first_fragment", "later_fragment")),
    ),
    // Parse: IPv6.
    ("a fourth extension header is not walked", Program(fourth_extension)),
    ("extension headers have units of four bytes", Program(units_of_four)),
    ("destination options end the walk", Program(|p| drop_case(p, "outer_v6_whole", "0x3c"))),
    ("mobility headers are walked", Program(mobility)),
    ("an atomic fragment is a fragment", Program(atomic_fragment)),
    (
        "an inner fragment header is not walked",
        Program(|p| redirect(p, "inner_v6_whole", "inner_fragment0", "accept")),
    ),
    // Parse: tunnels and layer 4.
    ("a GRE key is not skipped", Program(gre_key)),
    ("GRE with routing is looked into", Program(|p| mask_case(p, "gre", "0x0000000000", "0x00ffffffff"))),
    ("GRE version 1 is looked into", Program(|p| mask_case(p, "gre", "0x0000000000", "0xff00ffffff"))),
    ("IPv6 in IPv4 is not looked into", Program(|p| redirect(p, "outer_v4_whole", "inner_v6", "accept"))),
    ("an inner header stands though it is cut", Program(cut_inner)),
    ("UDP-Lite has no ports", Program(|p| drop_const_entries(p, "protocol", "PROTO_UDP_LITE"))),
    // Hash.
    (
        "the greater address is the lesser",
        Program(|p| swap_choice(p, "SluiceIngress.classify.outer_v4_session", CHOSEN_HIGH)),
    ),
    (
        "the lesser port is the greater",
        Program(|p| swap_choice(p, "SluiceIngress.classify.set_ports", CHOSEN_PORT)),
    ),
    ("the protocol is not hashed", Program(|p| drop(hash_input(p, "hash(meta.hash_layer_3, ").pop()))),
    ("ports of fragments are hashed", Program(fragments_by_ports)),
    ("dst-ip and src-ip change sides", Program(sides_of_hash)),
    (
        "the hash has 15 bits",
        Program(|p| constant(p, "SluiceIngress.balance.by_layer_3", "0xffff", "0x7fff")),
    ),
    // Rules.
    (
        "a tag does not show that it is there",
        Program(|p| constant(p, "SluiceIngress.classify.one_tag", "0x1000", "0x0000")),
    ),
    ("the second tag is matched as the first", Program(second_tag)),
    ("LLC addresses change places", Program(llc_addresses)),
    ("IPv6 frames meet the rules for IPv4", Program(v6_rules)),
    ("the lowest priority wins", Entries(reverse_priority)),
    ("a port range ends one too early", Entries(shorten_ranges)),
    // Units, buckets, pairs.
    ("an unknown unit balances", Program(|p| drop_reason(p, "unit_bypass"))),
    ("primary does not ignore pair states", Program(|p| constant(p, "unit_primary", "0x01", "0x00"))),
    ("a pair in bypass is up", Program(|p| constant(p, "pair_bypass", "0x01", "0x00"))),
    (
        "a missing bucket is counted as a pair that is down",
        Program(|p| constant(p, "no_bucket", "0x0b", "0x09")),
    ),
    ("a copy is not made", Program(no_clone)),
    ("a down pair's copy drops the frame", Program(copy_dropped)),
    // Steering header.
    ("the core is always 0", Program(|p| constant(p, "to_pair", "0x8", "0x10"))),
    ("the base VID is one too high", Entries(shift_base)),
    ("a VID has 11 bits", Program(|p| constant(p, "SluiceIngress.ports.dot1q_vid", "0x0fff", "0x07ff"))),
    (
        "priority bits belong to the VID",
        Program(|p| constant(p, "SluiceIngress.back.dot1q_vid", "0x0fff", "0xffff")),
    ),
    ("a frame returns on the other side", Entries(swap_sides)),
    ("an unknown link has no reason of its own", Program(|p| constant(p, "unknown_link", "0x14", "0x13"))),
    ("copies come back", Program(|p| constant(p, "copy_pair_port", "0x03", "0x02"))),
    ("keep-alives are taken from links", Program(keep_alive_from_links)),
    // Leaving.
    ("an MTU is one too large", Program(mtu_off_by_one)),
    (
        "the steering header does not count in the MTU",
        Program(|p| constant(p, "SluiceEgress.leave.longer", "0x0004", "0x0000")),
    ),
    ("copies are never too long", Program(long_copies)),
    ("frames to pairs are counted as returned", Program(|p| count_elsewhere(p, "pair_out", "link_out"))),
    (
        "frames of pairs are counted as of links",
        Program(|p| count_elsewhere(p, "pair_verdicts", "link_verdicts")),
    ),
    ("frames out are not counted by port", Program(|p| count_elsewhere(p, "port_out", "port_lost"))),
];

/// Offset and more-fragments of a later fragment, whatever the protocol.
fn top_bit_of_offset(program: &mut Value) {
    for case in cases(program, "outer_v4_whole", "0x00000000") {
        assert_eq!(case["mask"], json!("0x1fff0100"));
        case["mask"] = json!("0x0fff0100");
    }
}

fn dont_fragment(program: &mut Value) {
    let key = &mut state(program, "outer_v4_whole")["transition_key"][1]["value"][1];
    assert_eq!(*key, json!("more_fragments"));
    *key = json!("flags");
}

fn fourth_extension(program: &mut Value) {
    redirect(program, "outer_extension2", "outer_extension3", "accept");
    redirect(program, "outer_extension2", "outer_fragment3", "accept");
}

fn units_of_four(program: &mut Value) {
    let mut ops = state(program, "outer_extension0")["parser_ops"].to_string();
    assert!(ops.contains(r#""0x6""#));
    ops = ops.replace(r#""0x6""#, r#""0x5""#);
    state(program, "outer_extension0")["parser_ops"] = serde_json::from_str(&ops).expect("JSON");
}

fn mobility(program: &mut Value) {
    let mut walked = cases(program, "outer_v6_whole", "0x00")[0].clone();
    walked["value"] = json!("0x87");
    let transitions = state(program, "outer_v6_whole")["transitions"].as_array_mut().expect("a list");
    transitions.insert(0, walked);
}

/// Whatever is no fragment after all.
fn atomic_fragment(program: &mut Value) {
    for transition in state(program, "outer_fragment0")["transitions"].as_array_mut().expect("a list") {
        if transition["value"].as_str().is_some_and(|value| value.starts_with("0x000000")) {
            transition["next_state"] = json!("FrameParser_later_fragment");
        }
    }
}

fn gre_key(program: &mut Value) {
    for case in cases(program, "gre", "0x0000000100") {
        case["next_state"] = json!("FrameParser_gre_payload");
    }
}

fn cut_inner(program: &mut Value) {
    let whole = state(program, "inner_v4_whole")["parser_ops"][0].clone();
    state(program, "inner_v4")["parser_ops"].as_array_mut().expect("a list").push(whole);
}

fn fragments_by_ports(program: &mut Value) {
    for entry in const_entries(program, "bucket_of", "METHOD_LAYER_4") {
        entry["match_key"][3]["mask"] = json!("0x00");
    }
}

fn sides_of_hash(program: &mut Value) {
    let (src, dst) = (
        action_id(program, "SluiceIngress.balance.by_src"),
        action_id(program, "SluiceIngress.balance.by_dst"),
    );
    for entry in const_entries(program, "bucket_of", "SIDE_") {
        let action = &mut entry["action_entry"]["action_id"];
        *action = if *action == src { dst.clone() } else { src.clone() };
    }
}

fn second_tag(program: &mut Value) {
    let key = table(program, "rules_v4")["key"].as_array_mut().expect("a list");
    let first = key[2]["target"].clone();
    assert_eq!(key[3]["name"], json!("vlan1"));
    key[3]["target"] = first;
}

fn llc_addresses(program: &mut Value) {
    for action in actions(program, "SluiceIngress.classify.set_llc") {
        let primitives = action["primitives"].as_array_mut().expect("a list");
        let [dsap, ssap] = primitives.as_mut_slice() else { panic!("two assignments") };
        std::mem::swap(&mut dsap["parameters"][1], &mut ssap["parameters"][1]);
    }
}

/// The condition on which a frame meets `rules_v6`: never.
fn v6_rules(program: &mut Value) {
    for condition in conditions_of(program, "rules.p4", "meta.ip_version == 6") {
        condition["value"]["right"]["value"] = json!("0x05");
    }
}

fn drop_reason(program: &mut Value, action: &str) {
    actions(program, action)[0]["primitives"] = json!([]);
}

fn no_clone(program: &mut Value) {
    for action in actions(program, "SluiceIngress.balance.copy") {
        action["primitives"].as_array_mut().expect("a list").pop();
    }
}

fn copy_dropped(program: &mut Value) {
    let mut entry = const_entries(program, "share", "(PAIR_DROP, 1, 0)")[0].clone();
    entry["match_key"][2]["key"] = json!("0x01");
    table(program, "share")["entries"].as_array_mut().expect("a list").push(entry);
}

fn keep_alive_from_links(program: &mut Value) {
    let keep_alive = conditions(program, "hdr.eth.isValid() && hdr.eth.type == TYPE_KEEP_ALIVE")[0].clone();
    for condition in conditions(program, "meta.passed.role == ROLE_LINK") {
        *condition = and_not(condition.clone(), keep_alive.clone());
    }
}

/// A length that exceeds it by one fits too.
fn mtu_off_by_one(program: &mut Value) {
    let mut fits = const_entries(program, "length", "fits()")[0].clone();
    fits["match_key"][0]["key"] = json!("0x0001");
    table(program, "length")["entries"].as_array_mut().expect("a list").push(fits);
}

/// Nobody looks at the length of a copy.
fn long_copies(program: &mut Value) {
    let copy = conditions(program, "meta.passed.replica == REPLICA_COPY")[0].clone();
    for condition in conditions(program, "meta.drop == 0 && meta.passed.reason != REASON_KEEP_ALIVE") {
        *condition = and_not(condition.clone(), copy.clone());
    }
}

fn reverse_priority(entry: &mut Entry) {
    if entry.priority > 0 {
        entry.priority = 100_000 - entry.priority;
    }
}

fn shorten_ranges(entry: &mut Entry) {
    for (_, condition) in &mut entry.key {
        if let Condition::Range { low, high } = condition
            && low < high
        {
            *high -= 1;
        }
    }
}

fn shift_base(entry: &mut Entry) {
    if let Ok(TableEntry::Steering(steering)) = TableEntry::parse(entry)
        && let SteeringMode::Dot1q { tpid, base_vid } = steering.mode
        && base_vid < 4095
    {
        *entry = SteeringEntry { mode: SteeringMode::Dot1q { tpid, base_vid: base_vid + 1 } }.entry();
    }
}

fn swap_sides(entry: &mut Entry) {
    if let Ok(TableEntry::Link(link)) = TableEntry::parse(entry) {
        *entry = LinkEntry { side: link.side.opposite(), ..link }.entry();
    }
}

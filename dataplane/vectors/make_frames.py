#!/usr/bin/env python3
"""Writes the vector files in frames/: tables, frames, and what the data-plane contract says must become of them.

Independent of the project's code on purpose: expected values are worked out here, case by case; hashes are zlib's or
those published in hash.json. Run it after a change of the contract; `docs/vectors.md` has the format. An argument names
another folder to write to.
"""
import json
import struct
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent
OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "frames"
MACS = bytes.fromhex("020000000002020000000001")
FORWARDED, RETURNED, TO_CONTROLLER = ("to-ecofilter", None), ("return", None), ("to-controller", None)


def bypass(reason):
    return ("bypass", reason)


def drop(reason):
    return ("drop", reason)


# Frames.

def ethernet(ethertype, payload=b"", tags=()):
    tags = b"".join(struct.pack(">HH", tpid, tci) for tpid, tci in tags)
    return MACS + tags + struct.pack(">H", ethertype) + payload


def dot1q(*vids):
    return [(0x8100, vid) for vid in vids]


def ipv4(payload=b"", src="10.0.0.1", dst="198.51.100.7", proto=6, fragment=0):
    address = lambda text: bytes(int(part) for part in text.split("."))
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, fragment, 64, proto, 0)
    head += address(src) + address(dst)
    total = sum(struct.unpack(">10H", head))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack(">H", 0xFFFF - total) + head[12:] + payload


def tcp(sport=40000, dport=443, size=20):
    return (struct.pack(">HH", sport, dport) + bytes(8) + b"\x50" + bytes(7)).ljust(size, b"x")


def ipv6(payload=b"", proto=6):
    src, dst = bytes.fromhex("20010db8" + "00" * 11 + "01"), bytes.fromhex("20010db8" + "00" * 11 + "02")
    return struct.pack(">IHBB", 0x6000_0000, len(payload), proto, 64) + src + dst + payload


def tcp4(tags=(), **fields):
    ports = {name: fields.pop(name) for name in ("sport", "dport", "size") if name in fields}
    return ethernet(0x0800, ipv4(tcp(**ports), **fields), tags)


def sized(length, tags=()):
    """A TCP frame of this length, Ethernet header included."""
    return tcp4(tags, size=length - 34 - 4 * len(tags))


def arp(tags=()):
    return ethernet(0x0806, bytes.fromhex("0001080006040001") + MACS[6:] + bytes([10, 1, 0, 1]) + bytes(10), tags)


def labels(count, payload):
    stack = [struct.pack(">HBB", label, label == count, 64) for label in range(1, count + 1)]
    return b"".join(stack) + payload


KEEP_ALIVE = ethernet(0x88B5, b"SLKA\x01" + bytes(41))


def push(frame, *halves):
    """The frame with four bytes behind the MACs, as two numbers of 16 bits."""
    return frame[:12] + struct.pack(">HH", *halves) + frame[12:]


def native(frame, core, link):
    return push(frame, 0x88B6, core << 8 | link)


# Entries.

def entry(table, action, match=None, params=None, priority=None):
    made = {"table": table}
    if match:
        made["match"] = match
    if priority is not None:
        made["priority"] = priority
    made["action"] = action
    if params:
        made["params"] = params
    return made


def link(index, lan, wan):
    ports = [(lan, wan, 0), (wan, lan, 1)]
    return [
        entry("ports", "link_port", {"ingress_port": port}, {"link": index, "side": side, "peer_port": peer})
        for port, peer, side in ports
    ] + [entry("links", "to_link_port", {"link": index, "side": side}, {"port": port}) for port, _, side in ports]


def pair(number, lan, wan, state="pair_up", copy=False, sessions=True):
    made = []
    if state:
        made.append(entry("pair_state", state, {"pair": number}))
    for port, side in ((lan, 0), (wan, 1)):
        role = "copy_pair_port" if copy else "pair_port"
        made.append(entry("ports", role, {"ingress_port": port}, {"pair": number, "side": side}))
        made.append(entry("pair_ports", "to_pair_port", {"pair": number, "side": side}, {"port": port}))
        if sessions:
            made.append(entry("clone_sessions", "replica", {"session_id": port + 1}, {"egress_port": port, "instance": 1}))
    return made


def unit(number, action="unit_balance", method=0, mask=0, buckets=()):
    params = None if action == "unit_bypass" else {"method": method, "bucket_mask": mask}
    return [entry("units", action, {"unit": number}, params)] + [
        entry("buckets", "to_pair", {"unit": number, "bucket": bucket}, {"pair": to, "core": core})
        for bucket, (to, core) in enumerate(buckets)
    ]


def backup(number, other, method=0, mask=0):
    return entry("units", "unit_backup", {"unit": number}, {"method": method, "bucket_mask": mask, "unit": other})


def odd_bucket(number, action, reason=None):
    return entry("buckets", action, {"unit": number, "bucket": 0}, None if reason is None else {"reason": reason})


def rule(priority, action, unit=None, family=4, **match):
    params = None if unit is None else {"unit": unit}
    return entry(f"rules_v{family}", action, match, params, priority)


def vid(number):
    return f"{0x1000 | number:#x}&0x1fff"


def mtu(port, value):
    return entry("port_mtu", "set_mtu", {"egress_port": port}, {"mtu": value})


def frame(name, port, sent, ending, *outputs):
    made = {"name": name, "port": port, "hex": sent.hex(), "verdict": ending[0]}
    if ending[1]:
        made["reason"] = ending[1]
    made["outputs"] = [{"port": out, "hex": left.hex()} for out, left in outputs]
    return made


def same(name, port, out, sent, ending):
    return frame(name, port, sent, ending, (out, sent))


def lost(name, port, sent, ending):
    return frame(name, port, sent, ending)


def counter(name, cell, packets, size):
    return {"counter": name, "cell": cell, "packets": packets, "bytes": size}


def write(name, about, frames, entries=None, counters=None, **site):
    made = {"about": about}
    if entries is not None:
        made["entries"] = entries
    made.update({key.replace("_", "-"): value for key, value in site.items()})
    made["frames"] = frames
    if counters:
        made["counters"] = counters
    (OUT / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")


# The published frames, one file a method: 16 buckets, bucket b to pair b % 4 and core b, by link 7.

def published():
    vectors = json.loads((HERE / "hash.json").read_text())
    pairs = [entry for number in range(4) for entry in pair(number, 10 + 2 * number, 11 + 2 * number)]
    rules = [rule(1, "rule_to_unit", 1, family) for family in (4, 6)]
    for number, method in enumerate(("layer-3", "layer-4", "dst-ip", "src-ip")):
        buckets = [(bucket % 4, bucket) for bucket in range(16)]
        entries = link(7, 1, 2) + pairs + unit(1, method=number, mask=15, buckets=buckets) + rules
        frames = []
        for vector in vectors:
            sent, wan = bytes.fromhex(vector["frame"]), vector["side"] == "wan"
            port, peer, expect = (2, 1, vector["expect"]) if wan else (1, 2, vector["expect"])
            if not expect["found"]:
                frames.append(same(vector["name"], port, peer, sent, bypass(expect["why"])))
                continue
            bucket = int(expect["hash"][method], 16) & 15
            out = 10 + 2 * (bucket % 4) + wan
            frames.append(frame(vector["name"], port, sent, FORWARDED, (out, native(sent, bucket, 7))))
        write(f"hash-{method}", f"The frames of hash.json, balanced by {method} (contract, Parse and Hash).", frames, entries)


def steps():
    entries = link(5, 1, 2) + link(6, 3, 4)
    entries += pair(9, 10, 11) + pair(300, 12, 13, "pair_bypass") + pair(301, 14, 15, "pair_drop")
    entries += [entry("pair_state", "pair_up", {"pair": 302})] + pair(303, 16, 17, None)
    entries += unit(1, buckets=[(9, 3)]) + unit(2, "unit_bypass") + unit(3, buckets=[(300, 0)])
    entries += unit(4, buckets=[(301, 0)]) + unit(5) + unit(6, buckets=[(302, 0)]) + unit(7, buckets=[(303, 0)])
    entries += [rule(100 + number, "rule_to_unit", number, vlan0=vid(100 + number)) for number in range(1, 9)]
    entries += [rule(101, "rule_to_unit", 1, 6, vlan0=vid(101))]
    entries += [rule(200, "rule_bypass", vlan0=vid(200)), rule(201, "rule_drop", vlan0=vid(201))]
    balanced = tcp4(dot1q(101))
    six = ethernet(0x86DD, ipv6(tcp()), dot1q(101))
    other = tcp4(dot1q(200))
    frames = [
        same("no rule matches, LAN", 1, 2, tcp4(), bypass("no-flow")),
        same("no rule matches, WAN", 2, 1, tcp4(), bypass("no-flow")),
        same("a rule says bypass", 1, 2, other, bypass("flow")),
        lost("a rule says drop", 1, tcp4(dot1q(201)), drop("flow")),
        frame("to the pair's LAN port", 1, balanced, FORWARDED, (10, native(balanced, 3, 5))),
        frame("to the pair's WAN port", 2, balanced, FORWARDED, (11, native(balanced, 3, 5))),
        frame("IPv6 to the pair", 1, six, FORWARDED, (10, native(six, 3, 5))),
        frame("another link in the header", 3, balanced, FORWARDED, (10, native(balanced, 3, 6))),
        same("ARP is not balanced", 1, 2, arp(dot1q(101)), bypass("not-ip")),
        same("a fourth tag", 1, 2, tcp4(dot1q(101, 2, 3, 4)), bypass("vlan-too-deep")),
        same("a seventh label", 1, 2, ethernet(0x8847, labels(7, ipv4(tcp())), dot1q(101)), bypass("mpls-too-deep")),
        same("a wrong checksum below labels", 1, 2,
             ethernet(0x8847, labels(1, ipv4(tcp())[:10] + b"\0\0" + ipv4(tcp())[12:]), dot1q(101)), bypass("not-ip")),
        same("a keep-alive on a link is an ordinary frame", 1, 2, KEEP_ALIVE, bypass("no-flow")),
        same("a steering header on a link is not looked behind", 1, 2, native(balanced, 3, 5), bypass("no-flow")),
        same("seven bytes", 1, 2, MACS[:7], bypass("no-flow")),
        same("the unit is in bypass", 1, 2, tcp4(dot1q(102)), bypass("unit-bypass")),
        same("the unit is not there", 1, 2, tcp4(dot1q(108)), bypass("unit-bypass")),
        same("the pair is down", 1, 2, tcp4(dot1q(103)), bypass("pair-down")),
        lost("the pair is down and its share is dropped", 1, tcp4(dot1q(104)), drop("pair-down")),
        same("the bucket is not there", 1, 2, tcp4(dot1q(105)), bypass("no-bucket")),
        same("the pair has no port", 1, 2, tcp4(dot1q(106)), bypass("pair-down")),
        same("the pair has no state", 1, 2, tcp4(dot1q(107)), bypass("pair-down")),
        lost("a port that serves nothing", 99, tcp4(), drop("unknown-port")),
    ]
    size = len(balanced)
    counters = [
        counter("verdicts", 0, 4, 3 * size + len(six)),
        counter("link_verdicts", 5 * 32 + 0, 3, 2 * size + len(six)),
        counter("link_verdicts", 6 * 32 + 0, 1, size),
        counter("pair_out", 9 * 2 + 0, 3, 2 * size + len(six)),
        counter("pair_out", 9 * 2 + 1, 1, size),
        counter("port_in", 3, 1, size),
        counter("port_out", 11, 1, size),
        counter("port_in", 99, 1, len(tcp4())),
        counter("verdicts", 22, 1, len(tcp4())),
    ]
    write("link-steps", "Each step of a frame from a link, native steering headers (contract, From a link port).", frames, entries, counters)


def rules():
    entries = link(5, 1, 2) + link(6, 3, 4)
    of_ip, of_ports = {"ip_version": "4&0xf"}, {"ip_version": "4&0xf", "has_ports": "1&1"}
    entries += [
        rule(900, "rule_drop", **of_ports, dst_port="1000-2000"),
        rule(890, "rule_drop", **of_ports, src_port="7-7"),
        rule(800, "rule_drop", **of_ip, src_ip="0x0a010000&0xffff0000"),
        rule(700, "rule_drop", packet_type="0x0806&0xffff", link="6&0xff"),
        rule(690, "rule_drop", llc_dsap="0x142&0x1ff"),
        rule(680, "rule_drop", vlan0=vid(7), vlan1="0&0x1000"),
        rule(670, "rule_bypass", dst_mac="0x010000000000&0x010000000000"),
        rule(660, "rule_drop", mpls_depth="2&7"),
        rule(600, "rule_bypass", **of_ip, dst_ip="0x0a090909&0xffffffff"),
        rule(599, "rule_drop", **of_ip, dst_ip="0x0a090000&0xffff0000"),
        rule(500, "rule_drop", **of_ip, ip_proto="47&0xff"),
        rule(1, "rule_drop", family=6),
    ]
    llc = lambda dsap: MACS + struct.pack(">H", 38) + bytes([dsap, 0x42, 3]) + bytes(35)
    multicast = b"\x01\0\x5e" + tcp4()[3:]
    no_flow, dropped = bypass("no-flow"), drop("flow")
    frames = [
        same("a port below the range", 1, 2, tcp4(dport=999), no_flow),
        lost("the first port of the range", 1, tcp4(dport=1000), dropped),
        lost("the last port of the range", 1, tcp4(dport=2000), dropped),
        same("a port above the range", 1, 2, tcp4(dport=2001), no_flow),
        lost("a range of one port", 1, tcp4(sport=7), dropped),
        lost("a first fragment has ports", 1, tcp4(dport=1500, fragment=0x2000), dropped),
        same("a later fragment has none", 1, 2, tcp4(dport=1500, fragment=0x2001), no_flow),
        same("a port condition wants ports: ICMP has none", 1, 2, tcp4(dport=1500, proto=1), no_flow),
        lost("a network", 1, tcp4(src="10.1.255.255"), dropped),
        same("the next network", 1, 2, tcp4(src="10.2.0.0"), no_flow),
        same("ARP has no address", 1, 2, arp(), no_flow),
        lost("a packet type on one link", 3, arp(), dropped),
        lost("LLC", 1, llc(0x42), dropped),
        same("another LLC address", 1, 2, llc(0xAA), no_flow),
        same("an EtherType is no LLC address", 1, 2, ethernet(0x4242, b"\x42\x42"), no_flow),
        lost("one tag and no second", 1, tcp4(dot1q(7)), dropped),
        lost("priority bits of a tag do not matter", 1, tcp4(dot1q(0xE007)), dropped),
        same("a second tag", 1, 2, tcp4(dot1q(7, 8)), no_flow),
        same("VID 0 is a tag", 1, 2, tcp4(dot1q(7, 0)), no_flow),
        same("a bit of a MAC", 1, 2, multicast, bypass("flow")),
        lost("two labels", 1, ethernet(0x8847, labels(2, ipv4(tcp()))), dropped),
        same("three labels", 1, 2, ethernet(0x8847, labels(3, ipv4(tcp()))), no_flow),
        same("the higher priority", 1, 2, tcp4(dst="10.9.9.9"), bypass("flow")),
        lost("the lower priority", 1, tcp4(dst="10.9.9.8"), dropped),
        same("the inner header counts, not GRE", 1, 2, ethernet(0x0800, ipv4(b"\0\0\x08\0" + ipv4(tcp()), proto=47)), no_flow),
        lost("the inner header's network", 1, ethernet(0x0800, ipv4(ipv4(tcp(), src="10.1.0.1"), proto=4)), dropped),
        lost("GRE without IP within", 1, ethernet(0x0800, ipv4(b"\0\0\x65\x58" + tcp4(), proto=47)), dropped),
        lost("an empty match", 1, ethernet(0x86DD, ipv6(tcp())), dropped),
    ]
    write("link-rules", "What conditions of rules match (contract, From a link port, step 2).", frames, entries)


def back():
    entries = link(5, 1, 2) + link(6, 3, 4) + link(0, 5, 6) + pair(9, 10, 11) + pair(20, 14, 15, copy=True)
    plain, short = tcp4(), MACS + b"\x08\x00"
    frames = [
        frame("back on LAN", 10, native(plain, 3, 5), RETURNED, (1, plain)),
        frame("back on WAN", 11, native(plain, 3, 5), RETURNED, (2, plain)),
        frame("the named link", 10, native(plain, 3, 6), RETURNED, (3, plain)),
        frame("link 0", 11, native(plain, 3, 0), RETURNED, (6, plain)),
        frame("the core does not matter", 10, native(plain, 255, 5), RETURNED, (1, plain)),
        frame("what is behind the header does not matter", 10, native(arp(dot1q(1, 2, 3, 4)), 0, 5), RETURNED,
              (1, arp(dot1q(1, 2, 3, 4)))),
        frame("one header is popped", 10, native(native(plain, 1, 6), 0, 5), RETURNED, (1, native(plain, 1, 6))),
        frame("a keep-alive behind a header is none", 10, native(KEEP_ALIVE, 0, 5), RETURNED, (1, KEEP_ALIVE)),
        frame("nothing but an EtherType behind the header", 10, native(short, 0, 5), RETURNED, (1, short)),
        lost("no EtherType behind the header", 10, native(short, 0, 5)[:16], drop("no-steering-header")),
        lost("a link that does not exist", 10, native(plain, 3, 77), drop("unknown-link")),
        lost("no header", 10, plain, drop("no-steering-header")),
        lost("another TPID", 10, push(plain, 0x88B7, 5), drop("no-steering-header")),
        lost("a tag is no native header", 10, push(plain, 0x8100, 5), drop("no-steering-header")),
        lost("ten bytes", 10, MACS[:10], drop("no-steering-header")),
        lost("a keep-alive", 10, KEEP_ALIVE, TO_CONTROLLER),
        lost("a keep-alive that is cut", 11, KEEP_ALIVE[:14], TO_CONTROLLER),
        lost("a keep-alive from a copy's pair", 14, KEEP_ALIVE, TO_CONTROLLER),
        lost("what comes back of a copy", 14, native(plain, 3, 5), drop("copy-return")),
        lost("whatever comes from a copy's pair", 15, plain, drop("copy-return")),
    ]
    size = len(plain)
    # By link 5's LAN port: plain twice, ARP, a frame with a header within, a keep-alive, and the short one.
    on_lan = 2 * size + len(arp(dot1q(1, 2, 3, 4))) + size + 4 + len(KEEP_ALIVE) + len(short)
    counters = [
        counter("link_out", 5 * 2 + 0, 6, on_lan),
        counter("link_out", 6 * 2 + 0, 1, size),
        counter("pair_verdicts", 9 * 32 + 1, 9, on_lan + 3 * size),
        counter("pair_verdicts", 9 * 32 + 20, 1, size),
        counter("pair_verdicts", 20 * 32 + 21, 2, 2 * size + 4),
        counter("port_in", 11, 3, 2 * (size + 4) + 14),
        counter("port_out", 3, 1, size),
        counter("verdicts", 2, 3, 2 * len(KEEP_ALIVE) + 14),
    ]
    write("pair-native", "Frames from pairs, native steering headers (contract, From a pair port).", frames, entries, counters)


def tagged():
    entries = [entry("steering", "set_steering", params={"mode": 1, "tpid": 0x8100, "base_vid": 100})]
    entries += link(5, 1, 2) + link(255, 3, 4) + pair(9, 10, 11) + unit(1, buckets=[(9, 3)])
    entries += [rule(1, "rule_to_unit", 1, family) for family in (4, 6)]
    plain, wearing = tcp4(), tcp4(dot1q(7, 8))
    frames = [
        frame("VID is base and link", 1, plain, FORWARDED, (10, push(plain, 0x8100, 105))),
        frame("VID of the last link", 4, plain, FORWARDED, (11, push(plain, 0x8100, 355))),
        frame("outermost of tags", 1, wearing, FORWARDED, (10, push(wearing, 0x8100, 105))),
        frame("three tags of its own", 1, tcp4(dot1q(1, 2, 3)), FORWARDED, (10, push(tcp4(dot1q(1, 2, 3)), 0x8100, 105))),
        frame("back on LAN", 10, push(plain, 0x8100, 105), RETURNED, (1, plain)),
        frame("back on WAN by the last link", 11, push(plain, 0x8100, 355), RETURNED, (4, plain)),
        frame("priority bits do not matter", 10, push(plain, 0x8100, 0xF000 | 105), RETURNED, (1, plain)),
        frame("only the outermost is popped", 10, push(wearing, 0x8100, 105), RETURNED, (1, wearing)),
        lost("a VID below base", 10, push(plain, 0x8100, 99), drop("no-steering-header")),
        lost("a VID above all links", 10, push(plain, 0x8100, 356), drop("no-steering-header")),
        lost("a link that does not exist", 10, push(plain, 0x8100, 101), drop("unknown-link")),
        lost("another TPID", 10, push(plain, 0x88A8, 105), drop("no-steering-header")),
        lost("no tag", 10, plain, drop("no-steering-header")),
        lost("a native header", 10, native(plain, 3, 5), drop("no-steering-header")),
        lost("no EtherType behind the tag", 10, push(plain, 0x8100, 105)[:16], drop("no-steering-header")),
        same("a frame of a link may wear the same tag", 1, 2, arp(dot1q(105)), bypass("not-ip")),
    ]
    write("pair-dot1q", "Steering headers as 802.1Q tags (contract, Steering header).", frames, entries)


def lengths():
    entries = link(5, 1, 2) + pair(9, 10, 11) + unit(1, buckets=[(9, 3)])
    entries += [mtu(2, 100), mtu(10, 100), mtu(1, 100)]
    entries += [rule(10, "rule_to_unit", 1, vlan0=vid(1)), rule(11, "rule_copy_to_unit", 1, vlan0=vid(2))]
    entries += [rule(12, "rule_drop", vlan0=vid(3))]
    tag, copy = dot1q(1), dot1q(2)
    too_long = drop("mtu-exceeded")
    steered = lambda length: native(sized(length), 0, 5)
    frames = [
        same("as long as the peer port takes", 1, 2, sized(114), bypass("no-flow")),
        lost("one byte longer", 1, sized(115), too_long),
        frame("as long as the pair takes, its header included", 1, sized(110, tag), FORWARDED,
              (10, native(sized(110, tag), 3, 5))),
        lost("one byte longer to the pair", 1, sized(111, tag), too_long),
        frame("a port without an MTU takes any", 2, sized(1500, tag), FORWARDED, (11, native(sized(1500, tag), 3, 5))),
        frame("back as long as the link takes, without the header", 10, steered(114), RETURNED, (1, sized(114))),
        lost("back one byte longer", 10, steered(115), too_long),
        frame("back by a port that takes more", 10, native(sized(1500), 0, 5)[:118], RETURNED, (1, sized(1500)[:114])),
        frame("a copy as long as the pair takes", 1, sized(110, copy), bypass("copy"),
              (2, sized(110, copy)), (10, native(sized(110, copy), 3, 5))),
        same("a copy that is too long is lost, the frame is not", 1, 2, sized(111, copy), bypass("copy")),
        frame("a frame that is too long, its copy is not", 2, sized(115, copy), too_long,
              (11, native(sized(115, copy), 3, 5))),
        lost("a rule's drop comes before", 1, sized(1500, dot1q(3)), drop("flow")),
        lost("keep-alives to the controller have no MTU", 10, KEEP_ALIVE + bytes(1000), TO_CONTROLLER),
    ]
    counters = [
        counter("copies", 9 * 2 + 0, 2, 110 + 115),
        counter("copies", 9 * 2 + 1, 1, 111),
        counter("verdicts", 17, 4, 115 + 111 + 115 + 115),
        counter("pair_verdicts", 9 * 32 + 17, 1, 115),
        counter("port_out", 10, 2, 110 + 110),
        counter("port_out", 1, 2, 114 + 114),
    ]
    write("mtu", "The MTU of every port that a frame leaves by, at its boundary (contract, step 7).", frames, entries, counters)


def copies():
    entries = link(5, 1, 2) + pair(9, 10, 11, copy=True) + pair(30, 12, 13, "pair_bypass", copy=True)
    entries += pair(31, 14, 15, "pair_drop", copy=True) + pair(32, 16, 17, copy=True, sessions=False)
    entries += unit(1, buckets=[(9, 3)]) + unit(2, buckets=[(30, 0)]) + unit(3, buckets=[(31, 0)])
    entries += unit(4, buckets=[(32, 0)]) + unit(5, "unit_bypass") + unit(6)
    entries += [rule(100 + number, "rule_copy_to_unit", number, vlan0=vid(number)) for number in range(1, 8)]
    one = tcp4(dot1q(1))
    frames = [
        frame("frame and copy, LAN", 1, one, bypass("copy"), (2, one), (10, native(one, 3, 5))),
        frame("frame and copy, WAN", 2, one, bypass("copy"), (1, one), (11, native(one, 3, 5))),
        same("no IP, no copy", 1, 2, arp(dot1q(1)), bypass("not-ip")),
        same("the pair is down", 1, 2, tcp4(dot1q(2)), bypass("pair-down")),
        same("a frame that is only copied is never dropped for its pair", 1, 2, tcp4(dot1q(3)), bypass("pair-down")),
        same("no session, no copy", 1, 2, tcp4(dot1q(4)), bypass("copy")),
        same("the unit is in bypass", 1, 2, tcp4(dot1q(5)), bypass("unit-bypass")),
        same("the bucket is not there", 1, 2, tcp4(dot1q(6)), bypass("no-bucket")),
        same("the unit is not there", 1, 2, tcp4(dot1q(7)), bypass("unit-bypass")),
        lost("what comes back is dropped", 10, native(one, 3, 5), drop("copy-return")),
    ]
    counters = [
        counter("copies", 9 * 2 + 0, 2, 2 * len(one)),
        counter("copies", 9 * 2 + 1, 0, 0),
        counter("copies", 32 * 2 + 0, 0, 0),
        counter("pair_out", 9 * 2 + 0, 0, 0),
        counter("port_out", 10, 1, len(one)),
        counter("port_out", 2, 8, 7 * len(one) + len(arp(dot1q(1)))),
    ]
    write("copy", "Rules that copy to a unit (contract, step 2 and From a pair port, 3).", frames, entries, counters)


def primary():
    entries = link(5, 1, 2)
    states = ["pair_up", "pair_bypass", "pair_drop", None]
    for number, state in enumerate(states):
        entries += pair(number, 10 + 2 * number, 11 + 2 * number, state)
        entries += unit(number, "unit_primary", buckets=[(number, 7)])
    entries += unit(4, "unit_primary", buckets=[(50, 0)]) + unit(5, "unit_primary")
    entries += [rule(100 + number, "rule_to_unit", number, vlan0=vid(number)) for number in range(6)]
    sent = lambda number: tcp4(dot1q(number))
    names = ["up", "in bypass", "to be dropped", "without a state"]
    frames = [
        frame(f"a pair {name} gets its share", 1, sent(number), FORWARDED, (10 + 2 * number, native(sent(number), 7, 5)))
        for number, name in enumerate(names)
    ]
    frames += [
        same("a pair without ports", 1, 2, sent(4), bypass("pair-down")),
        same("a bucket that is not there", 1, 2, sent(5), bypass("no-bucket")),
    ]
    write("primary", "A unit that ignores pair states (contract, step 4).", frames, entries)


def probes():
    """The controller's probes come back by a link index that no link has."""
    entries = link(5, 1, 2) + pair(9, 10, 11) + pair(20, 14, 15, copy=True)
    entries += [entry("links", "to_controller", {"link": 255, "side": side}) for side in (0, 1)]
    entries += [entry("links", "to_controller", {"link": 77, "side": 1}), mtu(10, 60)]
    body = b"SLKA\x02" + bytes(49)
    datagram = struct.pack(">HHHH", 49152, 7, 8 + len(body), 0) + body
    envelopes = {
        "Ethernet": ethernet(0x88B5, body),
        "IPv4": ethernet(0x0800, ipv4(datagram, proto=17)),
        "IPv6": ethernet(0x86DD, ipv6(datagram, proto=17)),
    }
    frames = [
        lost(f"a probe in {name} by {side}", port, native(probe, 3, 255), TO_CONTROLLER)
        for name, probe in envelopes.items() for side, port in (("LAN", 10), ("WAN", 11))
    ]
    plain = envelopes["IPv4"]
    frames += [
        lost("whatever names the index is one", 10, native(tcp4(), 3, 255), TO_CONTROLLER),
        lost("longer than an MTU", 10, native(sized(1514), 3, 255), TO_CONTROLLER),
        lost("by the side that has the index", 11, native(plain, 3, 77), TO_CONTROLLER),
        lost("by the other side", 10, native(plain, 3, 77), drop("unknown-link")),
        frame("a probe that names a link is data", 10, native(plain, 3, 5), RETURNED, (1, plain)),
        lost("from a copy's pair", 14, native(plain, 3, 255), drop("copy-return")),
        lost("without its header", 10, plain, drop("no-steering-header")),
        same("on a link it is an ordinary frame", 1, 2, native(plain, 3, 255), bypass("no-flow")),
        lost("a plain keep-alive", 10, KEEP_ALIVE, TO_CONTROLLER),
    ]
    sizes = {name: len(probe) + 4 for name, probe in envelopes.items()}
    steered = 2 * sum(sizes.values()) + len(tcp4()) + 4 + 1518 + sizes["IPv4"]
    counters = [
        counter("verdicts", 2, 10, steered + len(KEEP_ALIVE)),
        counter("pair_verdicts", 9 * 32 + 2, 10, steered + len(KEEP_ALIVE)),
        counter("pair_verdicts", 9 * 32 + 20, 1, sizes["IPv4"] - 4),
        counter("pair_verdicts", 20 * 32 + 21, 1, sizes["IPv4"]),
        counter("link_out", 5 * 2 + 0, 1, sizes["IPv4"] - 4),
        counter("port_in", 11, 4, sum(sizes.values()) + sizes["IPv4"]),
    ]
    write("probes", "Probes of the controller that come back by their steering header (contract, From a pair port).", frames, entries, counters)
    tagged_entries = [entry("steering", "set_steering", params={"mode": 1, "tpid": 0x8100, "base_vid": 100})]
    tagged_entries += link(5, 1, 2) + pair(9, 10, 11)
    tagged_entries += [entry("links", "to_controller", {"link": 254, "side": side}) for side in (0, 1)]
    frames = [
        lost(f"a probe in {name}", 10, push(probe, 0x8100, 354), TO_CONTROLLER) for name, probe in envelopes.items()
    ] + [
        lost("priority bits do not matter", 11, push(plain, 0x8100, 0xE000 | 354), TO_CONTROLLER),
        lost("the index beside it", 10, push(plain, 0x8100, 355), drop("unknown-link")),
        lost("a native header", 10, native(plain, 3, 254), drop("no-steering-header")),
    ]
    write("probes-dot1q", "The same behind 802.1Q tags (contract, Steering header).", frames, tagged_entries)


def shares():
    """Buckets without a pair, and units that balance with another's buckets."""
    entries = link(5, 1, 2) + pair(9, 10, 11) + pair(300, 12, 13, "pair_bypass") + pair(301, 14, 15, "pair_drop")
    for number, (action, reason) in enumerate((("bypass_bucket", 12), ("bypass_bucket", 13), ("drop_bucket", None)), 1):
        entries += unit(number) + [odd_bucket(number, action, reason)]
        entries += unit(10 + number, "unit_primary") + [odd_bucket(10 + number, action, reason)]
    entries += unit(20, buckets=[(9, 3)]) + unit(21, "unit_bypass", buckets=[(9, 4)]) + unit(22, buckets=[(300, 0)])
    entries += unit(23, "unit_primary", buckets=[(301, 0)])
    # 31 and so on stand for 21 and so on; 36 for one that has drop_bucket; 37 for itself; 38 for one of which there is
    # nothing; 39 for one that stands for another itself, whose own buckets there are none.
    stands_for = {30: 20, 31: 21, 32: 22, 33: 23, 36: 3, 37: 37, 38: 99, 39: 30}
    entries += [backup(number, other) for number, other in stands_for.items()]
    entries += [entry("buckets", "to_pair", {"unit": 37, "bucket": 0}, {"pair": 9, "core": 8})]
    # With a mask and a method of its own: bucket by destination, one bit of the hash.
    entries += [backup(40, 50, method=2, mask=1)]
    for bucket, core in ((0, 40), (1, 41)):
        entries += [entry("buckets", "to_pair", {"unit": 50, "bucket": bucket}, {"pair": 9, "core": core})]
    numbers = [1, 2, 3, 11, 12, 13, 20, *stands_for, 40]
    entries += [rule(100 + number, "rule_to_unit", number, vlan0=vid(number)) for number in numbers]
    entries += [rule(300 + number, "rule_copy_to_unit", number, vlan0=vid(300 + number)) for number in (1, 2, 3, 13, 36)]
    sent = lambda number: tcp4(dot1q(number))
    forwarded = lambda name, number, core: frame(name, 1, sent(number), FORWARDED, (10, native(sent(number), core, 5)))
    core_down, shed = bypass("core-down"), bypass("shed")
    bit = zlib.crc32(bytes([198, 51, 100, 7])) & 1
    frames = [
        same("the core is down", 1, 2, sent(1), core_down),
        same("the core is down, WAN", 2, 1, sent(1), core_down),
        same("a share is shed", 1, 2, sent(2), shed),
        lost("the core is down and its share is dropped", 1, sent(3), drop("core-down")),
        same("primary: the core is down", 1, 2, sent(11), core_down),
        same("primary: a share is shed", 1, 2, sent(12), shed),
        lost("primary: the share is dropped", 1, sent(13), drop("core-down")),
        same("copy: the core is down", 1, 2, sent(301), core_down),
        same("copy: a share is shed", 1, 2, sent(302), shed),
        same("copy: a frame that is only copied is never dropped for its core", 1, 2, sent(303), core_down),
        same("copy, primary: nor there", 1, 2, sent(313), core_down),
        same("copy, backup: nor there", 1, 2, sent(336), core_down),
        same("ARP is not balanced", 1, 2, arp(dot1q(3)), bypass("not-ip")),
        forwarded("a unit by itself", 20, 3),
        forwarded("a unit with another's buckets", 30, 3),
        forwarded("whatever the other's mode is", 31, 4),
        same("the other's pair is down", 1, 2, sent(32), bypass("pair-down")),
        lost("the state of pairs counts though the other ignores it", 1, sent(33), drop("pair-down")),
        lost("the other's core is down", 1, sent(36), drop("core-down")),
        forwarded("a unit that stands for itself", 37, 8),
        same("the other is not there", 1, 2, sent(38), bypass("no-bucket")),
        same("one step, not two", 1, 2, sent(39), bypass("no-bucket")),
        forwarded("method and mask are the entry's", 40, 40 + bit),
    ]
    size = len(sent(1))
    counters = [
        counter("verdicts", 12, 7, 7 * size),
        counter("verdicts", 13, 3, 3 * size),
        counter("verdicts", 24, 3, 3 * size),
        counter("link_verdicts", 5 * 32 + 24, 3, 3 * size),
        counter("pair_out", 9 * 2 + 0, 5, 5 * size),
        counter("copies", 9 * 2 + 0, 0, 0),
    ]
    write("shares", "Buckets that bypass or drop, units that stand in for others (contract, From a link port, steps 4 to 6).", frames, entries, counters)


# A site's configuration: three pairs of 17 cores, 2048 buckets.

MASK64, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


def mix64(value):
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK64
    return value ^ value >> 31


def name64(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK64
    return value


def home(names, cores, size):
    """Pair and core of every bucket (contract, Buckets), all weights 1."""
    walks = {name: [mix64(name64(name)) % size, mix64(name64(name) + GOLDEN & MASK64) % size | 1] for name in names}
    table, left = [None] * size, size
    while left:
        for name in sorted(names):
            walk = walks[name]
            while left and table[walk[0]] is not None:
                walk[0] = (walk[0] + walk[1]) % size
            if left:
                table[walk[0]] = name
                left -= 1
    core, cells = dict.fromkeys(names, 0), []
    for name in table:
        cells.append((name, core[name] % cores))
        core[name] += 1
    return cells


def site():
    port = lambda name, number, lane=0: {"name": name, "number": number, "lane": lane, "speed": "10g"}
    pairs = {"f1-1": (6, 5), "f1-2": (10, 9), "f2-1": (14, 13)}
    configuration = {
        "sluice:port": [port("l1-lan", 4, 2), port("l1-wan", 4, 1), port("l2-lan", 10), port("l2-wan", 9)]
        + [port(f"{name}-{side}", out // 4, out % 4) for name, outs in pairs.items() for side, out in zip(("lan", "wan"), outs)],
        "sluice:ecofilter-balancer": {
            "link": [
                {"name": "link1", "lan-port": "l1-lan", "wan-port": "l1-wan"},
                {"name": "link2", "lan-port": "l2-lan", "wan-port": "l2-wan"},
            ],
            "ecofilter-unit": [{
                "name": "main",
                "cores": 17,
                "pair": [{"name": name, "lan-port": f"{name}-lan", "wan-port": f"{name}-wan"} for name in pairs],
            }],
            "flow": [
                {"name": "bgp", "priority": 200, "match": {"ip-proto": 6, "dst-port": "179"}, "action": "bypass"},
                {"name": "rest", "priority": 1, "action": "to-ecofilter", "ecofilter-unit": "main"},
            ],
        },
    }
    down, cells, frames = "f1-2", home(pairs, 17, 2048), []
    for last in range(1, 25):
        sent = tcp4(dst=f"198.51.100.{last}")
        words = struct.pack(">IIB", 0x0A000001, 0xC6336400 | last, 6)
        name, core = cells[zlib.crc32(words) & 2047]
        if name == down:
            frames.append(same(f"session {last}: its pair is down", 18, 17, sent, bypass("pair-down")))
        else:
            frames.append(frame(f"session {last} out", 18, sent, FORWARDED, (pairs[name][0], native(sent, core, 0))))
            answer = tcp4(src=f"198.51.100.{last}", dst="10.0.0.1", sport=443, dport=40000)
            frames.append(frame(f"session {last} back by link2", 36, answer, FORWARDED, (pairs[name][1], native(answer, core, 1))))
    frames.append(same("BGP", 18, 17, tcp4(dport=179), bypass("flow")))
    frames.append(frame("back to link2", 14, native(tcp4(), 0, 1), RETURNED, (40, tcp4())))
    write("site", "A site's configuration, one of its three pairs down (contract, Hash and Buckets).", frames, site=configuration, pairs_down=["main/f1-2"])


for make in (published, steps, rules, back, tagged, lengths, copies, primary, probes, shares, site):
    make()

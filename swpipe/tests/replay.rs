//! The program on captures: verdicts, one capture a port, and inputs that are broken.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use swpipe::capture::{self, Captured};
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../site/tests/configuration/example-site.json");
const KEYS: [&str; 12] = [
    "port", "index", "verdict", "reason", "flow", "unit", "hash", "bucket", "pair", "core", "out_port",
    "out_len",
];

fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors").join(name)
}

fn swpipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_swpipe")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder of its own with the example site in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("site.json"), EXAMPLE).unwrap();
        Place(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    fn replay(&self, inputs: &[(&str, &Path)], more: &[&str]) -> Output {
        let [site, out, verdicts] =
            ["site.json", "out", "verdicts.jsonl"].map(|name| self.path(name).display().to_string());
        let mut arguments = vec!["replay", "--config", &site, "--out", &out, "--verdicts", &verdicts];
        let inputs: Vec<String> =
            inputs.iter().map(|(port, file)| format!("{port}={}", file.display())).collect();
        for input in &inputs {
            arguments.extend(["--in", input]);
        }
        arguments.extend(more);
        swpipe(&arguments)
    }

    fn good(&self, inputs: &[(&str, &Path)], more: &[&str]) -> Vec<Value> {
        let output = self.replay(inputs, more);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = fs::read_to_string(self.path("verdicts.jsonl")).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A run that must fail with exit status 1, these words, and nothing written.
    fn refused(&self, inputs: &[(&str, &Path)], more: &[&str], words: &[&str]) {
        let output = self.replay(inputs, more);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        for word in words {
            assert!(error.contains(word), "{word} is not in: {error}");
        }
        assert!(!self.path("out").exists() && !self.path("verdicts.jsonl").exists(), "half done: {error}");
    }

    fn out(&self, port: &str) -> Vec<Captured> {
        capture::read(&self.path("out").join(format!("{port}.pcap"))).unwrap()
    }
}

fn link1() -> [(&'static str, PathBuf); 2] {
    [("p4-2", vectors("link1-lan.pcap")), ("p4-1", vectors("link1-wan.pcap"))]
}

/// Classic pcap, little- or big-endian, micro- or nanoseconds.
fn pcap(frames: &[Captured], big: bool, nanoseconds: bool, snap: u32, linktype: u32) -> Vec<u8> {
    let word = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let half = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file =
        [word(magic).as_slice(), &half(2), &half(4), &[0; 8], &word(snap), &word(linktype)].concat();
    for frame in frames {
        let fraction = (frame.time % 1_000_000_000) as u32 / if nanoseconds { 1 } else { 1000 };
        let length = frame.bytes.len() as u32;
        for number in [(frame.time / 1_000_000_000) as u32, fraction, length, length + 40] {
            file.extend(word(number));
        }
        file.extend(&frame.bytes);
    }
    file
}

/// pcapng, little- or big-endian, micro- or nanoseconds; `simple` packet blocks have no time and no length.
struct PcapNg {
    big: bool,
    nanoseconds: bool,
    simple: bool,
    snap: u32,
    linktype: u16,
}

const PCAPNG: PcapNg = PcapNg { big: false, nanoseconds: false, simple: false, snap: 0, linktype: 1 };

impl PcapNg {
    fn word(&self, number: u32) -> [u8; 4] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn half(&self, number: u16) -> [u8; 2] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn block(&self, kind: u32, mut body: Vec<u8>) -> Vec<u8> {
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.word(12 + body.len() as u32);
        [&self.word(kind), &length, body.as_slice(), &length].concat()
    }

    fn file(&self, frames: &[Captured]) -> Vec<u8> {
        let version = [self.half(1), self.half(0)].concat();
        let section = [self.word(0x1a2b_3c4d).as_slice(), &version, &[0xff; 8]].concat();
        let mut file = self.block(0x0a0d_0d0a, section);
        let mut interface = [self.half(self.linktype).as_slice(), &[0; 2], &self.word(self.snap)].concat();
        if self.nanoseconds {
            let resolution = [self.half(9).as_slice(), &self.half(1), &[9, 0, 0, 0], &[0; 4]].concat();
            interface.extend(resolution);
        }
        file.extend(self.block(1, interface));
        file.extend(self.block(0x0bad_cafe, vec![1, 2, 3])); // of a kind that nobody knows
        for frame in frames {
            let length = self.word(frame.bytes.len() as u32);
            let captured = match self.snap as usize {
                0 => frame.bytes.as_slice(),
                snap => &frame.bytes[..snap.min(frame.bytes.len())],
            };
            if self.simple {
                file.extend(self.block(3, [length.as_slice(), captured].concat()));
                continue;
            }
            let ticks = frame.time / if self.nanoseconds { 1 } else { 1000 };
            let times = [self.word((ticks >> 32) as u32), self.word(ticks as u32)].concat();
            let own = self.word(captured.len() as u32);
            file.extend(self.block(6, [[0; 4].as_slice(), &times, &own, &length, captured].concat()));
        }
        file
    }
}

#[test]
fn the_link1_captures_end_as_the_verdicts_say() {
    let place = Place::new();
    let [(lan, lan_file), (wan, wan_file)] = link1();
    let verdicts = place.good(&[(lan, &lan_file), (wan, &wan_file)], &[]);
    let inputs =
        BTreeMap::from([(lan, capture::read(&lan_file).unwrap()), (wan, capture::read(&wan_file).unwrap())]);
    assert_eq!(verdicts.len(), inputs.values().map(Vec::len).sum::<usize>());

    let mut expect: BTreeMap<String, Vec<Captured>> = BTreeMap::new();
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    let mut last = 0;
    for line in &verdicts {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, KEYS);
        let port = line["port"].as_str().unwrap();
        let index = next.entry(port.to_owned()).or_default();
        assert_eq!(line["index"], json!(*index), "in order, from 0 within the file");
        let frame = &inputs[port][*index];
        *index += 1;
        assert!(frame.time >= last, "in the order of capture times");
        last = frame.time;
        let peer = if port == "p4-2" { "p4-1" } else { "p4-2" };
        match line["verdict"].as_str().unwrap() {
            "to-ecofilter" => {
                assert_eq!(line["reason"], Value::Null);
                let side = if port == "p4-2" { 2 } else { 1 };
                let connector = match line["pair"].as_str().unwrap() {
                    "f1-1" => 1,
                    "f1-2" => 2,
                    "f2-1" => 3,
                    pair => panic!("{pair}"),
                };
                assert_eq!(line["out_port"], json!(format!("p{connector}-{side}")));
                let core = line["core"].as_u64().unwrap() as u8;
                let steered = [&frame.bytes[..12], &[0x88, 0xb6, core, 0], &frame.bytes[12..]].concat();
                assert_eq!(line["out_len"], json!(steered.len()));
                let out = line["out_port"].as_str().unwrap().to_owned();
                expect.entry(out).or_default().push(Captured { time: frame.time, bytes: steered });
            }
            "bypass" => {
                assert!(line["reason"].is_string());
                assert_eq!(line["out_port"], json!(peer));
                assert_eq!(line["out_len"], json!(frame.bytes.len()));
                expect.entry(peer.to_owned()).or_default().push(frame.clone());
            }
            "drop" => assert_eq!((&line["out_port"], &line["out_len"]), (&Value::Null, &Value::Null)),
            verdict => panic!("{verdict}"),
        }
        if line["unit"].is_null() || line["hash"].is_null() {
            assert!(line["pair"].is_null() && line["core"].is_null() && line["bucket"].is_null());
        } else {
            let hash = u32::from_str_radix(line["hash"].as_str().unwrap(), 16).unwrap();
            assert_eq!(line["bucket"], json!(hash & 2047));
        }
    }
    for port in ["p4-2", "p4-1", "p10", "p9", "p1-2", "p1-1", "p2-2", "p2-1", "p3-2", "p3-1"] {
        assert_eq!(place.out(port), expect.remove(port).unwrap_or_default(), "{port}");
    }
    assert!(expect.is_empty());
}

#[test]
fn the_hash_of_each_frame_is_the_published_one() {
    let place = Place::new();
    let [(lan, lan_file), (wan, wan_file)] = link1();
    let verdicts = place.good(&[(lan, &lan_file), (wan, &wan_file)], &[]);
    let mut published: BTreeMap<(String, u64), Value> = BTreeMap::new();
    for line in fs::read_to_string(vectors("link1.expect.jsonl")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let port = if line["side"] == "lan" { lan } else { wan };
        published.insert((port.to_owned(), line["index"].as_u64().unwrap()), line);
    }
    let mut compared = 0;
    let mut served: BTreeMap<String, (Value, Value)> = BTreeMap::new();
    for line in &verdicts {
        let expect =
            &published[&(line["port"].as_str().unwrap().to_owned(), line["index"].as_u64().unwrap())];
        if line["verdict"] == "to-ecofilter" {
            assert_eq!(line["hash"], expect["hash"]["layer-3"]);
            compared += 1;
            let session = expect["session"].to_string();
            let cell = (line["pair"].clone(), line["core"].clone());
            assert_eq!(*served.entry(session).or_insert_with(|| cell.clone()), cell, "one session, one core");
        }
        if line["reason"] == "not-ip" {
            assert_eq!(expect["found"], json!(false));
        }
    }
    assert!(compared > 1000 && served.len() > 100, "{compared} frames, {} sessions", served.len());
}

#[test]
fn what_an_appliance_sends_back_returns_to_its_link_and_side() {
    let place = Place::new();
    let [(lan, lan_file), (wan, wan_file)] = link1();
    place.good(&[(lan, &lan_file), (wan, &wan_file)], &[]);
    // A transparent appliance: what went in by one port comes out by the other.
    let through: Vec<(&str, PathBuf)> =
        [("p1-1", "p1-2"), ("p1-2", "p1-1"), ("p2-1", "p2-2"), ("p2-2", "p2-1")]
            .into_iter()
            .map(|(port, from)| (port, place.path("out").join(format!("{from}.pcap"))))
            .collect();
    let inputs: Vec<(&str, &Path)> = through.iter().map(|(port, file)| (*port, file.as_path())).collect();
    let second = Place::new();
    let verdicts = second.good(&inputs, &[]);
    assert!(!verdicts.is_empty());
    for line in &verdicts {
        let back = if line["port"].as_str().unwrap().ends_with("-1") { "p4-1" } else { "p4-2" };
        assert_eq!((&line["verdict"], &line["out_port"]), (&json!("return"), &json!(back)));
        for key in ["reason", "flow", "unit", "hash", "bucket"] {
            assert_eq!(line[key], Value::Null, "{key}");
        }
    }
    let originals = capture::read(&lan_file).unwrap();
    for frame in second.out("p4-1") {
        assert!(originals.contains(&frame), "byte for byte what the subscriber sent");
    }
}

#[test]
fn pairs_that_are_held_down_lose_their_share_alone() {
    let place = Place::new();
    let [(lan, lan_file), (wan, wan_file)] = link1();
    let inputs = [(lan, lan_file.as_path()), (wan, wan_file.as_path())];
    let before = place.good(&inputs, &[]);
    for named in ["f1-2", "main/f1-2"] {
        let after = place.good(&inputs, &["--down", named]);
        for (before, after) in before.iter().zip(&after) {
            if before["pair"] == "f1-2" {
                assert_eq!((&after["verdict"], &after["reason"]), (&json!("bypass"), &json!("pair-down")));
                assert_eq!(after["hash"], before["hash"]);
            } else {
                assert_eq!(after, before);
            }
        }
    }
    let none = place.good(&inputs, &["--down", "f1-1", "--down", "f1-2", "--down", "f2-1"]);
    assert!(none.iter().any(|line| line["reason"] == "unit-bypass"));
    assert!(none.iter().all(|line| line["verdict"] == "bypass"));
}

#[test]
fn every_form_of_capture_reads_alike() {
    let frames = capture::read(&vectors("link1-lan.pcap")).unwrap();
    let reference = Place::new();
    let file = vectors("link1-lan.pcap");
    let expect = reference.good(&[("p4-2", &file)], &[]);
    let forms = [
        ("big-endian", pcap(&frames, true, false, 65535, 1)),
        ("nanoseconds", pcap(&frames, false, true, 65535, 1)),
        ("big-endian nanoseconds", pcap(&frames, true, true, 65535, 1)),
        ("no snap length", pcap(&frames, false, false, 0, 1)),
        ("pcapng", PCAPNG.file(&frames)),
        ("big-endian pcapng", PcapNg { big: true, ..PCAPNG }.file(&frames)),
        ("nanosecond pcapng", PcapNg { nanoseconds: true, ..PCAPNG }.file(&frames)),
        ("big-endian nanosecond pcapng", PcapNg { big: true, nanoseconds: true, ..PCAPNG }.file(&frames)),
    ];
    for (name, bytes) in forms {
        let place = Place::new();
        let file = place.write("in", &bytes);
        assert_eq!(capture::read(&file).unwrap(), frames, "{name}");
        assert_eq!(place.good(&[("p4-2", &file)], &[]), expect, "{name}");
        for port in ["p4-1", "p1-2", "p2-2", "p3-2"] {
            assert_eq!(place.out(port), reference.out(port), "{name} {port}");
        }
    }
}

#[test]
fn nanoseconds_survive() {
    let place = Place::new();
    let frames: Vec<Captured> = [7u64, 3, 1_000_000_001, 5]
        .into_iter()
        .map(|time| Captured { time, bytes: vec![time as u8; 60] })
        .collect();
    let file = place.write("in", &pcap(&frames, false, true, 262_144, 1));
    let verdicts = place.good(&[("p4-2", &file)], &[]);
    let order: Vec<u64> = verdicts.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(order, [1, 3, 0, 2], "capture time decides, the index is the file's");
    let times: Vec<u64> = place.out("p4-1").iter().map(|frame| frame.time).collect();
    assert_eq!(times, [3, 5, 7, 1_000_000_001]);
}

#[test]
fn frames_of_one_instant_keep_the_order_of_the_inputs() {
    let place = Place::new();
    let frame = |mark: u8| Captured { time: 1000, bytes: vec![mark; 60] };
    let one = place.write("one", &pcap(&[frame(1), frame(2)], false, false, 0, 1));
    let two = place.write("two", &pcap(&[frame(3)], false, false, 0, 1));
    let order = |verdicts: Vec<Value>| -> Vec<(String, u64)> {
        let key = |line: &Value| (line["port"].as_str().unwrap().to_owned(), line["index"].as_u64().unwrap());
        verdicts.iter().map(key).collect()
    };
    let pair = |port: &str, index| (port.to_owned(), index);
    let verdicts = place.good(&[("p10", &two), ("p4-2", &one)], &[]);
    assert_eq!(order(verdicts), [pair("p10", 0), pair("p4-2", 0), pair("p4-2", 1)]);
}

#[test]
fn frames_cut_by_the_snap_length_keep_what_is_there() {
    let place = Place::new();
    let whole = capture::read(&vectors("link1-lan.pcap")).unwrap();
    for snap in [0usize, 13, 14, 34, 96] {
        let cut: Vec<Captured> = whole
            .iter()
            .map(|frame| Captured {
                time: frame.time,
                bytes: frame.bytes[..snap.min(frame.bytes.len())].to_vec(),
            })
            .collect();
        let file = place.write("in", &pcap(&cut, false, false, snap as u32, 1));
        let verdicts = place.good(&[("p4-2", &file)], &[]);
        assert_eq!(verdicts.len(), whole.len());
        let steered = verdicts.iter().filter(|line| line["verdict"] == "to-ecofilter").count();
        assert_eq!(steered > 0, snap >= 34, "{snap}: {steered}");
    }
}

#[test]
fn simple_packet_blocks_are_cut_at_the_snap_length_and_have_no_padding() {
    let place = Place::new();
    let frames: Vec<Captured> =
        (60usize..70).map(|length| Captured { time: 0, bytes: (0..length as u8).collect() }).collect();
    for snap in [0u32, 61, 62, 63, 64, 1500] {
        let file = place.write("in", &PcapNg { simple: true, snap, ..PCAPNG }.file(&frames));
        let limit = if snap == 0 { usize::MAX } else { snap as usize };
        for (found, frame) in capture::read(&file).unwrap().iter().zip(&frames) {
            assert_eq!(found.bytes, frame.bytes[..limit.min(frame.bytes.len())], "snap length {snap}");
        }
    }
}

#[test]
fn the_upper_bits_of_the_link_type_field_are_no_link_type() {
    let place = Place::new();
    let frames: Vec<Captured> = [60u8, 61].map(|mark| Captured { time: 0, bytes: vec![mark; 64] }).to_vec();
    // An FCS length that is not announced means nothing.
    let file = place.write("in", &pcap(&frames, false, false, 65535, 0x3000_0001));
    assert_eq!(capture::read(&file).unwrap(), frames);
    // One that is announced: four bytes behind each frame that was captured whole.
    let mut whole = pcap(&frames, true, false, 65535, 0x2400_0001);
    whole[36..40].copy_from_slice(&64u32.to_be_bytes());
    let found = capture::read(&place.write("in", &whole)).unwrap();
    assert_eq!((found[0].bytes.len(), found[1].bytes.len()), (60, 64));
    let file = place.write("raw", &pcap(&frames, false, false, 65535, 0x3000_0065));
    place.refused(&[("p4-2", &file)], &[], &["raw", "101", "not Ethernet"]);
}

#[test]
fn odd_captures_are_replayed_or_refused_for_their_link_type() {
    let odd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures/odd");
    let Ok(entries) = fs::read_dir(&odd) else {
        eprintln!(
            "skipped: the odd captures are not here (they are other people's and not part of the project)"
        );
        return;
    };
    let mut replayed = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        for port in ["p4-2", "p1-1"] {
            let place = Place::new();
            let output = place.replay(&[(port, &path)], &[]);
            let error = text(&output.stderr);
            if output.status.success() {
                let lines = fs::read_to_string(place.path("verdicts.jsonl")).unwrap().lines().count();
                assert_eq!(lines, capture::read(&path).unwrap().len());
                replayed += lines;
            } else {
                assert!(error.contains("not Ethernet"), "{error}");
            }
        }
    }
    assert!(replayed > 500, "{replayed}");
}

#[test]
fn large_frames_are_read_whole() {
    let place = Place::new();
    let frames: Vec<Captured> =
        [9014usize, 65_535, 262_144].map(|length| Captured { time: 0, bytes: vec![9; length] }).to_vec();
    for bytes in [pcap(&frames, false, false, 262_144, 1), PCAPNG.file(&frames)] {
        let file = place.write("in", &bytes);
        assert_eq!(capture::read(&file).unwrap(), frames);
        let verdicts = place.good(&[("p4-2", &file)], &[]);
        let ends: Vec<(&str, &str)> = verdicts
            .iter()
            .map(|line| (line["verdict"].as_str().unwrap(), line["reason"].as_str().unwrap()))
            .collect();
        assert_eq!(ends, [("bypass", "not-ip"), ("drop", "mtu-exceeded"), ("drop", "mtu-exceeded")]);
    }
}

#[test]
fn a_capture_cut_in_the_middle_is_refused_by_file_and_frame() {
    let frames = capture::read(&vectors("link1-lan.pcap")).unwrap()[..5].to_vec();
    let sound = vectors("link1-wan.pcap");
    let classic = pcap(&frames, false, false, 65535, 1);
    let mut ends = vec![24];
    for frame in &frames {
        ends.push(ends.last().unwrap() + 16 + frame.bytes.len());
    }
    let place = Place::new();
    for length in 0..classic.len() {
        if ends.contains(&length) {
            continue; // whole frames are a whole capture
        }
        let file = place.write("cut.pcap", &classic[..length]);
        let error = capture::read(&file).expect_err("cut").to_string();
        let frame = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        assert!(
            error.contains("cut.pcap") && error.contains(&format!("frame {frame} ")),
            "{length}: {error}"
        );
    }
    let cut = classic.len() - 10;
    let file = place.write("cut.pcap", &classic[..cut]);
    place.refused(&[("p4-1", &sound), ("p4-2", &file)], &[], &["cut.pcap", "frame 4", "cut in the middle"]);
    let ng = PCAPNG.file(&frames);
    let file = place.write("cut.pcapng", &ng[..ng.len() - 10]);
    place.refused(&[("p4-2", &file)], &[], &["cut.pcapng", "frame 4", "cut in the middle"]);
}

#[test]
fn broken_inputs_and_unknown_names_are_refused() {
    let place = Place::new();
    let lan = vectors("link1-lan.pcap");
    place.refused(&[("p77", &lan)], &[], &["p77", "no such port", "p4-2"]);
    place.refused(&[("p4-2", &lan)], &["--down", "f9-9"], &["f9-9", "no such pair", "main/f1-1"]);
    place.refused(&[("p4-2", Path::new("/nowhere.pcap"))], &[], &["/nowhere.pcap", "No such file"]);
    let noise = place.write("noise", &[0x5a; 100]);
    place.refused(&[("p4-2", &noise)], &[], &["noise", "neither a pcap nor a pcapng"]);
    let frames = [Captured { time: 0, bytes: vec![0; 60] }];
    for (name, bytes) in [
        ("raw.pcap", pcap(&frames, false, false, 65535, 101)),
        ("raw.pcapng", PcapNg { linktype: 101, ..PCAPNG }.file(&frames)),
    ] {
        let file = place.write(name, &bytes);
        place.refused(&[("p4-2", &file)], &[], &[name, "101", "not Ethernet"]);
    }
    // A record that claims more than any frame has.
    let mut huge = pcap(&frames, false, false, 65535, 1);
    huge[32..36].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    let file = place.write("huge.pcap", &huge);
    place.refused(&[("p4-2", &file)], &[], &["huge.pcap"]);
    place.write("site.json", &EXAMPLE.as_bytes()[..700]);
    place.refused(&[("p4-2", &lan)], &[], &["site.json", "line"]);
    place.write("site.json", EXAMPLE.replace("\"cores\": 17", "\"cores\": 300").as_bytes());
    place.refused(&[("p4-2", &lan)], &[], &["site.json", "cores", "300"]);
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let place = Place::new();
    let lan = vectors("link1-lan.pcap");
    place.write("out", b"a file where the folder should be");
    let output = place.replay(&[("p4-2", &lan)], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("out"), "{}", text(&output.stderr));
    assert!(!place.path("verdicts.jsonl").exists());
}

#[test]
fn an_input_is_never_overwritten() {
    let place = Place::new();
    let (port, capture) = &link1()[0];
    let bytes = fs::read(capture).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    fs::create_dir(place.path("made")).unwrap();
    let refused = |input: &Path, output: &Path, arguments: [&str; 2]| {
        let [out, verdicts] = arguments.map(|name| place.path(name).display().to_string());
        let site = place.path("site.json").display().to_string();
        let input_argument = format!("{port}={}", input.display());
        let run = swpipe(&[
            "replay",
            "--config",
            &site,
            "--in",
            &input_argument,
            "--out",
            &out,
            "--verdicts",
            &verdicts,
        ]);
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{said}");
        assert!(said.contains(&input_argument) && said.contains(output.to_str().unwrap()), "{said}");
        assert_eq!(fs::read(input).unwrap(), bytes);
    };
    // A capture of the output folder itself, by another path to it.
    let own = place.write(&format!("out/{port}.pcap"), &bytes);
    let around = place.path("made").join(format!("../out/{port}.pcap"));
    refused(&around, &own, ["out", "verdicts.jsonl"]);
    assert!(!place.path("verdicts.jsonl").exists());
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 1);
    // The verdicts, by a symbolic link and by a hard one.
    let plain = place.write("plain.pcap", &bytes);
    std::os::unix::fs::symlink(&plain, place.path("symbolic")).unwrap();
    fs::hard_link(&plain, place.path("hard")).unwrap();
    for name in ["plain.pcap", "symbolic", "hard"] {
        refused(&plain, &place.path(name), ["new", name]);
        assert!(!place.path("new").exists());
    }
}

#[test]
fn usage_errors_have_their_own_exit_status() {
    for arguments in [&["replay"][..], &["decode", "--side", "up", "00"], &["nothing"], &[]] {
        assert_eq!(swpipe(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let output =
        swpipe(&["replay", "--config", "x", "--out", "y", "--verdicts", "z", "--in", "no-equals-sign"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("PORT=FILE"));
}

#[test]
fn decode_prints_what_the_vectors_expect() {
    let vectors: Vec<Value> = serde_json::from_slice(&fs::read(vectors("hash.json")).unwrap()).unwrap();
    for vector in vectors.iter().step_by(4) {
        let output = swpipe(&[
            "decode",
            "--side",
            vector["side"].as_str().unwrap(),
            vector["frame"].as_str().unwrap(),
        ]);
        assert!(output.status.success());
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found, vector["expect"], "{}", vector["name"]);
        assert_eq!(text(&output.stdout).lines().count(), 1);
    }
    for (hex, word) in [("0g", "hex"), ("012", "hex"), ("01 02", "hex")] {
        let output = swpipe(&["decode", "--side", "lan", hex]);
        assert_eq!(output.status.code(), Some(1), "{hex}");
        assert!(text(&output.stderr).contains(word) && output.stdout.is_empty());
    }
    let empty: Value = serde_json::from_slice(&swpipe(&["decode", "--side", "wan", ""]).stdout).unwrap();
    assert_eq!(empty["found"], json!(false));
}

#[test]
fn config_hash_prints_a_line_a_unit_and_the_device() {
    let place = Place::new();
    let print = |name: &str| {
        let path = place.path(name).display().to_string();
        swpipe(&["config-hash", "--config", &path])
    };
    let first = print("site.json");
    assert!(first.status.success());
    let lines = text(&first.stdout);
    let lines: Vec<Vec<&str>> = lines.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0][..2], lines[1][0]), (&["ecofilter-unit", "main"][..], "device"));
    assert!(lines.iter().all(|line| line.last().unwrap().len() == 64));
    // Links, flows and the order of pairs have no part in it; cores and names do.
    let mut tree: Value = serde_json::from_str(EXAMPLE).unwrap();
    tree["sluice:ecofilter-balancer"]["ecofilter-unit"][0]["pair"].as_array_mut().unwrap().reverse();
    tree["sluice:ecofilter-balancer"]["flow"] = json!([]);
    place.write("other.json", tree.to_string().as_bytes());
    assert_eq!(print("other.json").stdout, first.stdout);
    tree["sluice:ecofilter-balancer"]["ecofilter-unit"][0]["cores"] = json!(18);
    place.write("other.json", tree.to_string().as_bytes());
    assert_ne!(print("other.json").stdout, first.stdout);
    let missing = print("nowhere.json");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("nowhere.json"));
}

/// IPv6 with a destination options header of 16 bytes in front of UDP.
fn long_extension() -> Captured {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 60, 64];
    bytes.extend([[0x20; 16], [0x21; 16]].concat());
    bytes.extend([17, 1]);
    bytes.extend([0; 14]);
    bytes.extend([0x9c, 0x40, 0x01, 0xbb, 0, 8, 0, 0]);
    Captured { time: 0, bytes }
}

#[test]
fn a_profile_parses_as_far_as_its_target() {
    let place = Place::new();
    let udp = json!({"name": "udp", "priority": 300, "match": {"ip-proto": 17}, "action": "drop"});
    let mut tree: Value = serde_json::from_str(EXAMPLE).unwrap();
    tree["sluice:ecofilter-balancer"]["flow"].as_array_mut().unwrap().push(udp);
    place.write("site.json", tree.to_string().as_bytes());
    let file = place.write("one.pcap", &pcap(&[long_extension()], false, false, 65535, 1));
    let flow = |more: &[&str]| place.good(&[("p4-2", &file)], more)[0]["flow"].clone();
    for profile in ["swpipe", "bmv2"] {
        assert_eq!(flow(&["--profile", profile]), "udp", "{profile}");
    }
    assert_eq!(flow(&[]), "udp");
    // The options header is longer than its parser steps over, so its number is the protocol.
    assert_eq!(flow(&["--profile", "tofino1"]), "rest");
}

#[test]
fn a_site_that_a_target_has_no_room_for_is_refused() {
    let place = Place::new();
    let flows: Vec<Value> = (0..1200)
        .map(|n| {
            json!({"name": format!("f{n}"), "priority": 5, "match": {"ip-version": 4},
                   "apply-to-links": ["link1", "link2"], "action": "bypass"})
        })
        .collect();
    let mut tree: Value = serde_json::from_str(EXAMPLE).unwrap();
    tree["sluice:ecofilter-balancer"]["flow"] = json!(flows);
    place.write("site.json", tree.to_string().as_bytes());
    let lan = vectors("link1-lan.pcap");
    let words = ["1,200 rules", "need 2,400 entries in rules_v4; target tofino1 has 2,048"];
    place.refused(&[("p4-2", &lan)], &["--profile", "tofino1"], &words);
    place.good(&[("p4-2", &lan)], &[]);
    let output = place.replay(&[("p4-2", &lan)], &["--profile", "tofino"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there are swpipe, bmv2 and tofino1"), "{}", text(&output.stderr));
}

#[test]
fn a_port_that_a_target_keeps_for_its_cpu_is_refused() {
    let place = Place::new();
    let taken = EXAMPLE.replacen("\"number\": 4, \"lane\": 2", "\"number\": 48, \"lane\": 0", 1);
    assert_ne!(taken, EXAMPLE);
    place.write("site.json", taken.as_bytes());
    let lan = vectors("link1-lan.pcap");
    let words = ["number 48, lane 0", "port 192 of target tofino1"];
    place.refused(&[("p4-2", &lan)], &["--profile", "tofino1"], &words);
    place.good(&[("p4-2", &lan)], &[]);
}

//! The published vectors: parse and hashes of named frames and of two captures, bucket tables.
#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dataplane::{BucketTable, Method, Side, UnitShape, buckets, parse};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

fn load(name: &str) -> Vec<Value> {
    let path = vectors().join(name);
    serde_json::from_slice(&fs::read(&path).unwrap()).unwrap()
}

fn side(value: &Value) -> Side {
    serde_json::from_value(value.clone()).unwrap()
}

/// The parse and hashes of a frame in the vectors' shape.
fn described(frame: &[u8], side: Side) -> Value {
    dataplane::describe::describe(frame, side)
}

#[test]
fn named_frames_parse_and_hash_as_published() {
    let vectors = load("hash.json");
    assert!(vectors.len() >= 48, "{} vectors", vectors.len());
    for vector in vectors {
        let frame = hex::decode(vector["frame"].as_str().unwrap()).unwrap();
        let found = described(&frame, side(&vector["side"]));
        assert_eq!(found, vector["expect"], "{}", vector["name"]);
    }
}

#[test]
fn captured_frames_parse_and_hash_as_published() {
    let mut frames: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for side in ["lan", "wan"] {
        let file = fs::File::open(vectors().join(format!("link1-{side}.pcap"))).unwrap();
        let mut reader = pcap_file::pcap::PcapReader::new(file).unwrap();
        while let Some(packet) = reader.next_packet() {
            frames.entry(side.to_owned()).or_default().push(packet.unwrap().data.into_owned());
        }
    }
    let mut checked = 0;
    for line in fs::read_to_string(vectors().join("link1.expect.jsonl")).unwrap().lines() {
        let mut expect: Value = serde_json::from_str(line).unwrap();
        let name = expect["side"].as_str().unwrap().to_owned();
        let index = expect["index"].as_u64().unwrap() as usize;
        let found = described(&frames[&name][index], side(&expect["side"]));
        for key in ["session", "encap", "side", "index"] {
            expect.as_object_mut().unwrap().remove(key);
        }
        assert_eq!(found, expect, "{name} frame {index}");
        checked += 1;
    }
    assert_eq!(checked, frames.values().map(Vec::len).sum::<usize>());
}

fn names(value: &Value) -> BTreeMap<String, u8> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair["name"].as_str().unwrap().to_owned(), pair["weight"].as_u64().unwrap() as u8))
        .collect()
}

#[test]
fn bucket_tables_and_digests_are_as_published() {
    let vectors = load("buckets.json");
    assert!(vectors.len() >= 14);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let size = vector["buckets"].as_u64().unwrap() as u32;
        let mut shape = UnitShape {
            active: names(&vector["pairs"]),
            spares: names(&vector["spares"]).into_keys().collect(),
            cores: vector["cores"].as_u64().unwrap() as u16,
            buckets: None,
        };
        if name == "fixed size" {
            shape.buckets = Some(size);
        }
        assert_eq!(shape.bucket_count(), size, "{name}");
        let method: Method = vector["method"].as_str().unwrap().parse().unwrap();
        let table = BucketTable::build(&shape).unwrap();
        let first: Vec<Value> = table.home().take(32).map(|(pair, core)| json!([pair, core.0])).collect();
        assert_eq!(Value::from(first), vector["first_32"], "{name}");
        assert_eq!(table.config_hash(method), vector["config_hash"].as_str().unwrap(), "{name}");
        assert_eq!(json!(table.shares()), vector["share"], "{name}");
        let Some(down) = vector.get("down") else { continue };
        let down: BTreeSet<&str> = down.as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
        let up = |pair: &str| !down.contains(pair);
        let stand_ins = buckets::stand_ins(&shape, &BTreeMap::new(), up);
        let now = table.now(up, |_| true, &stand_ins);
        assert_eq!(json!(now[..32]), vector["now_first_32"], "{name}");
        let moved = now.iter().zip(table.home()).filter(|(now, (home, _))| *now != home).count();
        assert_eq!(json!(moved), vector["moved"], "{name}");
        let mut sha = Sha256::new();
        for pair in &now {
            sha.update(format!("{pair}\n"));
        }
        assert_eq!(hex::encode(sha.finalize()), vector["now_sha256"].as_str().unwrap(), "{name}");
    }
}

#[test]
fn odd_captures_pass_without_a_panic() {
    let odd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures/odd");
    let Ok(entries) = fs::read_dir(&odd) else {
        eprintln!(
            "skipped: the odd captures are not here (they are other people's and not part of the project)"
        );
        return;
    };
    let mut frames = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        let mut reader = pcap_file::pcap::PcapReader::new(fs::File::open(&path).unwrap()).unwrap();
        while let Some(Ok(packet)) = reader.next_packet() {
            for cut in 0..=packet.data.len() {
                let parsed = parse(&packet.data[..cut]);
                assert_eq!(parsed.session.is_none(), parsed.not_ip().is_some());
            }
            frames += 1;
        }
    }
    assert!(frames > 50, "{frames} frames in {}", odd.display());
}

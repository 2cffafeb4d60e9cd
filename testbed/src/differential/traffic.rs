//! The frames of one run over one set of tables, and the ports that they come in by.

use dataplane::steering::STEERING_OFFSET;
use dataplane::{Core, LinkIndex, PortId, SteeringMode};

use super::contents::Contents;
use super::frames::{generate, keep_alive_frame, mutate};
use crate::rng::Rng;

/// Frames that the tables are made to suit.
const POOL: u64 = 96;

/// Base frames of one set of tables: some of the corpus, the others generated.
#[must_use]
pub fn pool(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<Vec<u8>> {
    (0..POOL)
        .map(|_| match rng.pick(corpus) {
            Some(frame) if rng.chance(1, 4) => frame.clone(),
            _ => generate(rng),
        })
        .collect()
}

/// The next frame and its port.
#[must_use]
pub fn draw(rng: &mut Rng, contents: &Contents, pool: &[Vec<u8>]) -> (PortId, Vec<u8>) {
    let mut frame = match rng.weighted(&[30, 45, 23, 2]) {
        0 | 1 => rng.pick(pool).cloned().unwrap_or_default(),
        2 => generate(rng),
        _ => {
            let length = rng.below(14) as usize;
            rng.bytes(length)
        }
    };
    if rng.chance(3, 5) {
        mutate(rng, &mut frame);
    }
    let (ports, from_pair) = match rng.weighted(&[58, 30, 8, 4]) {
        0 => (&contents.link_ports, false),
        1 => (&contents.pair_ports, true),
        2 => (&contents.copy_ports, true),
        _ => (&contents.unknown_ports, rng.chance(1, 2)),
    };
    let port = rng.pick(ports).or_else(|| rng.pick(&contents.link_ports)).copied().unwrap_or_default();
    // Steered frames on links are opaque, keep-alives too; unsteered ones on pair ports are dropped: a few of each.
    if rng.chance(if from_pair { 6 } else { 1 }, 100) {
        frame = keep_alive_frame(rng);
    } else if rng.chance(if from_pair { 85 } else { 3 }, 100) {
        steer(rng, contents, &mut frame);
        if rng.chance(1, 10) {
            mutate(rng, &mut frame);
        }
    }
    (port, frame)
}

/// Pushes a steering header: mostly the right one for a link that there is.
fn steer(rng: &mut Rng, contents: &Contents, frame: &mut Vec<u8>) {
    let other = LinkIndex(rng.next_u64() as u8);
    let link = match rng.pick(&contents.links) {
        Some(link) if !rng.chance(1, 8) => *link,
        _ => other,
    };
    let mode = match contents.steering {
        SteeringMode::Native { tpid } if rng.chance(1, 20) => {
            SteeringMode::Native { tpid: rng.any([0x88b6, 0x8100, tpid ^ 1]) }
        }
        SteeringMode::Dot1q { tpid, base_vid } if rng.chance(1, 20) => SteeringMode::Dot1q {
            tpid: rng.any([tpid, 0x88b6, 0x8100]),
            base_vid: rng.any([base_vid.wrapping_sub(1), base_vid + 1, base_vid.wrapping_add(256), 0]),
        },
        mode => mode,
    };
    let mut header = mode.encode(Core(rng.next_u64() as u8), link);
    if rng.chance(1, 4) {
        header[2] ^= (rng.below(16) as u8) << 4; // priority and drop bits of a tag; core bits of a native header
    }
    let at = STEERING_OFFSET.min(frame.len());
    frame.splice(at..at, header);
}

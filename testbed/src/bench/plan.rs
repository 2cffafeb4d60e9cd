//! How long and how often everything is measured.

use std::time::Duration;

use super::frames::Size;
use super::pin;
use super::search::Effort;

/// Of one run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Sizes that systems are compared with.
    pub(super) sizes: Vec<Size>,
    /// How often each figure at saturation is taken.
    pub(super) repetitions: u32,
    /// How long each time.
    pub(super) saturation: Duration,
    /// How long each trial of the search is.
    pub(super) trial: Duration,
    /// How the search is done.
    pub(super) effort: Effort,
    /// How long stamps are taken.
    pub(super) latency: Duration,
    /// The size for the whole way and for other numbers of pairs; `None` leaves these out.
    pub(super) through: Option<Size>,
    /// Other numbers of pairs.
    pub(super) pairs: Vec<usize>,
    /// How long processes are watched without load.
    pub(super) idle: Duration,
}

impl Plan {
    /// At most a quarter of an hour for all systems.
    pub(super) fn full(tolerance_ppm: f64) -> Plan {
        Plan {
            sizes: vec![Size::Fixed(64), Size::Fixed(512), Size::Imix],
            repetitions: 3,
            saturation: Duration::from_millis(1500),
            trial: Duration::from_secs(2),
            effort: Effort { steps: 6, tries: 2, tolerance_ppm },
            latency: Duration::from_secs(2),
            through: Some(Size::Fixed(64)),
            pairs: vec![1, 80, 128],
            idle: Duration::from_secs(10),
        }
    }

    /// About a minute for all systems.
    pub(super) fn quick(tolerance_ppm: f64) -> Plan {
        Plan {
            sizes: vec![Size::Fixed(64)],
            repetitions: 1,
            saturation: Duration::from_millis(500),
            trial: Duration::from_millis(500),
            effort: Effort { steps: 4, tries: 2, tolerance_ppm },
            latency: Duration::from_millis(500),
            through: None,
            pairs: Vec::new(),
            idle: Duration::from_secs(1),
        }
    }

    /// What a reader must know to judge the figures, one sentence each.
    pub(super) fn method(&self) -> Vec<String> {
        let (generator, system) = (pin::GENERATOR, pin::SYSTEM);
        vec![
            format!(
                "Everything is in two network namespaces, joined by veth cables. The generator is an XDP program over \
                 live frames on core {generator}: 65,536 IPv4/UDP sessions in turn, which differ by source address and port. \
                 Sizes are with FCS; IMIX is 7 frames of 64 bytes to 4 of 594 and 1 of 1518."
            ),
            format!(
                "The system under test has core {system}: its process is bound there, or, where the kernel alone works, the thread \
                 that polls the link's port. For systems with a process, what the kernel does when frames arrive at their port \
                 runs on the generator's core, as an interrupt would; their sends, and what the far end of a cable does with a \
                 frame, run on core {system}."
            ),
            "At the far end of every cable an XDP program counts the generator's frames, known by a mark behind the UDP header, \
             by interface, and drops them. Frames of an earlier load and all others are not counted. veth has no zero copy: \
             AF_XDP copies there."
                .to_owned(),
            format!(
                "Saturated: the generator sends all it can; frames that arrive in {:.1} s, median of {} (least-most).",
                self.saturation.as_secs_f64(),
                self.repetitions
            ),
            "Core: time that the system's threads had on a core while frames were counted at saturation, over the frames that \
             arrived (schedstat). What the kernel does on the generator's core is not in it. Hardly touched by others on the \
             machine, whereas rates are."
                .to_owned(),
            "A frame that left as a packet buffer is copied for the sink's program, of the order of 100 ns in rate and core time of \
             every system but XDP redirect; a network card would not."
                .to_owned(),
            format!(
                "No loss: bisection in {} steps up to 1.1 times the rate at saturation, {:.1} s a trial; {} of a million \
                 frames may be lost; a rate is given up after {} trials that lost more.",
                self.effort.steps,
                self.trial.as_secs_f64(),
                self.effort.tolerance_ppm,
                self.effort.tries
            ),
            "Paced frames are due one by one; the kernel hands them to the cable in groups of up to 64 looks at the clock."
                .to_owned(),
            format!(
                "Time: the generator's program writes the time into one frame of 61, the sink's program subtracts it, for {:.1} s. \
                 The same load over a cable without a system is the zero; what is shown is the difference of the quantiles.",
                self.latency.as_secs_f64()
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_says_what_may_be_lost() {
        let method = Plan::full(2.5).method().join("\n");
        assert!(method.contains("2.5 of a million"), "{method}");
    }
}

//! The highest rate without loss (RFC 2544, 26.1), by bisection.

use serde::Serialize;

/// One trial at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Trial {
    /// Frames a second that were asked for.
    pub asked: f64,
    /// Frames a second that were sent.
    pub rate: f64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that the system's ports took from the cable, as the kernel counts them.
    pub taken: u64,
    /// Frames that arrived.
    pub received: u64,
    /// Frames that did not.
    pub lost: u64,
}

/// How long to look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Halvings of the interval.
    pub steps: u32,
    /// Trials at a rate before it is given up: frames that others on the machine cost are not the system's.
    pub tries: u32,
    /// Frames lost of a million sent that pass as none.
    pub tolerance_ppm: f64,
}

impl Effort {
    /// Whether a trial counts as one without loss.
    #[must_use]
    pub fn passes(&self, trial: &Trial) -> bool {
        trial.sent > 0 && trial.lost as f64 * 1e6 <= self.tolerance_ppm * trial.sent as f64
    }
}

/// Frames a second below which no rate is looked for.
const FLOOR: f64 = 1000.0;

/// Bisects between nothing and `top`, frames a second; the best trial that passed, if one did.
///
/// # Errors
/// What the trials say.
pub fn loss_free<E>(
    top: f64,
    effort: Effort,
    mut trial: impl FnMut(f64) -> Result<Trial, E>,
) -> Result<Option<Trial>, E> {
    let (mut low, mut high) = (0.0, top);
    let mut best: Option<Trial> = None;
    let mut rate = top;
    for _ in 0..=effort.steps {
        if rate < FLOOR {
            break;
        }
        let mut passed = None;
        for _ in 0..effort.tries {
            let tried = trial(rate)?;
            if effort.passes(&tried) {
                passed = Some(tried);
                break;
            }
        }
        match passed {
            Some(tried) => {
                // A generator that could not do what it was asked for has found its own limit.
                let limited = tried.rate < 0.98 * tried.asked;
                if best.is_none_or(|best| tried.rate > best.rate) {
                    best = Some(tried);
                }
                low = rate;
                if limited || rate >= top {
                    break;
                }
            }
            None => high = rate,
        }
        rate = f64::midpoint(low, high);
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: Effort = Effort { steps: 8, tries: 2, tolerance_ppm: 0.0 };

    fn system(limit: f64) -> impl FnMut(f64) -> Result<Trial, ()> {
        move |rate| {
            let received = rate.min(limit) as u64;
            let sent = rate as u64;
            Ok(Trial { asked: rate, rate, sent, taken: sent, received, lost: sent - received })
        }
    }

    #[test]
    fn the_limit_is_found_from_below() {
        let found =
            loss_free(2e6, EFFORT, system(700_000.0)).expect("no trial fails").expect("some rate passes");
        assert!((690_000.0..=700_000.0).contains(&found.rate), "{found:?}");
    }

    #[test]
    fn a_system_that_always_loses_has_no_rate() {
        let found = loss_free(1e6, EFFORT, system(0.0)).expect("no trial fails");
        assert_eq!(found, None);
    }

    #[test]
    fn no_rate_is_looked_for_where_nothing_passes() {
        let found = loss_free(0.0, EFFORT, |_| Err("a trial"));
        assert_eq!(found, Ok(None));
    }

    #[test]
    fn a_rate_is_tried_again_before_it_is_given_up() {
        let mut first = true;
        let found = loss_free(1e6, EFFORT, |rate| {
            let lost = u64::from(std::mem::take(&mut first));
            let sent = rate as u64;
            Ok::<_, ()>(Trial { asked: rate, rate, sent, taken: sent, received: sent - lost, lost })
        });
        assert_eq!(found.expect("no trial fails").expect("passes").rate, 1e6);
    }

    #[test]
    fn a_generator_at_its_limit_ends_the_search() {
        let mut trials = 0;
        let found = loss_free(8e6, EFFORT, |asked| {
            trials += 1;
            let sent = 3_000_000;
            Ok::<_, ()>(Trial { asked, rate: asked.min(3e6), sent, taken: sent, received: sent, lost: 0 })
        });
        assert_eq!((found.expect("no trial fails").expect("passes").rate, trials), (3e6, 1));
    }

    #[test]
    fn a_tolerance_is_of_a_million() {
        let effort = Effort { tolerance_ppm: 10.0, ..EFFORT };
        let trial = |lost| Trial {
            asked: 1e6,
            rate: 1e6,
            sent: 1_000_000,
            taken: 1_000_000,
            received: 1_000_000 - lost,
            lost,
        };
        assert!(effort.passes(&trial(10)));
        assert!(!effort.passes(&trial(11)));
    }
}

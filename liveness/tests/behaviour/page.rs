//! Parts of the page *Liveness* that are written by the code: between `<!-- NAME -->` and `<!-- end of NAME -->`.
//! `UPDATE_LIVENESS=1 cargo test -p liveness` refreshes them.

use std::fmt::Write as _;
use std::sync::Mutex;

use liveness::matrix::{frames, pair_state, unit_state};
use liveness::{Admin, PairState, Probes, UnitMode};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/liveness.md");

/// Two tests must not refresh the page at once.
static WRITING: Mutex<()> = Mutex::new(());

pub(crate) fn compare(name: &str, expected: &str) {
    let _guard = WRITING.lock().unwrap();
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let from = page.find(&begin).unwrap_or_else(|| panic!("{PAGE} has no {begin}")) + begin.len();
    let to = from + page[from..].find(&end).unwrap_or_else(|| panic!("{PAGE} has no {end}"));
    if std::env::var_os("UPDATE_LIVENESS").is_some() {
        std::fs::write(PAGE, format!("{}{expected}{}", &page[..from], &page[to..])).unwrap();
    } else {
        assert_eq!(&page[from..to], expected, "{PAGE}: {name}; refresh it with UPDATE_LIVENESS=1");
    }
}

fn name(value: impl std::fmt::Debug) -> String {
    match format!("{value:?}").as_str() {
        "AdminDown" => "admin-down".to_owned(),
        other => other.to_lowercase(),
    }
}

/// One row per admin, carrier, probes and hold, with a column of frames per unit mode; rows alike in everything that
/// follows are one.
fn matrix() -> String {
    let units = [
        ("auto, enough pairs", UnitMode::Auto, true),
        ("auto, too few", UnitMode::Auto, false),
        ("bypass", UnitMode::Bypass, true),
        ("primary", UnitMode::Primary, true),
    ];
    let mut text = String::from("| admin | carrier | probes | hold | pair state |");
    for (title, ..) in units {
        let _ = write!(text, " {title} |");
    }
    text.push_str("\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for admin in [Admin::Up, Admin::Drain, Admin::Down] {
        for carrier in [true, false] {
            for probes in [Probes::Unknown, Probes::Good, Probes::Bad] {
                for held in [false, true] {
                    let state = pair_state(admin, carrier, probes, held);
                    let carrier = if carrier { "both" } else { "missing" };
                    let held = if held { "runs" } else { "none" };
                    let _ = write!(
                        text,
                        "| {} | {carrier} | {} | {held} | **{}** |",
                        name(admin),
                        name(probes),
                        name(state)
                    );
                    for (_, mode, enough) in units {
                        let _ = write!(text, " {} |", frames(unit_state(mode, enough), state));
                    }
                    text.push('\n');
                }
            }
        }
    }
    text
}

#[test]
fn the_state_matrix_is_the_published_one() {
    compare("state matrix", &matrix());
}

#[test]
fn nothing_but_up_and_draining_carries() {
    let states = [
        PairState::Init,
        PairState::Up,
        PairState::Down,
        PairState::AdminDown,
        PairState::Draining,
        PairState::Held,
    ];
    let carrying: Vec<_> = states.into_iter().filter(|state| state.carries()).collect();
    assert_eq!(carrying, [PairState::Up, PairState::Draining]);
}

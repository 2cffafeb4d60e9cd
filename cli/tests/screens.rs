//! Every screen from fixed answers. `UPDATE_SCREENS=1 cargo test -p cli --test screens` writes the
//! expected texts anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use cli::render::{self, Style};
use support::{device, sample};

const PLAIN: Style = Style { colour: false };

fn screen(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{name}.txt"));
    for line in text.lines().filter(|_| !name.starts_with("events")) {
        assert!(line.chars().count() <= 80, "{name}: wider than 80 columns: {line}");
        assert_eq!(line, line.trim_end(), "{name}: blanks at the end");
    }
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, expected, "{}", file.display());
}

#[test]
fn every_screen_is_as_recorded() {
    screen("version", &render::version(&sample::version(), PLAIN));
    screen("ports", &render::ports(&sample::ports(2), PLAIN));
    screen("port", &render::port(&sample::ports(2)[0], PLAIN));
    screen("link", &render::links(&sample::links(), PLAIN));
    screen("balancer-2", &render::balancer(&sample::balancer(2), PLAIN));
    screen("balancer-troubled", &render::balancer(&sample::troubled(), PLAIN));
    screen("unit-2", &render::units(&sample::balancer(2).units, PLAIN));
    screen("flows", &render::flows(&sample::flows(), PLAIN));
    screen("flow", &render::flow(&sample::flows()[0], PLAIN));
    screen("flow-every-frame", &render::flow(&sample::flows()[2], PLAIN));
    screen("hash", &render::config_hash(&sample::config_hash(), PLAIN));
    screen("lookup", &render::lookup(&sample::lookup(), PLAIN));
    screen("liveness-2", &render::liveness(&sample::liveness(2), PLAIN));
    screen("liveness-detail", &render::liveness_in_detail(&sample::liveness(2), PLAIN));
    screen("drops", &render::drops(&sample::drops(), PLAIN));
    screen("events", &sample::events().iter().map(|event| render::event(event, PLAIN)).collect::<String>());
    screen(
        "configuration",
        &render::configuration(&sample::configuration(), &device::schema(), &tree::Path::default()),
    );
    screen("target", &render::target(&sample::target(), PLAIN));
    screen("applied", &render::applied(&sample::applied(), "site.json", PLAIN));
}

#[test]
fn a_full_device_fits_80_columns() {
    screen("ports-128", &render::ports(&sample::ports(128), PLAIN));
    screen("balancer-128", &render::balancer(&sample::balancer(128), PLAIN));
    screen("unit-128", &render::units(&sample::balancer(128).units, PLAIN));
    screen("liveness-128", &render::liveness(&sample::liveness(128), PLAIN));
}

#[test]
fn the_pair_that_is_down_stands_above_the_table() {
    let text = render::balancer(&sample::balancer(128), PLAIN);
    let head: Vec<&str> = text.lines().take_while(|line| !line.contains("Buckets")).collect();
    assert!(head.iter().any(|line| line.contains("f16-8 is down: 5 keep-alives lost in a row")), "{head:#?}");
    let mut all_down = sample::balancer(128);
    all_down.units[0].pairs.iter_mut().for_each(|pair| pair.state = "down".into());
    let text = render::balancer(&all_down, PLAIN);
    assert!(text.contains("and 120 more pairs that are not up"));
}

#[test]
fn colours_change_no_letter() {
    let colour = Style { colour: true };
    let text = render::balancer(&sample::troubled(), colour);
    let escapes = regex::Regex::new("\x1b\\[[0-9]+m").unwrap();
    assert_eq!(escapes.replace_all(&text, ""), render::balancer(&sample::troubled(), PLAIN));
    assert!(text.contains("\x1b[31mdown\x1b[0m") && text.contains("\x1b[32mup\x1b[0m"));
}

//! The screen.

use std::time::SystemTime;

use api::{Event, Pair, Severity, Unit, UnitMode};
use humantime::{format_rfc3339_seconds, parse_rfc3339};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};

use super::figures::{Figures, HISTORY, Rate, Track};
use super::view::{Row, View};
use crate::render::{Tone, count, harmless, percent, rate, time};

/// The smallest window that has room for anything.
const SMALLEST: (u16, u16) = (40, 8);
/// Widest name of a pair that is shown in full.
const LONGEST_NAME: usize = 24;

/// How the screen may look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// With colours.
    pub colour: bool,
    /// With characters beyond ASCII.
    pub unicode: bool,
}

impl Looks {
    /// By the locale of this process.
    pub fn of_this_process(colour: bool) -> Self {
        let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default().to_lowercase();
        Looks { colour, unicode: locale.contains("utf-8") || locale.contains("utf8") }
    }

    fn style(self, tone: Tone) -> Style {
        let plain = Style::default();
        match tone {
            Tone::Heading => plain.add_modifier(Modifier::BOLD),
            // What is wrong stands out without colours too.
            Tone::Bad if !self.colour => plain.add_modifier(Modifier::BOLD),
            Tone::Plain => plain,
            _ if !self.colour => plain,
            Tone::Good => plain.fg(Color::Green),
            Tone::Warning => plain.fg(Color::Yellow),
            Tone::Bad => plain.fg(Color::Red),
        }
    }

    fn span(self, tone: Tone, text: impl AsRef<str>) -> Span<'static> {
        Span::styled(harmless(text.as_ref()), self.style(tone))
    }

    fn rule(self) -> &'static str {
        if self.unicode { "\u{2500}" } else { "-" }
    }

    /// Part 0..=1 of a column's height.
    fn bar(self, part: f64) -> char {
        let bars: &[char] = if self.unicode {
            &['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}']
        } else {
            &['_', '.', '-', '=', '+', '*', '%', '#']
        };
        bars[((part * bars.len() as f64) as usize).min(bars.len() - 1)]
    }
}

/// Draws everything. `now` is the clock's time.
pub fn draw(frame: &mut Frame<'_>, figures: &Figures, view: &mut View, looks: Looks, now: SystemTime) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (columns, rows) = SMALLEST;
        frame.render_widget(format!("Too small: {columns}x{rows}\nat least. q quits."), area);
        return;
    }
    let width = usize::from(area.width);
    let mut top = vec![header(figures, looks, now, width)];
    top.extend(notices(figures, looks));
    let rows = view.rows(figures);
    let totals = totals(figures, looks, width, if area.height < 30 { 1 } else { 4 });
    let events = match area.height {
        0..16 => 0,
        16..30 => 3,
        30..45 => 6,
        height => usize::from(height) / 4,
    };
    let rules = usize::from(events > 0);
    // One line each: headings, the row with the bar in full, keys.
    let rest = top.len() + 3 + totals.len() + rules + events;
    let room = usize::from(area.height).saturating_sub(rest).max(1);
    let (at, first) = view.place(&rows, room);

    let mut lines = top;
    if view.help {
        lines.extend(help(looks).into_iter().take(room + 1));
    } else {
        let columns = Columns::fitting(width, &rows);
        lines.push(columns.headings(looks));
        let shown = rows.iter().enumerate().skip(first).take(room);
        lines.extend(shown.map(|(number, row)| {
            let line = match row {
                Row::Unit(unit) => unit_line(unit, figures, view, looks),
                Row::Pair(unit, pair) => columns.line(unit, pair, figures, looks, now),
            };
            if number == at { barred(line, width) } else { line }
        }));
        if rows.is_empty() {
            lines.push(Line::from(nothing(figures, view)));
        }
    }
    lines.resize(usize::from(area.height).saturating_sub(2 + totals.len() + rules + events), Line::default());
    lines.push(rows.get(at).map_or_else(Line::default, |row| in_full(row, figures, looks, now)));
    lines.extend(totals);
    if events > 0 {
        lines.push(events_rule(figures, looks, width));
        let skipped = figures.events().len().saturating_sub(events);
        lines.extend(figures.events().skip(skipped).map(|event| event_line(event, looks)));
    }
    lines.resize(usize::from(area.height) - 1, Line::default());
    frame.render_widget(Text::from(lines), area);
    let bottom = Rect::new(area.x, area.bottom() - 1, area.width, 1);
    frame.render_widget(keys(view, rows.len(), first, room, looks, width), bottom);
}

fn clock(time: SystemTime) -> String {
    format_rfc3339_seconds(time).to_string()
}

/// The time of day of an RFC 3339 time.
fn of_day(time: &str) -> &str {
    time.get(11..19).unwrap_or(time)
}

fn header(figures: &Figures, looks: Looks, now: SystemTime, width: usize) -> Line<'static> {
    let mut spans = vec![looks.span(Tone::Heading, "ecofilter-balancer")];
    if let Some(last) = figures.last() {
        let balancer = &last.balancer;
        spans.push(Span::raw(format!(
            "  {}  hash {}  data plane ",
            harmless(&balancer.balancing_method),
            harmless(&balancer.config_hash)
        )));
        let tone = if balancer.data_plane == "primary" { Tone::Good } else { Tone::Bad };
        spans.push(looks.span(tone, &balancer.data_plane));
    }
    let time = clock(now);
    // Where there is room for less, the time of day is what matters.
    let used: usize = spans.iter().map(Span::width).sum();
    let time = if used + 2 + time.len() <= width { time } else { format!("{}Z", of_day(&time)) };
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + time.len()).max(1))));
    spans.push(Span::raw(time));
    Line::from(spans)
}

/// What is wrong with everything at once.
fn notices(figures: &Figures, looks: Looks) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(away) = figures.away() {
        let mut text = format!("sluiced is away since {}", clock(away.since));
        if let Some(last) = figures.last() {
            let time = clock(last.time);
            text = format!("{text}; what is shown is of {}", of_day(&time));
        }
        lines.push(looks.span(Tone::Bad, format!("{text}: {}", away.reason)).into());
    }
    let Some(last) = figures.last() else { return lines };
    if last.balancer.data_plane != "primary" {
        let state = last.balancer.data_plane.to_uppercase();
        let reason = last.balancer.data_plane_reason.as_deref().unwrap_or("no reason is known");
        let text = format!("data plane {state}: {reason}; what follows is what was known before");
        lines.push(looks.span(Tone::Bad, text).into());
    }
    if last.balancer.liveness_suspended {
        let text = "liveness suspended: every pair fails at once, losses do not count yet";
        lines.push(looks.span(Tone::Warning, text).into());
    }
    lines
}

fn nothing(figures: &Figures, view: &View) -> String {
    match figures.last() {
        None => "Waiting for the first answer of sluiced.".into(),
        Some(_) if view.filter.is_empty() => "No ecofilter-unit is configured.".into(),
        Some(_) => format!("No pair with \"{}\" in its unit, name or state.", harmless(&view.filter)),
    }
}

fn state_tone(state: &str) -> Tone {
    match state {
        "up" => Tone::Good,
        "down" => Tone::Bad,
        _ => Tone::Warning,
    }
}

fn mode(mode: UnitMode) -> &'static str {
    match mode {
        UnitMode::Auto => "auto",
        UnitMode::Bypass => "by hand: bypass",
        UnitMode::Primary => "by hand: primary",
    }
}

fn unit_line(unit: &Unit, figures: &Figures, view: &View, looks: Looks) -> Line<'static> {
    let marker = if view.is_collapsed(&unit.name) { "+ " } else { "- " };
    let tone = match unit.state.as_str() {
        "up" => Tone::Good,
        "bypass" => Tone::Bad,
        _ => Tone::Warning,
    };
    let all = if unit.pairs_up == unit.pairs_total { Tone::Plain } else { Tone::Warning };
    let mut spans = vec![
        looks.span(Tone::Heading, format!("{marker}{}", unit.name)),
        Span::raw("  "),
        looks.span(tone, &unit.state),
        Span::raw(", "),
        looks.span(if unit.mode == UnitMode::Auto { Tone::Plain } else { Tone::Warning }, mode(unit.mode)),
        Span::raw(", "),
        looks.span(all, format!("{} of {} pairs up", unit.pairs_up, unit.pairs_total)),
    ];
    if let Some(sent) = figures.sent_by(unit) {
        let share = figures.share_of(unit).map_or_else(String::new, |share| format!(" ({})", percent(share)));
        spans.push(Span::raw(format!(", {} p/s{share}", rate(sent.packets))));
    }
    if let Some(other) = &unit.served_by {
        spans.push(looks.span(Tone::Warning, format!(", served by {other}")));
    }
    if unit.shed > 0 {
        spans.push(looks.span(Tone::Warning, format!(", {}% shed", unit.shed)));
    }
    if !unit.reason.is_empty() {
        spans.push(Span::raw(format!(": {}", harmless(&unit.reason))));
    }
    Line::from(spans)
}

/// The line of the bar.
fn barred(mut line: Line<'static>, width: usize) -> Line<'static> {
    let used = line.width();
    line.push_span(Span::raw(" ".repeat(width.saturating_sub(used))));
    line.patch_style(Style::default().add_modifier(Modifier::REVERSED))
}

/// A column of pairs, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Name,
    State,
    Buckets,
    UpPackets,
    UpBits,
    DownPackets,
    DownBits,
    LanToWan,
    WanToLan,
    History,
    Flaps,
    Share,
    BackPackets,
    BackBits,
    Changed,
    Reason,
}

impl What {
    fn title(self) -> &'static str {
        match self {
            What::Name => "Pair",
            What::State => "State",
            What::Buckets => "Bkts",
            What::UpPackets => "Up p/s",
            What::UpBits => "Up b/s",
            What::DownPackets => "Dn p/s",
            What::DownBits => "Dn b/s",
            What::LanToWan => "L>W",
            What::WanToLan => "W>L",
            What::History => "1min",
            What::Flaps => "Flaps",
            What::Share => "Share",
            What::BackPackets => "Back p/s",
            What::BackBits => "Back b/s",
            What::Changed => "Changed",
            What::Reason => "Reason",
        }
    }

    /// Flush left.
    fn is_text(self) -> bool {
        matches!(self, What::Name | What::State | What::History | What::Changed | What::Reason)
    }
}

/// The columns that fit, with their widths.
struct Columns(Vec<(What, usize)>);

/// Columns before the first.
const INDENT: usize = 2;
/// Of the reason, where it is shown at all.
const REASON: usize = 20;
/// Of the history, where it is shown at all, and before there is room for everything else.
const SHORT_HISTORY: usize = 4;
const SOME_HISTORY: usize = 12;

impl Columns {
    fn fitting(width: usize, rows: &[Row<'_>]) -> Self {
        let length = |row: &Row<'_>| match row {
            Row::Pair(_, pair) => pair.name.chars().count(),
            Row::Unit(_) => 0,
        };
        let name = rows.iter().map(length).max().unwrap_or(0).clamp(4, LONGEST_NAME);
        // The sooner, the more it matters; each is shown where all before it are.
        let wanted = [
            (What::Name, name),
            (What::State, 10),
            (What::Buckets, 5),
            (What::UpPackets, 6),
            (What::UpBits, 6),
            (What::DownPackets, 6),
            (What::DownBits, 6),
            (What::LanToWan, 6),
            (What::WanToLan, 6),
            (What::Flaps, 5),
            (What::History, SHORT_HISTORY),
            (What::Reason, REASON),
            (What::Changed, 8),
            (What::Share, 6),
            (What::BackPackets, 8),
            (What::BackBits, 8),
        ];
        let mut rest = width.saturating_sub(INDENT);
        let mut columns: Vec<(What, usize)> = Vec::new();
        for (what, wide) in wanted {
            if rest < wide {
                break;
            }
            let wide = if what == What::History { rest.min(SOME_HISTORY) } else { wide };
            rest = rest.saturating_sub(wide + 1);
            columns.push((what, wide));
        }
        // The reason is the last, and has what the history leaves.
        let reason = columns.iter().position(|(what, _)| *what == What::Reason).map(|at| columns.remove(at));
        let most = HISTORY as usize - SOME_HISTORY;
        let longer = if reason.is_some() { rest / 2 } else { rest }.min(most);
        for (what, wide) in &mut columns {
            if *what == What::History {
                *wide += longer;
                rest -= longer;
            }
        }
        columns.sort_by_key(|(what, _)| *what);
        columns.extend(reason.map(|(what, wide)| (what, wide + rest)));
        Columns(columns)
    }

    fn headings(&self, looks: Looks) -> Line<'static> {
        let cells =
            self.0.iter().map(|(what, wide)| (*what, *wide, String::from(what.title()), Tone::Heading));
        row(cells, looks)
    }

    fn line(
        &self,
        unit: &Unit,
        pair: &Pair,
        figures: &Figures,
        looks: Looks,
        now: SystemTime,
    ) -> Line<'static> {
        let track = figures.track(&unit.name, &pair.name);
        let rate_of = |rate: fn(&Track) -> Option<Rate>| track.and_then(rate);
        let packets = |of: fn(&Track) -> Option<Rate>| maybe(rate_of(of).map(|of| rate(of.packets)));
        let bits = |of: fn(&Track) -> Option<Rate>| maybe(rate_of(of).map(|of| rate(of.bits)));
        let cells = self.0.iter().map(|(what, wide)| {
            let text = match what {
                What::Name => pair.name.clone(),
                What::State => state(pair, now),
                What::Buckets => pair.buckets_now.to_string(),
                What::UpPackets => packets(Track::up),
                What::UpBits => bits(Track::up),
                What::DownPackets => packets(Track::down),
                What::DownBits => bits(Track::down),
                What::LanToWan => maybe(pair.lan_to_wan_ns.map(time)),
                What::WanToLan => maybe(pair.wan_to_lan_ns.map(time)),
                What::History => history(figures, unit, pair, *wide, looks),
                What::Flaps => count(pair.flaps),
                What::Share => percent(pair.share_percent),
                What::BackPackets => packets(Track::back),
                What::BackBits => bits(Track::back),
                What::Changed => maybe(pair.last_change.as_deref().map(|time| of_day(time).into())),
                What::Reason => maybe(pair.last_reason.clone()),
            };
            let tone = match what {
                What::State if pair.cores_down.is_empty() => state_tone(&pair.state),
                // It is up, but not all of it.
                What::State if pair.state == "up" => Tone::Warning,
                What::State => state_tone(&pair.state),
                What::Flaps if pair.flaps > 0 => Tone::Warning,
                What::Buckets if pair.buckets_now == 0 && pair.buckets_home > 0 => Tone::Warning,
                _ => Tone::Plain,
            };
            (*what, *wide, text, tone)
        });
        row(cells, looks)
    }
}

fn row(cells: impl Iterator<Item = (What, usize, String, Tone)>, looks: Looks) -> Line<'static> {
    let mut spans = vec![Span::raw(" ".repeat(INDENT))];
    for (what, wide, text, tone) in cells {
        let text: String = harmless(&text).chars().take(wide).collect();
        let text = if what.is_text() { format!("{text:wide$}") } else { format!("{text:>wide$}") };
        spans.push(Span::styled(text, looks.style(tone)));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn maybe(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

/// With what is left of a hold.
fn state(pair: &Pair, now: SystemTime) -> String {
    match &pair.hold {
        Some(hold) if hold.trial => format!("{} trial", pair.state),
        Some(hold) => {
            let left = parse_rfc3339(&hold.until).ok().and_then(|until| until.duration_since(now).ok());
            format!("{} {}s", pair.state, left.map_or(0, |left| left.as_secs_f64().ceil() as u64))
        }
        None => pair.state.clone(),
    }
}

/// Worker cores that do not answer.
fn cores_down(pair: &Pair) -> Option<String> {
    let cores: Vec<String> = pair.cores_down.iter().map(u8::to_string).collect();
    let s = if cores.len() == 1 { "" } else { "s" };
    (!cores.is_empty()).then(|| format!("core{s} {} down", cores.join(",")))
}

fn history(figures: &Figures, unit: &Unit, pair: &Pair, wide: usize, looks: Looks) -> String {
    let parts = figures.history(&unit.name, &pair.name, wide);
    parts.into_iter().map(|part| part.map_or(' ', |part| looks.bar(part))).collect()
}

/// What the table has no room for.
fn in_full(row: &Row<'_>, figures: &Figures, looks: Looks, now: SystemTime) -> Line<'static> {
    let (name, text) = match row {
        Row::Unit(unit) => (
            unit.name.clone(),
            format!(
                "{} of {} pairs needed, {} cores, {} buckets, rebalance {}, fail-action {}, profile {}, hash {}",
                unit.active_pairs,
                unit.pairs_total,
                unit.cores,
                unit.buckets,
                unit.rebalance,
                unit.fail_action,
                unit.liveness_profile,
                unit.config_hash
            ),
        ),
        Row::Pair(unit, pair) => {
            let back = figures.track(&unit.name, &pair.name).and_then(Track::back);
            let parts = [
                Some(state(pair, now)),
                cores_down(pair),
                pair.last_reason.clone(),
                pair.last_change.as_ref().map(|time| format!("at {}", of_day(time))),
                Some(format!("flaps {}", pair.flaps)),
                pair.stands_with.as_ref().map(|other| format!("stands with {other}")),
                Some(format!("ports {} {}", pair.lan_port, pair.wan_port)),
                Some(format!("{} weight {}", pair.role, pair.weight)),
                Some(format!("buckets {} of {}", pair.buckets_now, pair.buckets_home)),
                back.map(|back| format!("back {} p/s {} b/s", rate(back.packets), rate(back.bits))),
            ];
            (
                format!("{}/{}", unit.name, pair.name),
                parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            )
        }
    };
    Line::from(vec![looks.span(Tone::Heading, format!("{name}: ")), looks.span(Tone::Plain, text)])
}

/// Frames a second by verdict, in so many lines at most.
fn totals(figures: &Figures, looks: Looks, width: usize, most: usize) -> Vec<Line<'static>> {
    let of = |packets: Option<f64>| maybe(packets.map(rate));
    let mut parts = vec![(Tone::Plain, format!("in {}", of(figures.frames_in())))];
    for verdict in figures.verdicts() {
        let packets = verdict.rate.map(|rate| rate.packets);
        let some = packets.is_some_and(|packets| packets > 0.0);
        let tone = match verdict.verdict.as_str() {
            "drop" if some => Tone::Bad,
            "bypass" if some => Tone::Warning,
            _ => Tone::Plain,
        };
        let reason = verdict.reason.map_or_else(String::new, |reason| format!(" {reason}"));
        let text = format!("{}{reason} {}", verdict.verdict, of(packets));
        // Where there is little room, what does not happen now is left out.
        if some || verdict.rate.is_none() || most > 1 {
            parts.push((tone, text));
        }
    }
    let title = "Frames/s  ";
    let mut lines = vec![Line::from(looks.span(Tone::Heading, title))];
    for (tone, text) in parts {
        let wide = text.chars().count();
        let used = lines.last().map_or(0, Line::width);
        if used + wide + 2 > width && used > title.len() {
            if lines.len() == most {
                break;
            }
            lines.push(Line::from(" ".repeat(title.len())));
        }
        if let Some(line) = lines.last_mut() {
            line.push_span(looks.span(tone, text));
            line.push_span(Span::raw("  "));
        }
    }
    lines
}

fn events_rule(figures: &Figures, looks: Looks, width: usize) -> Line<'static> {
    let title = match figures.missed() {
        0 => "Events ".to_owned(),
        missed => format!("Events ({missed} missed) "),
    };
    let rule = looks.rule().repeat(width.saturating_sub(title.len()));
    Line::from(vec![looks.span(Tone::Heading, title), Span::raw(rule)])
}

fn event_line(event: &Event, looks: Looks) -> Line<'static> {
    let tone = match event.severity {
        Severity::Info => Tone::Plain,
        Severity::Warning => Tone::Warning,
        Severity::Error => Tone::Bad,
    };
    let change = match (&event.before, &event.after) {
        (None, None) => String::new(),
        (before, after) => {
            let state = |state: &Option<String>| state.clone().unwrap_or_default();
            format!(" {} -> {}", state(before), state(after))
        }
    };
    let detail = event.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
    Line::from(vec![
        looks.span(Tone::Plain, format!("{} ", of_day(&event.time))),
        looks.span(tone, format!("{:8}", event.severity)),
        looks
            .span(Tone::Plain, format!("{} {}{change}: {}{detail}", event.kind, event.subject, event.reason)),
    ])
}

/// The bottom line: what is being typed, or what can be.
fn keys(view: &View, rows: usize, first: usize, room: usize, looks: Looks, width: usize) -> Line<'static> {
    if view.typing {
        return Line::from(vec![
            looks.span(Tone::Heading, "Filter: "),
            looks.span(Tone::Plain, &view.filter),
            Span::styled(" ", Style::default().add_modifier(Modifier::REVERSED)),
            Span::raw("  Enter keeps it, Esc clears it"),
        ]);
    }
    let mut right = format!(
        "{}-{} of {rows}, by {}",
        (first + 1).min(rows),
        (first + room).min(rows),
        view.sort.as_str()
    );
    if !view.filter.is_empty() {
        right = format!("filter \"{}\", {right}", harmless(&view.filter));
    }
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, what) in [
        ("q", "quit"),
        ("?", "help"),
        ("s", "sort"),
        ("/", "filter"),
        ("c", "collapse"),
        ("C", "all"),
        ("arrows", "scroll"),
    ] {
        let wide = key.len() + 1 + what.len() + 2;
        if used + wide + right.len() > width {
            break;
        }
        used += wide;
        spans.push(looks.span(Tone::Heading, key));
        spans.push(Span::raw(format!(" {what}  ")));
    }
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + right.chars().count()))));
    spans.push(Span::raw(right));
    Line::from(spans)
}

fn help(looks: Looks) -> Vec<Line<'static>> {
    let keys = [
        ("q, Ctrl-C", "quit"),
        ("Up Down, k j", "a row; PgUp PgDn or b f a page, Home End or g G the ends"),
        ("s", "sort pairs: those not up first, by name, by frames, by time-on-path"),
        ("/", "filter: pairs with a text in unit, name or state; Esc clears it"),
        ("c, Enter", "hide or show the pairs of a unit; C those of all"),
        ("Ctrl-L", "draw the screen anew"),
    ];
    let words = [
        ("Up, Dn", "to the appliance by its LAN, its WAN port; a second: p packets, b bits"),
        ("Back", "from the appliance to links"),
        ("Bkts, Share", "buckets of the unit that the pair serves now, and their part"),
        ("L>W, W>L", "time-on-path of keep-alives, average of the last ones"),
        ("1min", "time-on-path of the slower way; full height is the longest"),
    ];
    let lines = |list: &[(&str, &str)]| -> Vec<Line<'static>> {
        list.iter()
            .map(|(key, what)| {
                Line::from(vec![
                    looks.span(Tone::Heading, format!("{key:13}")),
                    looks.span(Tone::Plain, what),
                ])
            })
            .collect()
    };
    let mut all = lines(&keys);
    all.extend(lines(&words));
    all.push(Line::from("Any key goes back."));
    all
}

//! Edits of p4c's JSON for BMv2. Each one panics where what it looks for is not there, so that a mutant that no longer
//! fits the program is seen.

use serde_json::{Value, json};

fn list<'v>(value: &'v mut Value, key: &str) -> &'v mut Vec<Value> {
    value[key].as_array_mut().unwrap_or_else(|| panic!("{key} is a list"))
}

fn is(value: &Value, key: &str, wanted: &str) -> bool {
    value[key].as_str() == Some(wanted)
}

fn fragment(value: &Value) -> &str {
    value["source_info"]["source_fragment"].as_str().unwrap_or_default()
}

/// A parser state, by its name in the source.
pub(crate) fn state<'p>(program: &'p mut Value, name: &str) -> &'p mut Value {
    let full = format!("FrameParser_{name}");
    list(&mut list(program, "parsers")[0], "parse_states")
        .iter_mut()
        .find(|state| is(state, "name", &full))
        .unwrap_or_else(|| panic!("there is a parser state {full}"))
}

/// Where the parser ends: what follows the state `unknown`.
fn accept(program: &mut Value) -> String {
    state(program, "unknown")["transitions"][0]["next_state"].as_str().expect("a state").to_owned()
}

/// Sends all transitions of a state that go to one state to another.
pub(crate) fn redirect(program: &mut Value, from: &str, target: &str, instead: &str) {
    let instead = if instead == "accept" { accept(program) } else { format!("FrameParser_{instead}") };
    let target = format!("FrameParser_{target}");
    let mut changed = 0;
    for transition in list(state(program, from), "transitions") {
        if is(transition, "next_state", &target) {
            transition["next_state"] = instead.clone().into();
            changed += 1;
        }
    }
    assert!(changed > 0, "{from} goes to {target}");
}

/// The transitions of a state for this value.
pub(crate) fn cases<'p>(program: &'p mut Value, from: &str, value: &str) -> Vec<&'p mut Value> {
    let found: Vec<&mut Value> = list(state(program, from), "transitions")
        .iter_mut()
        .filter(|transition| is(transition, "value", value))
        .collect();
    assert!(!found.is_empty(), "{from} has a case {value}");
    found
}

/// Leaves out a state's case.
pub(crate) fn drop_case(program: &mut Value, from: &str, value: &str) {
    cases(program, from, value);
    list(state(program, from), "transitions").retain(|transition| !is(transition, "value", value));
}

/// Gives a case another mask.
pub(crate) fn mask_case(program: &mut Value, from: &str, value: &str, mask: &str) {
    for case in cases(program, from, value) {
        case["mask"] = mask.into();
    }
}

/// All actions of this name: p4c makes one for each table.
pub(crate) fn actions<'p>(program: &'p mut Value, name: &str) -> Vec<&'p mut Value> {
    let found: Vec<&mut Value> =
        list(program, "actions").iter_mut().filter(|action| is(action, "name", name)).collect();
    assert!(!found.is_empty(), "there is an action {name}");
    found
}

/// Changes a constant wherever it stands in these actions.
pub(crate) fn constant(program: &mut Value, action: &str, from: &str, to: &str) {
    let changed: usize = actions(program, action)
        .into_iter()
        .flat_map(|action| list(action, "primitives"))
        .map(|primitive| replace(&mut primitive["parameters"], from, to))
        .sum();
    assert!(changed > 0, "{action} has the constant {from}");
}

fn replace(value: &mut Value, from: &str, to: &str) -> usize {
    if is(value, "type", "hexstr") && is(value, "value", from) {
        value["value"] = to.into();
        return 1;
    }
    match value {
        Value::Array(values) => values.iter_mut().map(|value| replace(value, from, to)).sum(),
        Value::Object(values) => values.values_mut().map(|value| replace(value, from, to)).sum(),
        _ => 0,
    }
}

/// Swaps the sources of the two assignments to one temporary in an action: both ways of a choice.
pub(crate) fn swap_choice(program: &mut Value, action: &str, choice: &str) {
    for action in actions(program, action) {
        let mut arms: Vec<&mut Value> = list(action, "primitives")
            .iter_mut()
            .filter(|primitive| is(primitive, "op", "assign") && fragment(primitive) == choice)
            .collect();
        let [yes, no] = arms.as_mut_slice() else { panic!("{choice} has two arms") };
        std::mem::swap(&mut yes["parameters"][1], &mut no["parameters"][1]);
    }
}

/// The calculation of the hash whose source begins like this.
pub(crate) fn hash_input<'p>(program: &'p mut Value, source: &str) -> &'p mut Vec<Value> {
    let name = list(program, "actions")
        .iter()
        .flat_map(|action| action["primitives"].as_array().into_iter().flatten())
        .find(|primitive| fragment(primitive).starts_with(source))
        .and_then(|primitive| primitive["parameters"][2]["value"].as_str())
        .unwrap_or_else(|| panic!("there is a hash {source}"))
        .to_owned();
    let calculation = list(program, "calculations").iter_mut().find(|one| is(one, "name", &name));
    list(calculation.expect("the calculation"), "input")
}

/// A table, by the end of its name.
pub(crate) fn table<'p>(program: &'p mut Value, name: &str) -> &'p mut Value {
    list(program, "pipelines")
        .iter_mut()
        .flat_map(|pipeline| list(pipeline, "tables"))
        .find(|table| table["name"].as_str().is_some_and(|full| full.rsplit('.').next() == Some(name)))
        .unwrap_or_else(|| panic!("there is a table {name}"))
}

/// Entries of a table that the program comes with, whose source has this in it.
pub(crate) fn const_entries<'p>(program: &'p mut Value, name: &str, source: &str) -> Vec<&'p mut Value> {
    let found: Vec<&mut Value> = list(table(program, name), "entries")
        .iter_mut()
        .filter(|entry| fragment(entry).contains(source))
        .collect();
    assert!(!found.is_empty(), "{name} has an entry {source}");
    found
}

/// Leaves them out.
pub(crate) fn drop_const_entries(program: &mut Value, name: &str, source: &str) {
    const_entries(program, name, source);
    list(table(program, name), "entries").retain(|entry| !fragment(entry).contains(source));
}

/// The id of an action.
pub(crate) fn action_id(program: &mut Value, name: &str) -> Value {
    actions(program, name)[0]["id"].clone()
}

/// The expressions of the conditions whose source is this.
pub(crate) fn conditions<'p>(program: &'p mut Value, source: &str) -> Vec<&'p mut Value> {
    conditions_of(program, ".p4", source)
}

/// The same in one file.
pub(crate) fn conditions_of<'p>(program: &'p mut Value, file: &str, source: &str) -> Vec<&'p mut Value> {
    let within = |condition: &Value| {
        condition["source_info"]["filename"].as_str().is_some_and(|name| name.ends_with(file))
    };
    let found: Vec<&mut Value> = list(program, "pipelines")
        .iter_mut()
        .flat_map(|pipeline| list(pipeline, "conditionals"))
        .filter(|condition| fragment(condition) == source && within(condition))
        .map(|condition| &mut condition["expression"])
        .collect();
    assert!(!found.is_empty(), "there is a condition {source}");
    found
}

/// `left` and not `right`, as an expression.
pub(crate) fn and_not(left: Value, right: Value) -> Value {
    let not = json!({"type": "expression", "value": {"op": "not", "left": null, "right": right}});
    json!({"type": "expression", "value": {"op": "and", "left": left, "right": not}})
}

/// Counts into another array.
pub(crate) fn count_elsewhere(program: &mut Value, array: &str, other: &str) {
    let mut changed = 0;
    for action in list(program, "actions") {
        for primitive in list(action, "primitives") {
            if is(primitive, "op", "count") && is(&primitive["parameters"][0], "value", array) {
                primitive["parameters"][0]["value"] = other.into();
                changed += 1;
            }
        }
    }
    assert!(changed > 0, "{array} is counted in");
}

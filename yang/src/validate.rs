//! Validation of a configuration and of an RPC's input.

use serde_json::Value;
use tree::{Kind, Path, Schema};
use yang5::data::{Data, DataFormat, DataOperation, DataParserFlags, DataTree, DataValidationFlags};

use crate::fault::{self, Fault, FaultKind, Stage};
use crate::{Yang, ffi};

/// So many faults are told at most: nobody reads more, and one mistake may break a rule of every flow.
const MOST_FAULTS: usize = 1000;

/// All faults, not the first alone.
fn all_faults() -> DataValidationFlags {
    DataValidationFlags::from_bits_retain(yang5::ffi::LYD_VALIDATE_MULTI_ERROR)
}

impl Yang {
    /// Checks a whole configuration against every rule of the modules.
    ///
    /// `configuration` is RFC 7951 JSON without state, well formed and without repeated members or keys, as the crate
    /// `tree` writes it: libyang is not made for hostile input.
    ///
    /// # Errors
    /// What is wrong, a thousand faults at most. Values and nodes that the schema does not have come first; only
    /// where there is none of those the other rules are looked at.
    pub fn validate(&self, configuration: &str) -> Result<(), Vec<Fault>> {
        let mut data = self.read(configuration, DataParserFlags::NO_STATE)?;
        ffi::clear_errors(&self.context);
        if data.validate(DataValidationFlags::NO_STATE | all_faults()).is_ok() {
            return Ok(());
        }
        Err(self.faults(Stage::Validate, &|_, instance| value_at(&data, instance)))
    }

    /// Checks the input of an RPC: RFC 7951 JSON of one member, the RPC's qualified name. What leaves of it refer to
    /// is looked up in `data`, JSON of a configuration; the parts that can be referred to are enough. Both as for
    /// [`Yang::validate`].
    ///
    /// # Errors
    /// What is wrong.
    pub fn validate_rpc(&self, input: &str, data: &str) -> Result<(), Vec<Fault>> {
        let data = self.read(data, DataParserFlags::empty())?;
        let operation = self.guarded(input, || {
            let flags = DataParserFlags::STRICT;
            DataTree::parse_op_string(&self.context, input, DataFormat::JSON, flags, DataOperation::RpcYang)
        })?;
        ffi::clear_errors(&self.context);
        if ffi::validate_rpc(&operation, &data) {
            return Ok(());
        }
        Err(self.faults(Stage::Validate, &|_, instance| value_at(&operation, instance)))
    }

    /// Reads data without validation; values and names are checked.
    pub(crate) fn read(&self, json: &str, flags: DataParserFlags) -> Result<DataTree<'_>, Vec<Fault>> {
        let flags = flags | DataParserFlags::STRICT | DataParserFlags::NO_VALIDATION;
        self.guarded(json, || {
            DataTree::parse_string(&self.context, json, DataFormat::JSON, flags, all_faults())
        })
    }

    fn guarded<'y>(
        &self,
        json: &str,
        read: impl FnOnce() -> Result<DataTree<'y>, yang5::Error>,
    ) -> Result<DataTree<'y>, Vec<Fault>> {
        if json.contains('\0') {
            let message = "has a NUL, which no JSON text has".to_owned();
            return Err(vec![unknown(message)]);
        }
        ffi::clear_errors(&self.context);
        let error = match read() {
            Ok(data) => return Ok(data),
            Err(error) => error,
        };
        let written: Value = serde_json::from_str(json).unwrap_or_default();
        let faults = self.faults(Stage::Read, &|path, _| written_at(&self.schema, &written, path));
        if faults.is_empty() { Err(vec![unknown(error.to_string())]) } else { Err(faults) }
    }

    /// The faults of the call before.
    fn faults(&self, stage: Stage, values: fault::Values<'_>) -> Vec<Fault> {
        let errors = ffi::errors(&self.context, MOST_FAULTS);
        ffi::clear_errors(&self.context);
        let faults = fault::faults(&self.schema, errors, stage, values);
        ffi::clear_errors(&self.context);
        faults
    }
}

/// A fault of the text as a whole.
fn unknown(message: String) -> Fault {
    Fault {
        at: Path::default(),
        path: String::new(),
        instance: String::new(),
        value: None,
        message,
        app_tag: None,
        kind: FaultKind::Unknown,
    }
}

/// The value of a leaf in data that was read.
fn value_at(data: &DataTree<'_>, instance: &str) -> Option<String> {
    data.reference()?;
    data.find_path(instance).ok()?.value_canonical()
}

/// The value of a leaf as it is written.
fn written_at(schema: &Schema, written: &Value, path: &Path) -> Option<String> {
    let mut at = written;
    for (index, step) in path.0.iter().enumerate() {
        let node = schema.node(step.node);
        if matches!(node.kind, Kind::Input | Kind::Output) {
            continue;
        }
        let qualified = || at.get(format!("{}:{}", schema.module_of(node).name, node.name));
        at = if index == 0 { qualified()? } else { at.get(&node.name).or_else(qualified)? };
        if let Kind::List { keys, .. } = &node.kind {
            let is_it = |entry: &&Value| {
                keys.iter().zip(step.keys.iter()).all(|(key, wanted)| {
                    entry.get(&schema.node(*key).name).and_then(text_of).as_deref() == Some(&**wanted)
                })
            };
            at = at.as_array()?.iter().find(is_it).filter(|_| !step.keys.is_empty())?;
        }
    }
    text_of(at)
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        // Of several values of a leaf-list libyang does not say which.
        Value::Array(values) => match values.as_slice() {
            [only] => text_of(only),
            _ => None,
        },
        _ => None,
    }
}

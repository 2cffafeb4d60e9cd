//! Places in the JSON: values that know where they are, so that errors can say it.

use serde_json::Value as Json;

use super::error::LoadError;
use super::value::Value;

/// A value and its place.
#[derive(Clone)]
pub(super) struct Node<'j> {
    json: &'j Json,
    at: String,
}

static NULL: Json = Json::Null;

impl<'j> Node<'j> {
    pub(super) fn root(json: &'j Json) -> Self {
        Node { json, at: "program".to_owned() }
    }

    pub(super) fn at(&self) -> String {
        self.at.clone()
    }

    fn shape(&self, wanted: &'static str) -> LoadError {
        LoadError::Shape { at: self.at(), wanted }
    }

    pub(super) fn wrong<T>(&self, wanted: &'static str) -> Result<T, LoadError> {
        Err(self.shape(wanted))
    }

    pub(super) fn unknown(&self, kind: &'static str, name: impl Into<String>) -> LoadError {
        LoadError::Unknown { at: self.at(), kind, name: name.into() }
    }

    pub(super) fn unsupported<T>(&self, kind: &'static str, name: impl Into<String>) -> Result<T, LoadError> {
        Err(LoadError::Unsupported { at: self.at(), kind, name: name.into() })
    }

    /// The value at a key; null where there is none.
    pub(super) fn get(&self, key: &str) -> Node<'j> {
        Node { json: self.json.get(key).unwrap_or(&NULL), at: format!("{}.{key}", self.at) }
    }

    /// The value at an index; null where there is none.
    pub(super) fn index(&self, index: usize) -> Node<'j> {
        Node { json: self.json.get(index).unwrap_or(&NULL), at: format!("{}[{index}]", self.at) }
    }

    pub(super) fn is_null(&self) -> bool {
        self.json.is_null()
    }

    pub(super) fn text(&self) -> Result<&'j str, LoadError> {
        self.json.as_str().ok_or_else(|| self.shape("a string"))
    }

    pub(super) fn maybe_text(&self) -> Result<Option<&'j str>, LoadError> {
        if self.is_null() { Ok(None) } else { self.text().map(Some) }
    }

    pub(super) fn number(&self) -> Result<usize, LoadError> {
        let number = self.json.as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| self.shape("a number that is not negative"))
    }

    pub(super) fn integer(&self) -> Result<i64, LoadError> {
        self.json.as_i64().ok_or_else(|| self.shape("an integer"))
    }

    pub(super) fn flag(&self) -> Result<bool, LoadError> {
        self.json.as_bool().ok_or_else(|| self.shape("true or false"))
    }

    /// A flag that may be left out.
    pub(super) fn flag_or(&self, otherwise: bool) -> Result<bool, LoadError> {
        if self.is_null() { Ok(otherwise) } else { self.flag() }
    }

    pub(super) fn hex(&self) -> Result<Value, LoadError> {
        Value::parse(self.text()?).ok_or_else(|| self.shape("a hexadecimal number"))
    }

    /// Elements of a list; a missing one is empty.
    pub(super) fn list(&self) -> Result<Vec<Node<'j>>, LoadError> {
        if self.is_null() {
            return Ok(Vec::new());
        }
        let list = self.json.as_array().ok_or_else(|| self.shape("a list"))?;
        Ok((0..list.len()).map(|index| self.index(index)).collect())
    }

    /// Elements of a list of so many.
    pub(super) fn exactly<const N: usize>(&self, wanted: &'static str) -> Result<[Node<'j>; N], LoadError> {
        self.list()?.try_into().map_err(|_| self.shape(wanted))
    }

    /// Keys and values of an object.
    pub(super) fn entries(&self) -> Result<Vec<(&'j str, Node<'j>)>, LoadError> {
        let object = self.json.as_object().ok_or_else(|| self.shape("an object"))?;
        Ok(object.keys().map(|key| (key.as_str(), self.get(key))).collect())
    }

    /// Refuses a list that has elements, each by its name.
    pub(super) fn none_of(&self, kind: &'static str) -> Result<(), LoadError> {
        match self.list()?.first() {
            None => Ok(()),
            Some(first) => first.unsupported(kind, first.get("name").text().unwrap_or("without a name")),
        }
    }

    /// Whether this is just a string.
    pub(super) fn is_text(&self) -> bool {
        self.json.is_string()
    }
}

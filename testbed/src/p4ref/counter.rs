//! Counter arrays.

use std::collections::HashMap;

use super::error::LoadError;
use super::node::Node;

/// Packets and bytes. BMv2 counts the bytes that the packet had when it came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, without FCS.
    pub bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// Place in the list of counter arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CounterId(pub(super) usize);

#[derive(Clone, Debug)]
struct Array {
    name: String,
    cells: Vec<Count>,
}

/// All counter arrays; direct counters are with their tables.
#[derive(Clone, Debug, Default)]
pub(super) struct CounterArrays {
    arrays: Vec<Array>,
    names: HashMap<String, CounterId>,
    /// Tables with direct counters.
    pub(super) direct: HashMap<String, String>,
}

impl CounterArrays {
    pub(super) fn load(root: &Node<'_>) -> Result<Self, LoadError> {
        let mut all = CounterArrays::default();
        for node in root.get("counter_arrays").list()? {
            let name = node.get("name").text()?.to_owned();
            if node.get("is_direct").flag_or(false)? {
                all.direct.insert(name, node.get("binding").text()?.to_owned());
                continue;
            }
            let cells = vec![Count::default(); node.get("size").number()?];
            all.names.insert(name.clone(), CounterId(all.arrays.len()));
            all.arrays.push(Array { name, cells });
        }
        Ok(all)
    }

    pub(super) fn find(&self, name: &str) -> Option<CounterId> {
        self.names.get(name).copied()
    }

    pub(super) fn named(&self, node: &Node<'_>) -> Result<CounterId, LoadError> {
        let name = node.text()?;
        self.find(name).ok_or_else(|| node.unknown("counter array", name))
    }

    pub(super) fn name(&self, id: CounterId) -> &str {
        &self.arrays[id.0].name
    }

    pub(super) fn cells(&self, id: CounterId) -> &[Count] {
        &self.arrays[id.0].cells
    }

    pub(super) fn cell_mut(&mut self, id: CounterId, cell: usize) -> Option<&mut Count> {
        self.arrays[id.0].cells.get_mut(cell)
    }

    /// Counts a packet; `false` where there is no such cell.
    pub(super) fn count(&mut self, id: CounterId, cell: u64, bytes: u64) -> bool {
        let cell = usize::try_from(cell).ok().and_then(|cell| self.cell_mut(id, cell));
        cell.map(|cell| cell.add(bytes)).is_some()
    }
}

//! The entries of a list by their keys, in pieces that copies share: a copy, a change and a comparison cost a piece,
//! not the list.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::data::{Fields, Keys};
use crate::natural;

/// A piece with more entries is cut in two.
const LARGEST_PIECE: usize = 256;

/// Keys in natural order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// What decides most comparisons without a look at the text.
    prefix: u128,
    pub(crate) keys: Keys,
}

impl Key {
    pub(crate) fn new(keys: &Keys) -> Self {
        let prefix = keys.first().map_or(0, |first| natural::prefix(first));
        Self { prefix, keys: Arc::clone(keys) }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| {
            if Arc::ptr_eq(&self.keys, &other.keys) {
                Ordering::Equal
            } else {
                natural::compare_all(&self.keys, &other.keys)
            }
        })
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

type Piece = Vec<(Key, Arc<Fields>)>;

/// Entries sorted by their keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    /// None is empty. Each has its keys from its own bound, exclusive of that of the next; what is below the first
    /// bound is in the first piece.
    pieces: Vec<(Key, Arc<Piece>)>,
    len: usize,
}

impl PartialEq for Sorted {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Sorted {}

impl Sorted {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Keys, &Arc<Fields>)> {
        self.pieces.iter().flat_map(|(_, piece)| piece.iter()).map(|(key, fields)| (&key.keys, fields))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<(&Keys, &Arc<Fields>)> {
        let (piece, at) = self.find(key).ok()?;
        let (key, fields) = self.pieces.get(piece)?.1.get(at)?;
        Some((&key.keys, fields))
    }

    /// What is at a key, and whether it was put there now.
    pub(crate) fn entry(&mut self, key: Key, new: impl FnOnce() -> Fields) -> &mut Arc<Fields> {
        let (mut piece, mut at) = match self.find(&key) {
            Ok(found) => return &mut Arc::make_mut(&mut self.pieces[found.0].1)[found.1].1,
            Err(place) => place,
        };
        self.len += 1;
        if self.pieces.is_empty() {
            self.pieces.push((key.clone(), Arc::default()));
        }
        if self.pieces[piece].1.len() >= LARGEST_PIECE {
            let full = Arc::make_mut(&mut self.pieces[piece].1);
            // Names often come in their order: the piece that is left is then full.
            let full_length = full.len();
            let cut = if at == full_length { at } else { full_length / 2 };
            let rest = full.split_off(cut);
            let bound = rest.first().map_or_else(|| key.clone(), |(first, _)| first.clone());
            self.pieces.insert(piece + 1, (bound, Arc::new(rest)));
            // Right before the cut it is below the bound of the new piece, unless that is its own.
            if at > cut || at == full_length {
                (piece, at) = (piece + 1, at - cut);
            }
        }
        let entries = Arc::make_mut(&mut self.pieces[piece].1);
        entries.insert(at, (key, Arc::new(new())));
        &mut entries[at].1
    }

    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let Ok((piece, at)) = self.find(key) else { return false };
        let entries = Arc::make_mut(&mut self.pieces[piece].1);
        entries.remove(at);
        if entries.is_empty() {
            self.pieces.remove(piece);
        }
        self.len -= 1;
        true
    }

    /// Tells, in their order, of the keys whose entries are not one and the same in both.
    pub(crate) fn differing<'a>(
        &'a self,
        other: &'a Self,
        mut each: impl FnMut(&'a Keys, Option<&'a Arc<Fields>>, Option<&'a Arc<Fields>>),
    ) {
        let (mut own, mut others) = (Cursor::new(self), Cursor::new(other));
        loop {
            if let (Some(a), Some(b)) = (own.whole(), others.whole())
                && Arc::ptr_eq(a, b)
            {
                own.skip();
                others.skip();
                continue;
            }
            let order = match (own.entry(), others.entry()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            let before = own.entry().filter(|_| order.is_le());
            let after = others.entry().filter(|_| order.is_ge());
            match (before, after) {
                (Some((_, before)), Some((_, after))) if Arc::ptr_eq(before, after) => {}
                (Some((key, before)), after) => each(&key.keys, Some(before), after.map(|(_, after)| after)),
                (None, Some((key, after))) => each(&key.keys, None, Some(after)),
                (None, None) => {}
            }
            if order.is_le() {
                own.step();
            }
            if order.is_ge() {
                others.step();
            }
        }
    }

    /// Piece and place of a key, or where it would be.
    fn find(&self, key: &Key) -> Result<(usize, usize), (usize, usize)> {
        let piece = self.pieces.partition_point(|(bound, _)| bound <= key).saturating_sub(1);
        let Some((_, entries)) = self.pieces.get(piece) else { return Err((0, 0)) };
        match entries.binary_search_by(|(own, _)| own.cmp(key)) {
            Ok(at) => Ok((piece, at)),
            Err(at) => Err((piece, at)),
        }
    }
}

/// A place in a [`Sorted`].
struct Cursor<'a> {
    sorted: &'a Sorted,
    piece: usize,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(sorted: &'a Sorted) -> Self {
        Self { sorted, piece: 0, at: 0 }
    }

    /// The piece, where nothing of it has been passed.
    fn whole(&self) -> Option<&'a Arc<Piece>> {
        let (_, piece) = self.sorted.pieces.get(self.piece).filter(|_| self.at == 0)?;
        Some(piece)
    }

    fn entry(&self) -> Option<&'a (Key, Arc<Fields>)> {
        self.sorted.pieces.get(self.piece)?.1.get(self.at)
    }

    fn skip(&mut self) {
        self.piece += 1;
        self.at = 0;
    }

    fn step(&mut self) {
        self.at += 1;
        if self.entry().is_none() {
            self.skip();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn keys(n: u16) -> Keys {
        Arc::new([format!("n{n}").into()])
    }

    fn same(sorted: &Sorted, map: &BTreeMap<u16, Arc<Fields>>) {
        assert_eq!(sorted.len(), map.len());
        let listed: Vec<_> = sorted.iter().map(|(keys, _)| keys.clone()).collect();
        assert_eq!(listed, map.keys().map(|n| keys(*n)).collect::<Vec<_>>());
        assert!(sorted.pieces.iter().all(|(_, piece)| !piece.is_empty() && piece.len() <= LARGEST_PIECE));
        for (n, fields) in map {
            assert!(sorted.get(&Key::new(&keys(*n))).is_some_and(|(_, own)| Arc::ptr_eq(own, fields)));
        }
    }

    fn change(sorted: &mut Sorted, map: &mut BTreeMap<u16, Arc<Fields>>, steps: &[(bool, u16)]) {
        for (add, n) in steps {
            let key = Key::new(&keys(*n));
            if *add {
                map.insert(*n, Arc::clone(sorted.entry(key, Fields::default)));
            } else {
                assert_eq!(sorted.remove(&key), map.remove(n).is_some());
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn it_is_a_map_and_copies_are_apart(
            first in proptest::collection::vec((proptest::bool::weighted(0.8), 0..2000_u16), 0..1500),
            run in 0..900_u16,
            more in proptest::collection::vec((proptest::bool::ANY, 0..2500_u16), 0..40),
        ) {
            let (mut sorted, mut map) = (Sorted::default(), BTreeMap::new());
            let run: Vec<(bool, u16)> = (0..run).map(|n| (true, n)).collect();
            change(&mut sorted, &mut map, &run);
            change(&mut sorted, &mut map, &first);
            same(&sorted, &map);
            let (mut other, mut other_map) = (sorted.clone(), map.clone());
            change(&mut other, &mut other_map, &more);
            same(&other, &other_map);
            same(&sorted, &map);
            let mut told = Vec::new();
            sorted.differing(&other, |keys, a, b| told.push((keys.clone(), a.is_some(), b.is_some())));
            let expected: Vec<_> = (0..2500)
                .filter(|n| match (map.get(n), other_map.get(n)) {
                    (Some(a), Some(b)) => !Arc::ptr_eq(a, b),
                    (a, b) => a.is_some() || b.is_some(),
                })
                .map(|n| (keys(n), map.contains_key(&n), other_map.contains_key(&n)))
                .collect();
            assert_eq!(told, expected);
        }

        #[test]
        fn keys_are_in_natural_order(a in "[a01:]{0,20}", b in "[a01:]{0,20}") {
            let key = |text: &str| Key::new(&(Arc::new([text.into()]) as Keys));
            assert_eq!(key(&a).cmp(&key(&b)), natural::compare(&a, &b));
        }
    }
}

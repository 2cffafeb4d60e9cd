//! A sorted set whose clones share what neither changes: a clone takes microseconds however much is in it.

use std::borrow::Borrow;
use std::sync::Arc;

/// Elements in a block at most.
const BLOCK: usize = 256;

/// The set. A change copies the one block that it touches, where a clone has it too.
#[derive(Clone, Debug)]
pub struct SharedSet<T> {
    /// In order; none is empty.
    blocks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for SharedSet<T> {
    fn default() -> Self {
        SharedSet { blocks: Vec::new(), len: 0 }
    }
}

impl<T: Ord + Clone> SharedSet<T> {
    /// How many elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block that has the element, or is to have it: the last that does not begin behind it, or else the first.
    fn block_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        let behind = |block: &Arc<Vec<T>>| block.first().is_some_and(|first| first.borrow() > key);
        self.blocks.partition_point(|block| !behind(block)).saturating_sub(1)
    }

    /// The element that equals `key`.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        T: Borrow<Q>,
    {
        let block = self.blocks.get(self.block_of(key))?;
        let place = block.binary_search_by(|element| element.borrow().cmp(key)).ok()?;
        block.get(place)
    }

    /// Puts an element in, in the place of the one that equals it.
    pub fn replace(&mut self, element: T) {
        let at = self.block_of(&element);
        let Some(block) = self.blocks.get_mut(at).map(Arc::make_mut) else {
            self.blocks.push(Arc::new(vec![element]));
            self.len = 1;
            return;
        };
        match block.binary_search(&element) {
            Ok(place) => {
                if let Some(same) = block.get_mut(place) {
                    *same = element;
                }
            }
            Err(place) => {
                block.insert(place, element);
                self.len += 1;
                if block.len() > BLOCK {
                    // What is appended in order fills blocks.
                    let rest = block.split_off(if place == BLOCK { BLOCK } else { BLOCK / 2 });
                    block.shrink_to_fit();
                    self.blocks.insert(at + 1, Arc::new(rest));
                }
            }
        }
    }

    /// Takes the element out that equals `key`.
    pub fn take<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        T: Borrow<Q>,
    {
        let at = self.block_of(key);
        let block = self.blocks.get_mut(at)?;
        let place = block.binary_search_by(|element| element.borrow().cmp(key)).ok()?;
        let block = Arc::make_mut(block);
        let taken = block.remove(place);
        self.len -= 1;
        let left = block.len();
        // Neighbours that together fill half a block become one, lest blocks grow small and many.
        if self.blocks.get(at + 1).is_some_and(|next| left + next.len() <= BLOCK / 2) {
            let next = Arc::unwrap_or_clone(self.blocks.remove(at + 1));
            if let Some(block) = self.blocks.get_mut(at) {
                Arc::make_mut(block).extend(next);
            }
        } else if left == 0 {
            self.blocks.remove(at);
        }
        Some(taken)
    }

    /// The first of all.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.blocks.first()?.first()
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flat_map(|block| block.iter())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Replace(u16),
        Take(u16),
        Clone,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0..2000_u16).prop_map(Step::Replace),
            5 => (0..2000_u16).prop_map(Step::Take),
            1 => Just(Step::Clone),
        ];
        proptest::collection::vec(step, 0..4000)
    }

    fn sound(set: &SharedSet<u16>) {
        assert!(set.blocks.iter().all(|block| (1..=BLOCK).contains(&block.len())));
        assert_eq!(set.len(), set.iter().count());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn it_holds_what_a_sorted_set_holds_and_clones_stay_as_they_were(steps in steps()) {
            let (mut set, mut model) = (SharedSet::default(), BTreeSet::new());
            let mut before = (set.clone(), model.clone());
            for step in steps {
                match step {
                    Step::Replace(element) => {
                        set.replace(element);
                        model.replace(element);
                    }
                    Step::Take(element) => prop_assert_eq!(set.take(&element), model.take(&element)),
                    Step::Clone => before = (set.clone(), model.clone()),
                }
            }
            sound(&set);
            for (set, model) in [(set, model), before] {
                prop_assert!(set.iter().eq(&model));
                prop_assert!((0..2000).all(|element| set.get(&element) == model.get(&element)));
            }
        }
    }

    #[test]
    fn a_change_copies_one_block_of_many() {
        let mut set = SharedSet::default();
        (0..10_000_u16).for_each(|element| set.replace(2 * element));
        sound(&set);
        for element in [0, 9_999, 19_999] {
            let mut next = set.clone();
            next.replace(element);
            next.take(&element);
            let copied =
                next.blocks.iter().filter(|block| !set.blocks.iter().any(|other| Arc::ptr_eq(other, block)));
            assert!(copied.count() <= 2, "element {element}");
        }
        (0..10_000_u16).for_each(|element| assert_eq!(set.take(&(2 * element)), Some(2 * element)));
        assert!(set.is_empty() && set.blocks.is_empty());
    }
}

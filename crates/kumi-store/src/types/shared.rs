//! A block that copies of a collection share, copied when one of them changes it.

use crate::base::size_class::block_bytes;
use std::ops::{Deref, DerefMut};
use triomphe::Arc;

/// The count beside the block.
const COUNT_BYTES: usize = size_of::<usize>();

/// A shared block. Copying it is counting; a change copies the block first if another holder has it.
///
/// The standard library's `Arc` has weak references too: one more count for each block, which a change has to lock to see
/// that the block has one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared<T>(Arc<T>);

impl<T: Clone> Shared<T> {
    /// What sharing takes from the heap: one allocation for the count and the block's own size.
    pub(super) const HEAP_BYTES: usize = block_bytes(size_of::<T>() + COUNT_BYTES);

    pub(super) fn new(block: T) -> Self {
        Self(Arc::new(block))
    }

    /// Where the count is, which a change reads.
    #[inline]
    pub(super) fn count(&self) -> *const u8 {
        Arc::as_ptr(&self.0).cast::<u8>().wrapping_sub(COUNT_BYTES)
    }

    /// The block, copied if it is shared.
    pub(super) fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_copy_does_not_reach_the_other() {
        let mut one = Shared::new(vec![1]);
        let other = one.clone();
        one.push(2);
        assert_eq!((one.len(), other.len()), (2, 1));
        assert_eq!(other.into_inner(), [1]);
    }
}

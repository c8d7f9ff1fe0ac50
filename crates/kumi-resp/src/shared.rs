//! Bytes with a reference count: one allocation that the input, the data and the output share.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that several owners read and that a single owner may write.
///
/// A clone copies no byte. [`make_mut`](Self::make_mut) writes in place while there is one owner,
/// and copies first when there are more.
///
/// ```
/// use kumi_resp::SharedBytes;
///
/// let mut first = SharedBytes::new(b"value".to_vec());
/// let second = first.clone();
/// assert!(first.get_mut().is_none(), "with two owners there is no write in place");
/// first.make_mut().push(b'!');
/// assert_eq!(&*first, b"value!");
/// assert_eq!(&*second, b"value");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SharedBytes(Arc<Vec<u8>>);

impl SharedBytes {
    /// Takes the vector as it is, spare capacity included.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// The vector, when this is its only owner.
    #[must_use]
    pub fn get_mut(&mut self) -> Option<&mut Vec<u8>> {
        Arc::get_mut(&mut self.0)
    }

    /// The vector, copied first when there are other owners.
    pub fn make_mut(&mut self) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.0)
    }

    /// Whether there is no other owner, so that dropping this frees the bytes.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// How many owners there are, this one included. Owners in other threads may come and go meanwhile.
    #[must_use]
    pub fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// The heap memory of the bytes, spare capacity included, also when they have other owners.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        /// The two counters of an `Arc`.
        const COUNTERS: usize = 2 * size_of::<usize>();
        self.0.capacity() + size_of::<Vec<u8>>() + COUNTERS
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for SharedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.len())
    }
}

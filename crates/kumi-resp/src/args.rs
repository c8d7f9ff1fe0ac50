//! The arguments of a request, borrowed from the query buffer or owned.
//!
//! Arguments are bytes; this module does not interpret them.

use crate::SharedBytes;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Index;

/// The place of one argument: in the buffer, or among the large arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first byte, or the index of a large argument.
    pub(crate) start: usize,
    /// The position after the last byte; [`LARGE`] for a large argument.
    pub(crate) end: usize,
}

/// Marks a large argument; no buffer has this length.
const LARGE: usize = usize::MAX;

impl Span {
    pub(crate) fn large(index: usize) -> Self {
        Self {
            start: index,
            end: LARGE,
        }
    }

    #[inline]
    pub(crate) fn is_large(self) -> bool {
        self.end == LARGE
    }

    #[inline]
    fn slice<'a>(self, bytes: &'a [u8], large: &'a [SharedBytes]) -> &'a [u8] {
        if self.is_large() {
            &large[self.start]
        } else {
            &bytes[self.start..self.end]
        }
    }
}

/// The arguments of one request: a view that is cheap to copy. `args[0]` is the command's name as
/// it was sent.
///
/// ```
/// use kumi_resp::{Decoder, Limits, Step};
///
/// let mut decoder = Decoder::new();
/// let step = decoder.decode(b"SET key value\r\n", &Limits::default())?;
/// let Step::Request { args, .. } = step else { panic!("the line is complete") };
/// assert_eq!(args.len(), 3);
/// assert_eq!(&args[0], b"SET");
/// assert_eq!(args.get(3), None);
/// assert_eq!(args.tail(1).iter().collect::<Vec<_>>(), [&b"key"[..], b"value"]);
/// # Ok::<(), kumi_resp::ProtocolError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
    large: &'a [SharedBytes],
}

impl<'a> Args<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Span], large: &'a [SharedBytes]) -> Self {
        Self {
            bytes,
            spans,
            large,
        }
    }

    /// How many arguments there are, the command's name included.
    #[inline]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there are no arguments. A decoded request always has at least one.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`, or `None` past the end. Unlike indexing, the slice outlives this view.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.spans
            .get(index)
            .map(|span| span.slice(self.bytes, self.large))
    }

    /// The handle of an argument that has a buffer of its own, as arguments from
    /// [`LARGE_ARG_BYTES`](crate::LARGE_ARG_BYTES) on have. A clone of it copies no byte.
    #[inline]
    pub fn shared(self, index: usize) -> Option<&'a SharedBytes> {
        let span = self.spans.get(index).filter(|span| span.is_large())?;
        self.large.get(span.start)
    }

    /// The handles of all arguments of the request that have buffers of their own, in their order.
    #[inline]
    pub fn large(self) -> &'a [SharedBytes] {
        self.large
    }

    /// Iterates over the arguments in order.
    #[inline]
    pub fn iter(self) -> ArgsIter<'a> {
        ArgsIter {
            bytes: self.bytes,
            spans: self.spans.iter(),
            large: self.large,
        }
    }

    /// The arguments without the first `from`; empty if there are fewer.
    #[inline]
    pub fn tail(self, from: usize) -> Args<'a> {
        Args {
            bytes: self.bytes,
            spans: self.spans.get(from..).unwrap_or_default(),
            large: self.large,
        }
    }

    /// A copy that outlives the input buffer, for commands that are kept and run later. Arguments
    /// with buffers of their own are shared, not copied.
    pub fn to_owned(self) -> OwnedArgs {
        let mut owned = OwnedArgs::default();
        let mut bytes = Vec::new();
        let mut large = Vec::new();
        let spans = self.spans.iter().map(|&span| {
            if span.is_large() {
                large.push(self.large[span.start].clone());
                return Span::large(large.len() - 1);
            }
            let start = bytes.len();
            bytes.extend_from_slice(span.slice(self.bytes, self.large));
            let end = bytes.len();
            Span { start, end }
        });
        owned.spans = spans.collect();
        owned.bytes = bytes.into();
        owned.large = large.into();
        owned
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    /// The argument at this index. Panics past the end, as a slice does.
    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.spans[index].slice(self.bytes, self.large)
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

impl PartialEq for Args<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Args<'_> {}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.iter().map(|arg| arg.escape_ascii().to_string());
        f.debug_list().entries(shown).finish()
    }
}

/// The iterator of [`Args::iter`].
///
/// ```
/// use kumi_resp::OwnedArgs;
///
/// let owned = OwnedArgs::from_slices(["DEL", "a", "b"]);
/// let mut iter = owned.as_args().iter();
/// assert_eq!(iter.len(), 3);
/// assert_eq!(iter.next_back(), Some(&b"b"[..]));
/// ```
#[derive(Clone)]
pub struct ArgsIter<'a> {
    bytes: &'a [u8],
    spans: std::slice::Iter<'a, Span>,
    large: &'a [SharedBytes],
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let span = self.spans.next()?;
        Some(span.slice(self.bytes, self.large))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for ArgsIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let span = self.spans.next_back()?;
        Some(span.slice(self.bytes, self.large))
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}
impl FusedIterator for ArgsIter<'_> {}

impl fmt::Debug for ArgsIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Args::new(self.bytes, self.spans.as_slice(), self.large).fmt(f)
    }
}

/// Arguments that own their bytes: short ones packed end to end in one allocation, large ones in
/// the buffers they were read into.
///
/// ```
/// use kumi_resp::OwnedArgs;
///
/// let owned = OwnedArgs::from_slices(["GET", "key"]);
/// assert_eq!(&owned.as_args()[1], b"key");
/// assert_eq!(owned.as_args().to_owned(), owned);
/// ```
#[derive(Clone, Default)]
pub struct OwnedArgs {
    bytes: Box<[u8]>,
    spans: Box<[Span]>,
    large: Box<[SharedBytes]>,
}

impl PartialEq for OwnedArgs {
    fn eq(&self, other: &Self) -> bool {
        self.as_args() == other.as_args()
    }
}

impl Eq for OwnedArgs {}

impl OwnedArgs {
    /// Copies the slices, in their order.
    pub fn from_slices<I>(slices: I) -> Self
    where
        I: IntoIterator<Item: AsRef<[u8]>>,
    {
        let mut bytes = Vec::new();
        let spans = slices
            .into_iter()
            .map(|slice| {
                let start = bytes.len();
                bytes.extend_from_slice(slice.as_ref());
                Span {
                    start,
                    end: bytes.len(),
                }
            })
            .collect();
        Self {
            spans,
            bytes: bytes.into(),
            large: Box::default(),
        }
    }

    /// The view that commands take.
    #[inline]
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans, &self.large)
    }

    /// The memory this uses in bytes, itself included. A large argument counts in full even if it is shared.
    pub fn bytes(&self) -> usize {
        let large: usize = self.large.iter().map(SharedBytes::heap_bytes).sum();
        size_of::<Self>() + self.bytes.len() + size_of_val(&*self.spans) + large
    }
}

impl fmt::Debug for OwnedArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_args().fmt(f)
    }
}

/// Arguments that are put together one by one, in buffers that are used again: for a program that sends itself many
/// requests.
///
/// ```
/// use kumi_resp::ArgsBuilder;
///
/// let mut builder = ArgsBuilder::default();
/// builder.push(b"GET");
/// builder.push_with(|bytes| bytes.extend_from_slice(b"key"));
/// assert_eq!(&builder.as_args()[1], b"key");
/// builder.clear();
/// assert!(builder.as_args().is_empty());
/// ```
#[derive(Default)]
pub struct ArgsBuilder {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// A builder keeps buffers up to this size between requests.
const KEEP_BYTES: usize = 64 * 1024;

impl ArgsBuilder {
    /// Removes all arguments.
    #[inline]
    pub fn clear(&mut self) {
        if self.bytes.capacity() > KEEP_BYTES || self.spans.capacity() > KEEP_BYTES {
            *self = Self::default();
        }
        self.bytes.clear();
        self.spans.clear();
    }

    /// Appends an argument.
    #[inline]
    pub fn push(&mut self, arg: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(arg);
        self.spans.push(Span {
            start,
            end: self.bytes.len(),
        });
    }

    /// Appends the argument that `write` appends to the buffer it is given.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.spans.push(Span {
            start,
            end: self.bytes.len().max(start),
        });
    }

    /// The view that commands take.
    #[inline]
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans, &[])
    }
}

impl fmt::Debug for ArgsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_args().fmt(f)
    }
}

//! A request's arguments, borrowed from the input or kept for later.
//!
//! Arguments are bytes and stay bytes: nothing here interprets them.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Index;

/// Where one argument lies in its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
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
}

impl<'a> Args<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    /// How many arguments there are, the command's name included.
    #[inline]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there are none. A decoded request always has at least one.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// One argument, if there are that many. Unlike indexing, the slice outlives this view.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.spans
            .get(index)
            .map(|span| &self.bytes[span.start..span.end])
    }

    /// The arguments from first to last.
    #[inline]
    pub fn iter(self) -> ArgsIter<'a> {
        ArgsIter {
            bytes: self.bytes,
            spans: self.spans.iter(),
        }
    }

    /// The arguments without the first `from`; empty when there are not that many.
    #[inline]
    pub fn tail(self, from: usize) -> Args<'a> {
        Args {
            bytes: self.bytes,
            spans: self.spans.get(from..).unwrap_or_default(),
        }
    }

    /// A copy that outlives the input buffer, for commands that are kept and run later.
    pub fn to_owned(self) -> OwnedArgs {
        OwnedArgs::from_slices(self)
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    /// One argument. Panics when there are not that many, as a slice does.
    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        let span = self.spans[index];
        &self.bytes[span.start..span.end]
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

/// The arguments of a request one after the other, as [`Args::iter`] gives them.
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
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let span = self.spans.next()?;
        Some(&self.bytes[span.start..span.end])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for ArgsIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let span = self.spans.next_back()?;
        Some(&self.bytes[span.start..span.end])
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}
impl FusedIterator for ArgsIter<'_> {}

impl fmt::Debug for ArgsIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Args::new(self.bytes, self.spans.as_slice()).fmt(f)
    }
}

/// Arguments that own their bytes, packed end to end in one allocation.
///
/// ```
/// use kumi_resp::OwnedArgs;
///
/// let owned = OwnedArgs::from_slices(["GET", "key"]);
/// assert_eq!(&owned.as_args()[1], b"key");
/// assert_eq!(owned.as_args().to_owned(), owned);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OwnedArgs {
    bytes: Box<[u8]>,
    /// Always end to end from 0, so that equal arguments mean equal fields.
    spans: Box<[Span]>,
}

impl OwnedArgs {
    /// Packs the slices together, in their order.
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
        }
    }

    /// The view that commands take.
    #[inline]
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }

    /// The memory this uses, itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + size_of_val(&*self.spans)
    }
}

impl fmt::Debug for OwnedArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_args().fmt(f)
    }
}

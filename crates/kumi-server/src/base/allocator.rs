//! What the allocator is asked for besides memory. It has `unsafe`, for calls
//! that have no safe form.

/// Has the allocator give back what other threads freed for the calling thread.
///
/// mimalloc keeps memory with the thread that allocated it. What the discard thread frees stays
/// with the engine's thread until that allocates again, or collects. In a program with another
/// allocator this finds nothing to do.
#[cfg(feature = "mimalloc")]
pub(crate) fn collect(force: bool) {
    #[expect(unsafe_code, reason = "a foreign function")]
    // SAFETY: it takes no pointer, may be called at any time from any thread, and touches only
    // memory that the allocator knows to be free.
    unsafe {
        libmimalloc_sys::mi_collect(force);
    }
}

/// Other allocators return memory by themselves.
#[cfg(not(feature = "mimalloc"))]
pub(crate) fn collect(_force: bool) {}

/// Whether a block that the calling thread allocated lies in a page of which at most 80% are used. The page that new
/// blocks come from does not count, and in a program with another allocator no page does.
#[cfg(feature = "mimalloc")]
pub(crate) fn is_in_sparse_page(block: *const u8) -> bool {
    const USED_PERCENT: usize = 80;
    let block = block.cast_mut().cast();
    #[expect(unsafe_code, reason = "foreign functions")]
    // SAFETY: the first call takes any pointer. The second one reads what the allocator keeps about the page of a
    // pointer that is its own, which only the thread of the page's heap changes. The engine's thread allocated every
    // block of the keyspace and is the one that asks.
    unsafe {
        libmimalloc_sys::mi_is_in_heap_region(block)
            && libmimalloc_sys::mi_unsafe_heap_page_is_under_utilized(
                libmimalloc_sys::mi_heap_get_default(),
                block,
                USED_PERCENT,
            )
    }
}

/// Whether this program's memory comes from the allocator that is asked here.
#[cfg(feature = "mimalloc")]
pub(crate) fn knows_pages() -> bool {
    let block = Box::new(0_u8);
    #[expect(unsafe_code, reason = "a foreign function")]
    // SAFETY: it takes any pointer.
    unsafe {
        libmimalloc_sys::mi_is_in_heap_region(std::ptr::from_ref(&*block).cast())
    }
}

/// Nothing is known of other allocators.
#[cfg(not(feature = "mimalloc"))]
pub(crate) fn knows_pages() -> bool {
    false
}

/// Nothing is known of other allocators.
#[cfg(not(feature = "mimalloc"))]
pub(crate) fn is_in_sparse_page(_block: *const u8) -> bool {
    false
}

#[cfg(test)]
mod tests {
    #[test]
    fn collecting_harms_nothing() {
        let held: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        super::collect(false);
        super::collect(true);
        assert_eq!(held[999], "999");
    }
}

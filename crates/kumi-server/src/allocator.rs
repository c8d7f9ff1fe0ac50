//! What the allocator is asked for besides memory. This is the only module of the crate with
//! `unsafe`, for the one call that has no safe form.

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

//! The times and limits a unit works with. Plain data: a driver's builder fills it in.

/// Longest lease of a claim: how long a dead backend holds a request up.
const LEASE_LIMIT_MS: u64 = 2_000;

/// Largest value that is carried among other commands. Larger ones have a connection of their own.
pub(crate) const INLINE_LIMIT_BYTES: usize = 64 * 1024;

/// Answers up to this size live as long as they were set for; the life of a larger one is cut once it was read. That is a
/// command more, which a small call does not need.
const LASTING_ANSWER_BYTES: usize = 1024;

/// How much of a claim is read: two names and what joins them.
pub(crate) const CLAIM_LIMIT_BYTES: usize = 512;

/// How much of a tracing side key is read.
pub(crate) const META_LIMIT_BYTES: usize = 4 * 1024;

/// How much of what a unit says of itself is read.
pub(crate) const INFO_LIMIT_BYTES: usize = 64 * 1024;

/// Times and limits of one unit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// TTL of a request that no backend has claimed.
    pub req_ttl_ms: u64,
    /// Life of an answer.
    pub answer_ttl_ms: u64,
    /// Life of a kept value; none is for ever.
    pub keep_ttl_ms: Option<u64>,
    /// How long a call waits for its answer.
    pub timeout_ms: u64,
    /// How long after its deadline a call waits for the last look at its answer keys.
    pub grace_ms: u64,
    /// When a call first looks at its keys, in case the push was lost. After that, once per lease.
    pub first_look_ms: u64,
    /// Largest payload, both ways.
    pub payload_limit_bytes: usize,
    /// Largest value that is read together with other things. Of a larger one this much is read to find that out.
    pub inline_limit_bytes: usize,
    /// Largest answer that keeps its life once it was read.
    pub lasting_answer_bytes: usize,
    /// Requests that one service remembers while all its handlers are busy. More are left to other backends and sweeps.
    pub waiting_limit: usize,
    /// Requests that were lost to another backend and are watched for its death. More are left to sweeps.
    pub lost_limit: usize,
    /// How often a request may change hands before it is answered with an error: one that kills its backends must end.
    pub attempt_limit: u32,
    /// Writes of one answer before it is given up.
    pub answer_try_limit: u32,
    /// Pause before something that failed is tried again. It doubles up to the lease.
    pub retry_ms: u64,
    /// The server sends no events: look and sweep this often instead.
    pub poll_ms: Option<u64>,
    /// Make the unique part of IDs a hash tag, as a cluster needs it.
    pub cluster: bool,
    /// Write and read `.meta` side keys.
    pub tracing: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            req_ttl_ms: 10_000,
            answer_ttl_ms: 30_000,
            keep_ttl_ms: Some(86_400_000),
            timeout_ms: 30_000,
            grace_ms: 1_000,
            first_look_ms: 1_000,
            payload_limit_bytes: 1024 * 1024,
            inline_limit_bytes: INLINE_LIMIT_BYTES,
            lasting_answer_bytes: LASTING_ANSWER_BYTES,
            waiting_limit: 10_000,
            lost_limit: 100_000,
            attempt_limit: 10,
            answer_try_limit: 20,
            retry_ms: 100,
            poll_ms: None,
            cluster: false,
            tracing: false,
        }
    }
}

impl Settings {
    /// How long a claim holds without renewal: at most a third of REQ's life, so that two more backends get their turn,
    /// and at most a quarter of an answer's, so that REQ can be kept alive for two leases and still die before it.
    pub fn lease_ms(&self) -> u64 {
        LEASE_LIMIT_MS
            .min(self.req_ttl_ms / 3)
            .min(self.answer_ttl_ms / 4)
            .max(1)
    }

    /// How often a lease is renewed: two renewals may be lost.
    pub fn renew_ms(&self) -> u64 {
        (self.lease_ms() / 3).max(1)
    }

    /// What REQ's life is set to with each renewal: past the lease, below the answer's.
    pub fn req_kept_ms(&self) -> u64 {
        self.req_ttl_ms
            .max(2 * self.lease_ms())
            .min(self.answer_ttl_ms / 2)
            .max(1)
    }

    /// What REQ's life is cut to when it was answered: below the answer's, and below what is left of the claim.
    pub fn req_answered_ms(&self) -> u64 {
        (self.lease_ms() / 2).max(1)
    }

    /// What the life of an answer is cut to once its requester has read it: longer than REQ and the claim live.
    pub fn answer_read_ms(&self) -> u64 {
        2 * self.lease_ms()
    }

    /// Bytes of a request or an answer that are read together with other things.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.inline_limit_bytes.min(self.payload_limit_bytes)
    }

    /// Whether a value of this size is sent on its own.
    pub(crate) fn is_large(&self, size_bytes: usize) -> bool {
        size_bytes > self.inline_limit_bytes
    }

    /// Whether a value of which [`Settings::inline_bytes`] were to be read, and this many came, has to be read on its own.
    pub(crate) fn is_cut(&self, size_bytes: usize) -> bool {
        self.is_large(size_bytes) && self.payload_limit_bytes > self.inline_limit_bytes
    }

    /// How long the lock of a sweep holds without renewal.
    pub fn sweep_lock_ms(&self) -> u64 {
        3 * self.lease_ms()
    }

    /// How often a call looks at its keys after the first time: a claim cannot come and go unseen.
    pub fn look_ms(&self) -> u64 {
        self.lease_ms().min(self.poll_ms.unwrap_or(u64::MAX)).max(1)
    }
}

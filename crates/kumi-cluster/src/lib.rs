//! Membership: which nodes form the cluster, and which of them are alive.

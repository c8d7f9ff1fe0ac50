//! MUF on real servers: interop with redis-cli, broken connections, restarts, dead backends, slow watchers, a cluster.

mod basics;
mod cluster;
mod examples;
mod faults;
mod interop;
mod support;

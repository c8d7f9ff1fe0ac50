//! MUF on real servers: interop with redis-cli, broken connections, restarts, dead backends, slow watchers, a cluster.
//!
//! kumi-server is the one that was compiled with this test; redis-server and redis-cli are the system's.

mod basics;
mod children;
mod cluster;
mod examples;
mod faults;
mod handles;
mod interop;
mod limits;
mod memory;
mod notice;
mod overflow;
mod quiet;
mod slow_link;
mod slow_search;
mod support;
mod tls;

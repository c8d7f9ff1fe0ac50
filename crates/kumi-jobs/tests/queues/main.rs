//! Queues against real servers: the conformance suite, random histories beside the memory queue, and faults.

mod bounds;
mod children;
mod cluster;
mod conformance;
mod crashes;
mod faults;
mod format;
mod histories;
mod proxy;
mod restarts;
mod scripts;
mod servers;
mod tls;
mod work;

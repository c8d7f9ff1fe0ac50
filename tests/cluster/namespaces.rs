//! Five nodes in five network namespaces on one bridge, cut apart by blackhole routes.
//!
//! Where the machine does not let us make namespaces, the test says so and does nothing.

use super::nodes::{Cluster, Plan, note, tell, turn};
use std::process::{Command, Stdio};

/// Namespaces with a network of their own, removed with the test.
struct Network {
    prefix: String,
    size: usize,
}

impl Network {
    /// The first two bytes are a private network; the third keeps two runs on one machine apart.
    fn new(size: usize) -> Result<Self, String> {
        let id = std::process::id();
        let network = Self {
            prefix: format!("kumi{id}"),
            size,
        };
        network.make().map(|()| network)
    }

    fn make(&self) -> Result<(), String> {
        let bridge = self.bridge();
        for place in 0..self.size {
            ip(&format!("netns add {}", self.name(place)))?;
        }
        ip(&format!("netns add {bridge}"))?;
        ip(&format!("-n {bridge} link add sw0 type bridge"))?;
        ip(&format!("-n {bridge} link set sw0 up"))?;
        for place in 0..self.size {
            let name = self.name(place);
            ip(&format!(
                "link add e netns {name} type veth peer name p{place} netns {bridge}"
            ))?;
            ip(&format!("-n {bridge} link set p{place} master sw0 up"))?;
            ip(&format!(
                "-n {name} addr add {}/24 dev e",
                self.address(place)
            ))?;
            ip(&format!("-n {name} link set e up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(())
    }

    fn name(&self, place: usize) -> String {
        format!("{}n{place}", self.prefix)
    }

    fn bridge(&self) -> String {
        format!("{}br", self.prefix)
    }

    fn address(&self, place: usize) -> String {
        format!("10.211.0.{}", place + 1)
    }

    /// Adds or deletes the routes that keep two parts from each other.
    fn route(&self, change: &str, one: &[usize], other: &[usize]) {
        for (from, to) in one
            .iter()
            .flat_map(|one| other.iter().map(move |other| (*one, *other)))
        {
            for (from, to) in [(from, to), (to, from)] {
                let name = self.name(from);
                let done = ip(&format!(
                    "-n {name} route {change} blackhole {}/32",
                    self.address(to)
                ));
                done.expect("routes of our own namespace");
            }
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for place in 0..self.size {
            let _ = ip(&format!("netns del {}", self.name(place)));
        }
        let _ = ip(&format!("netns del {}", self.bridge()));
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(words.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {words}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

#[test]
fn a_cluster_cut_apart_by_routes_comes_together_again() {
    let _turn = turn();
    let network = match Network::new(5) {
        Ok(network) => network,
        Err(reason) => {
            note(&format!(
                "skipped: this machine makes no network namespaces ({reason})"
            ));
            return;
        }
    };
    let mut cluster = Cluster::new();
    let mut seeds = Vec::new();
    for place in 0..5 {
        let wrapper = ["ip", "netns", "exec", &network.name(place)].map(str::to_owned);
        cluster.add(Plan {
            wrapper: wrapper.to_vec(),
            bind: format!("{}:7400", network.address(place)),
            seeds: seeds.clone(),
            ..Plan::default()
        });
        seeds = vec![cluster.nodes[0].authority.clone()];
    }
    tell("five namespaces joined", cluster.agree(&[0, 1, 2, 3, 4]));
    network.route("add", &[0, 1, 2], &[3, 4]);
    tell("cut by routes, three agree", cluster.agree(&[0, 1, 2]));
    tell("and the other two do", cluster.agree(&[3, 4]));
    network.route("del", &[0, 1, 2], &[3, 4]);
    tell(
        "routes restored, all agree",
        cluster.agree(&[0, 1, 2, 3, 4]),
    );
    cluster.all_tell_the_same_hash();
}

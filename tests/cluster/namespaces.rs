//! Five nodes in five network namespaces on one bridge, cut apart by blackhole routes.
//!
//! Where the machine does not let us make namespaces, the test says so and does nothing.

use super::network::Network;
use super::nodes::{Cluster, Plan, note, tell, turn};

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
    let cut = network.cut(&[0, 1, 2], &[3, 4]);
    cut.expect("routes of our own namespaces");
    tell("cut by routes, three agree", cluster.agree(&[0, 1, 2]));
    tell("and the other two do", cluster.agree(&[3, 4]));
    let healed = network.heal(&[0, 1, 2], &[3, 4]);
    healed.expect("routes of our own namespaces");
    tell(
        "routes restored, all agree",
        cluster.agree(&[0, 1, 2, 3, 4]),
    );
    cluster.all_tell_the_same_hash();
}

//! Five nodes whose packets all go through a proxy, which divides them and lets them together again.

use super::nodes::{Cluster, Plan, note, tell, turn};
use super::proxy::Proxy;
use std::net::SocketAddr;

#[test]
fn a_divided_cluster_comes_together_again() {
    let _turn = turn();
    let proxy = Proxy::new(5);
    let mut cluster = Cluster::new();
    let mut plan = Plan::loopback(&[]);
    for place in 0..5 {
        plan.advertise = Some(proxy.front(place).to_string());
        assert_eq!(cluster.add(plan.clone()), place);
        let listening = cluster.nodes[place].listening.parse::<SocketAddr>();
        proxy.connect(place, listening.expect("an address"));
        plan.seeds = vec![cluster.nodes[0].authority.clone()];
    }
    tell(
        "five nodes joined through the proxy",
        cluster.agree(&[0, 1, 2, 3, 4]),
    );

    proxy.divide(&[0, 0, 0, 1, 1]);
    tell(
        "three of five agree without the rest",
        cluster.agree(&[0, 1, 2]),
    );
    tell("and the other two do", cluster.agree(&[3, 4]));
    proxy.heal();
    tell("healed, all agree", cluster.agree(&[0, 1, 2, 3, 4]));

    // One node alone cannot convict the others, and comes back all the same.
    let alone = cluster.nodes[2].authority.clone();
    proxy.divide(&[0, 0, 1, 0, 0]);
    tell(
        "four of five agree without the one",
        cluster.agree(&[0, 1, 3, 4]),
    );
    assert!(cluster.views[0].has_seen(&alone, "suspect"));
    proxy.heal();
    tell("healed, the one is back", cluster.agree(&[0, 1, 2, 3, 4]));
    cluster.all_tell_the_same_hash();
    let (forwarded, dropped) = proxy.counts();
    note(&format!(
        "the proxy forwarded {forwarded} packets and dropped {dropped}"
    ));
    assert!(
        forwarded > 0 && dropped > 0,
        "the proxy has to carry traffic"
    );
}

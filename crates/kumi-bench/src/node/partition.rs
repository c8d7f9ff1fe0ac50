//! Three nodes in network namespaces, where links lose and delay packets, and one node is cut off with its tasks for a while. Their
//! addresses are not loopback: everything between them is encrypted.

#[path = "../../../../tests/support/network.rs"]
mod network;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::node::Bench;
use crate::node::nodes::{Nodes, Places, Plan, STORE, TAKEOVER_LIMIT};
use crate::node::options::NetworkPreset;
use crate::node::takeover::{missing, none_row};
use crate::report::{Report, Row};
use crate::stats::Sample;
use network::Network;

const NODES: usize = 3;
/// The node that is cut off, and the others.
const VICTIM: usize = 2;
const OTHERS: [usize; 2] = [STORE, 1];

/// What every link does to packets, in the words of netem.
const BAD: &str = "delay 5ms 2ms loss 2%";

/// How long the node is cut off: longer than its lease.
const CUT: Duration = Duration::from_secs(20);

/// After the cut: how long reports may take to arrive.
const REPORTS_ARRIVE: Duration = Duration::from_secs(3);

/// `partition`. A machine without namespaces has a note instead of figures.
pub(super) fn partition(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let network = match Network::new(NODES) {
        Ok(network) => network,
        Err(reason) => {
            report.note(format!(
                "partition was not measured: this machine makes no network namespaces ({reason})"
            ));
            return Ok(());
        }
    };
    let mut links = BAD;
    for place in 0..NODES {
        if let Err(reason) = network.impair(place, BAD) {
            links = "no loss";
            report.note(format!(
                "partition: links are good, since there is no netem ({reason})"
            ));
            break;
        }
    }
    let mut task = bench.progress.task("partition", 1);
    task.begin("one of three nodes is cut off");
    let places = (0..NODES).map(|place| Ok((network.name(place), network.address(place).parse()?)));
    let plan = Plan {
        preset: NetworkPreset::Lan,
        nodes: NODES,
        has_client: false,
        places: Places::Namespaces(places.collect::<Result<_>>()?),
    };
    let mut nodes = Nodes::start(bench.stage, plan)?;
    let seen = cut(&mut nodes, &network, bench.tasks)?;
    task.end();
    drop(task);
    let seconds = |name: &str, label: &str, value| {
        let mut row = Row::new(format!("node.partition.{name}"), label, "s");
        row.add("kumi", Sample::single(value));
        row
    };
    let rows = vec![
        seconds(
            "takeover",
            "from the cut until all tasks run elsewhere",
            seen.takeover,
        ),
        seconds("healed", "from its end until all nodes agree", seen.healed),
        none_row(
            "node.partition.stale_accepted",
            "stale reports accepted",
            seen.stale,
        ),
        none_row(
            "node.partition.reported_twice",
            "tasks that did not succeed exactly once",
            seen.twice,
        ),
    ];
    let title = format!(
        "Three nodes in network namespaces over TLS, {links}; one with {} tasks is cut off for {} s",
        bench.tasks,
        CUT.as_secs()
    );
    report.section(title, rows);
    Ok(())
}

struct Seen {
    takeover: f64,
    healed: f64,
    stale: u64,
    twice: u64,
}

fn cut(nodes: &mut Nodes<'_>, network: &Network, tasks: usize) -> Result<Seen> {
    let own = nodes.fill(VICTIM, tasks)?;
    let before = nodes.totals(STORE)?;
    let start = nodes.start_of(VICTIM)?;
    let routes = |changed: Result<(), String>| changed.map_err(|reason| anyhow!(reason));
    routes(network.cut(&OTHERS, &[VICTIM])).context("cannot cut")?;
    let at = Instant::now();
    let last = nodes.begun_elsewhere(&own, start, TAKEOVER_LIMIT);
    // Its handlers end while it is cut off: its reports arrive after the cut.
    nodes.ask(VICTIM, "finish")?;
    thread::sleep(CUT.saturating_sub(at.elapsed()));
    routes(network.heal(&OTHERS, &[VICTIM])).context("cannot end the cut")?;
    let takeover = (last? - at).as_secs_f64();
    let at = Instant::now();
    nodes.agree(NODES)?;
    let healed = at.elapsed().as_secs_f64();
    nodes.listen(REPORTS_ARRIVE);
    let stale = nodes.totals(STORE)?.succeeded - before.succeeded;
    nodes.finish()?;
    let wanted = before.succeeded + before.running;
    missing(nodes, wanted)?;
    nodes.listen(REPORTS_ARRIVE);
    let twice = nodes.totals(STORE)?.succeeded.abs_diff(wanted);
    // It works again.
    nodes.fill(VICTIM, 1)?;
    nodes.finish()?;
    missing(nodes, wanted + 1)?;
    Ok(Seen {
        takeover,
        healed,
        stale,
        twice,
    })
}

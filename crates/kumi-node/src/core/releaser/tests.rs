//! One releaser, step by step.

use super::*;

const MS: Duration = Duration::from_millis(1);

struct Lab {
    start: Instant,
    now: Instant,
    releaser: Releaser,
    /// Beats that were ordered: when, in milliseconds after the start, and where.
    beats: Vec<(u128, Arc<str>)>,
}

impl Lab {
    /// Node `me` of life 5 among the others of life 1, with these queues, in the cluster since before the settling time.
    fn new(me: &str, others: &[&str], queues: &[&str]) -> Self {
        Self::with_ids(me, others, queues, &["c1"])
    }

    fn with_ids(me: &str, others: &[&str], queues: &[&str], ids: &[&str]) -> Self {
        let rules = ReleaserRules::new(ids.iter().map(|id| Arc::from(*id)));
        let start = Instant::now();
        let mut lab = Self {
            start,
            now: start,
            releaser: Releaser::new(rules, life(me, 5)),
            beats: Vec::new(),
        };
        lab.view(me, others);
        let queues = queues.iter().map(|name| Arc::from(*name));
        lab.releaser.handle_queues(lab.now, queues);
        lab.pass(2_000);
        for order in lab.orders() {
            assert!(matches!(order, Order::List { .. }), "{order:?}");
            lab.releaser
                .handle_owners(lab.now, &order, Some(Vec::new()));
        }
        lab
    }

    fn view(&mut self, me: &str, others: &[&str]) {
        let members = others.iter().map(|name| Seen {
            node: life(name, 1),
            asks: true,
        });
        let view = View {
            me: life(me, 5),
            members: members.collect(),
            joined: true,
        };
        self.releaser.handle_view(self.now, view);
    }

    fn pass(&mut self, ms: u32) {
        self.now += ms * MS;
    }

    /// The orders that are due, without the beats, which are noted and replied to.
    fn orders(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        while let Some(order) = self.releaser.poll_order(self.now) {
            match &order {
                Order::Beat { queue } => {
                    let at = (self.now - self.start).as_millis();
                    self.beats.push((at, queue.clone()));
                    self.releaser.handle_beat(&order);
                }
                _ => orders.push(order),
            }
        }
        orders
    }

    fn reports(&mut self) -> Vec<Report> {
        std::iter::from_fn(|| self.releaser.poll_report()).collect()
    }

    fn departed(&mut self, name: &str, cause: Cause) {
        self.releaser
            .handle_departed(self.now, life(name, 1), cause);
    }

    /// Replies to every release that is due, until `until`, and tells when they came, in milliseconds after the start.
    fn times_of_orders(&mut self, until_ms: u32, reply: ReleaseReply) -> Vec<u128> {
        let mut times = Vec::new();
        while self.now < self.start + until_ms * MS {
            for order in self.orders() {
                match &order {
                    Order::Release { .. } => {
                        times.push((self.now - self.start).as_millis());
                        self.releaser.handle_release(self.now, &order, reply);
                    }
                    Order::List { .. } => {
                        self.releaser
                            .handle_owners(self.now, &order, Some(Vec::new()));
                    }
                    Order::Beat { .. } => unreachable!("`orders` leaves them out"),
                }
            }
            let next = self.releaser.poll_timeout();
            let end = self.start + until_ms * MS;
            self.now = next.unwrap_or(end).min(end).max(self.now + MS);
        }
        times
    }
}

fn life(name: &str, raw: u64) -> NameAndLife {
    let name = kumi_common::Name::new(name).expect("a name");
    name.with_life(Life::from_raw(raw))
}

fn release(queue: &str, name: &str, raw: u64) -> Order {
    release_of("c1", queue, name, raw)
}

fn release_of(cluster: &str, queue: &str, name: &str, raw: u64) -> Order {
    Order::Release {
        queue: queue.into(),
        cluster: cluster.into(),
        life: life(name, raw),
    }
}

fn owner(cluster: &str, name: &str, raw: u64) -> ListedOwner {
    ListedOwner {
        cluster: cluster.into(),
        node: life(name, raw),
    }
}

#[test]
fn the_lowest_rank_asks_every_queue_at_once() {
    for cause in [
        Cause::Died,
        Cause::Left,
        Cause::Replaced,
        Cause::Quarantined,
    ] {
        let mut lab = Lab::new("a", &["b", "c"], &["mail", "resize"]);
        lab.departed("b", cause);
        assert_eq!(
            lab.orders(),
            [release("mail", "b", 1), release("resize", "b", 1)]
        );
        assert_eq!(lab.orders(), []);
    }
}

#[test]
fn a_forgotten_life_is_not_released() {
    let mut lab = Lab::new("a", &["b", "c"], &["mail"]);
    lab.departed("b", Cause::Forgotten);
    lab.pass(1_000);
    assert_eq!(lab.orders(), []);
    assert_eq!(lab.releaser.pending_lives(), 0);
}

#[test]
fn a_later_rank_asks_later_and_one_beyond_the_lease_never() {
    let all = ["a", "b", "c", "d", "e", "f", "g", "z"];
    let delays = [0, 700, 1_400, 2_800, 5_600, 11_200].map(Some);
    for (rank, delay) in delays.into_iter().chain([None]).enumerate() {
        let me = all[rank];
        let others: Vec<&str> = all.iter().copied().filter(|name| *name != me).collect();
        let mut lab = Lab::new(me, &others, &["mail"]);
        lab.departed("z", Cause::Died);
        let times = lab.times_of_orders(30_000, ReleaseReply::Released(0));
        let expected: Vec<u128> = delay.map(|delay| 2_000 + delay).into_iter().collect();
        assert_eq!(times, expected, "rank {rank}");
        assert_eq!(lab.releaser.pending_lives(), 0, "rank {rank}");
    }
}

#[test]
fn a_rank_that_falls_brings_the_order_forward() {
    let mut lab = Lab::new("c", &["a", "b", "z"], &["mail"]);
    lab.departed("z", Cause::Died);
    lab.pass(500);
    assert_eq!(lab.orders(), []);
    lab.departed("a", Cause::Died);
    lab.departed("b", Cause::Died);
    lab.view("c", &[]);
    let mut orders = lab.orders();
    orders.sort();
    let expected = ["a", "b", "z"].map(|name| release("mail", name, 1));
    assert_eq!(orders, expected);
}

#[test]
fn members_that_do_not_ask_have_no_rank() {
    let mut lab = Lab::new("c", &["a", "b", "z"], &["mail"]);
    let members = ["a", "b"].map(|name| Seen {
        node: life(name, 1),
        asks: false,
    });
    let view = View {
        me: life("c", 5),
        members: members.to_vec(),
        joined: true,
    };
    lab.releaser.handle_view(lab.now, view);
    lab.departed("z", Cause::Died);
    assert_eq!(lab.orders(), [release("mail", "z", 1)]);
}

#[test]
fn alive_is_asked_again_until_the_lease_has_ended() {
    let mut lab = Lab::new("a", &["b"], &["mail"]);
    lab.departed("b", Cause::Replaced);
    let times = lab.times_of_orders(30_000, ReleaseReply::Alive);
    assert_eq!(times.len(), 31);
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] == 500),
        "{times:?}"
    );
    assert_eq!(times.last(), Some(&17_000));
    let (queue, life) = ("mail".into(), life("b", 1));
    assert_eq!(lab.reports(), [Report::GaveUp { queue, life }]);
    assert_eq!(lab.releaser.pending_lives(), 0);
}

#[test]
fn alive_and_then_released_is_reported_once() {
    let mut lab = Lab::new("a", &["b"], &["mail"]);
    lab.departed("b", Cause::Replaced);
    let orders = lab.orders();
    lab.releaser
        .handle_release(lab.now, &orders[0], ReleaseReply::Alive);
    assert_eq!(lab.orders(), []);
    lab.pass(500);
    let orders = lab.orders();
    let taken = ReleaseReply::Released(100);
    lab.releaser.handle_release(lab.now, &orders[0], taken);
    // A second reply to the same order changes nothing.
    lab.releaser.handle_release(lab.now, &orders[0], taken);
    let (queue, life, tasks) = ("mail".into(), life("b", 1), 100);
    assert_eq!(lab.reports(), [Report::Released { queue, life, tasks }]);
    assert_eq!(lab.times_of_orders(30_000, taken), [0; 0]);
}

#[test]
fn a_queue_that_releases_nobody_is_asked_once() {
    let mut lab = Lab::new("a", &["b"], &["mail", "resize"]);
    lab.departed("b", Cause::Died);
    let orders = lab.orders();
    assert_eq!(orders.len(), 2);
    let off = ReleaseReply::Off;
    lab.releaser.handle_release(lab.now, &orders[0], off);
    assert_eq!(lab.releaser.pending_lives(), 1, "the other queue");
    lab.releaser.handle_release(lab.now, &orders[1], off);
    assert_eq!(lab.releaser.pending_lives(), 0);
    let reports = ["mail", "resize"].map(|queue| Report::SwitchedOff {
        queue: queue.into(),
        life: life("b", 1),
    });
    assert_eq!(lab.reports(), reports);
    assert_eq!(lab.times_of_orders(70_000, off), [0; 0]);
}

#[test]
fn the_two_lowest_ranks_beat_each_queue_every_second() {
    let all = ["a", "b", "c", "d"];
    for (rank, is_beating) in [(0, true), (1, true), (2, false), (3, false)] {
        let me = all[rank];
        let others: Vec<&str> = all.iter().copied().filter(|name| *name != me).collect();
        let mut lab = Lab::new(me, &others, &["mail", "resize"]);
        lab.beats.clear();
        lab.times_of_orders(5_500, ReleaseReply::Alive);
        let seconds = [3_000, 4_000, 5_000];
        let expected = seconds
            .iter()
            .flat_map(|at| [(*at, "mail"), (*at, "resize")]);
        let expected: Vec<(u128, Arc<str>)> = match is_beating {
            true => expected.map(|(at, queue)| (at, queue.into())).collect(),
            false => Vec::new(),
        };
        assert_eq!(lab.beats, expected, "rank {rank}");
    }
}

#[test]
fn a_later_rank_beats_the_queues_of_pending_releases_if_it_asks_at_all() {
    let all = ["a", "b", "c", "d", "e", "f", "g", "z"];
    for (rank, beats) in [(2, 5), (5, 5), (6, 0)] {
        let me = all[rank];
        let others: Vec<&str> = all.iter().copied().filter(|name| *name != me).collect();
        let mut lab = Lab::new(me, &others, &["mail"]);
        lab.beats.clear();
        lab.departed("z", Cause::Died);
        lab.times_of_orders(6_100, ReleaseReply::Alive);
        assert_eq!(lab.beats.len(), beats, "rank {rank}: {:?}", lab.beats);
        // It is a member again: nothing is pending.
        lab.view(me, &others);
        lab.times_of_orders(9_000, ReleaseReply::Alive);
        assert_eq!(lab.beats.len(), beats, "rank {rank}: {:?}", lab.beats);
    }
}

#[test]
fn after_the_last_release_a_later_rank_beats_no_more() {
    let mut lab = Lab::new("c", &["a", "b", "z"], &["mail"]);
    for name in ["y", "z"] {
        lab.departed(name, Cause::Died);
    }
    lab.times_of_orders(7_000, ReleaseReply::Released(1));
    assert_eq!(lab.releaser.pending_lives(), 0);
    let beats = lab.beats.len();
    assert!(beats > 0);
    lab.times_of_orders(20_000, ReleaseReply::Released(1));
    assert_eq!(lab.beats.len(), beats);
}

#[test]
fn beats_that_are_not_replied_to_leave_room_for_releases() {
    let names: Vec<String> = (0..14).map(|n| format!("q{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lab = Lab::new("a", &["b"], &names);
    lab.pass(1_000);
    let polled = std::iter::from_fn(|| lab.releaser.poll_order(lab.now));
    let beats: Vec<Order> = polled.collect();
    assert_eq!(beats.len(), MAX_BEATS_IN_FLIGHT);
    assert!(lab.releaser.poll_timeout().is_some_and(|at| at > lab.now));
    lab.departed("b", Cause::Died);
    assert_eq!(lab.orders().len(), MAX_IN_FLIGHT - MAX_BEATS_IN_FLIGHT);
    // One that is replied to makes room for the next.
    lab.releaser.handle_beat(&beats[0]);
    assert!(matches!(
        lab.releaser.poll_order(lab.now),
        Some(Order::Release { .. })
    ));
}

#[test]
fn while_a_key_is_replaced_a_life_is_released_under_both_ids() {
    let mut lab = Lab::with_ids("a", &["b"], &["mail"], &["new", "old"]);
    lab.departed("b", Cause::Died);
    let orders = lab.orders();
    let expected = ["new", "old"].map(|id| release_of(id, "mail", "b", 1));
    assert_eq!(orders, expected);
    let nothing = ReleaseReply::Released(0);
    lab.releaser.handle_release(lab.now, &orders[0], nothing);
    assert_eq!(lab.releaser.pending_lives(), 1);
    lab.releaser.handle_release(lab.now, &orders[1], nothing);
    assert_eq!(lab.releaser.pending_lives(), 0);
    // The comparison knows the id of each owner.
    lab.pass(60_000);
    let listing = lab.orders();
    let owners = [
        owner("old", "c", 7),
        owner("new", "d", 7),
        owner("other", "e", 7),
    ];
    lab.releaser
        .handle_owners(lab.now, &listing[0], Some(owners.to_vec()));
    let mut orders = lab.orders();
    orders.sort();
    let expected = [
        release_of("new", "mail", "d", 7),
        release_of("old", "mail", "c", 7),
    ];
    assert_eq!(orders, expected);
}

#[test]
fn while_the_store_is_away_orders_are_repeated_beyond_the_lease_with_growing_pauses() {
    let mut lab = Lab::new("a", &["b"], &["mail"]);
    lab.departed("b", Cause::Died);
    let times = lab.times_of_orders(60_000, ReleaseReply::Failed);
    let pauses: Vec<u128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses[..6], [250, 500, 1_000, 2_000, 4_000, 5_000]);
    assert!(
        pauses[6..].iter().all(|pause| *pause == 5_000),
        "{pauses:?}"
    );
    assert!(times.last().is_some_and(|last| *last > 55_000), "{times:?}");
    let times = lab.times_of_orders(70_000, ReleaseReply::Released(1));
    assert_eq!(times.len(), 1);
    assert_eq!(lab.releaser.pending_lives(), 0);
}

#[test]
fn a_life_is_not_kept_for_ever_while_the_store_is_away() {
    let mut lab = Lab::new("a", &["b"], &["mail"]);
    lab.departed("b", Cause::Died);
    let times = lab.times_of_orders(5_000_000, ReleaseReply::Failed);
    assert!(
        times.last().is_some_and(|last| *last < 3_610_000),
        "{times:?}"
    );
    assert_eq!(lab.releaser.pending_lives(), 0);
}

#[test]
fn a_life_that_is_a_member_again_is_not_released() {
    let mut lab = Lab::new("b", &["a", "z"], &["mail"]);
    lab.departed("z", Cause::Died);
    lab.pass(300);
    lab.view("b", &["a", "z"]);
    lab.pass(10_000);
    assert_eq!(lab.orders(), []);
    assert_eq!(lab.reports(), [Report::Returned { life: life("z", 1) }]);
}

#[test]
fn a_former_life_of_this_process_is_left_to_its_own_workers() {
    let mut lab = Lab::new("a", &["b"], &["mail"]);
    lab.releaser
        .handle_departed(lab.now, life("a", 6), Cause::Died);
    lab.releaser
        .handle_departed(lab.now, life("a", 5), Cause::Replaced);
    assert_eq!(lab.orders(), []);
    // An earlier process of the same name is not this one.
    lab.releaser
        .handle_departed(lab.now, life("a", 4), Cause::Replaced);
    assert_eq!(lab.orders(), [release("mail", "a", 4)]);
}

#[test]
fn nothing_is_ordered_before_the_node_has_joined() {
    let rules = ReleaserRules::new(["c1".into()]);
    let (mut releaser, now) = (Releaser::new(rules, life("a", 5)), Instant::now());
    releaser.handle_queues(now, ["mail".into()]);
    releaser.handle_departed(now, life("b", 1), Cause::Died);
    assert_eq!(releaser.poll_order(now + 60_000 * MS), None);
    assert_eq!(releaser.poll_timeout(), None);
    let view = View {
        me: life("a", 5),
        members: Vec::new(),
        joined: true,
    };
    releaser.handle_view(now, view);
    assert_eq!(releaser.poll_order(now), Some(release("mail", "b", 1)));
}

#[test]
fn owners_of_this_cluster_that_are_no_members_are_released_and_no_others() {
    let mut lab = Lab::new("a", &["b"], &["mail", "resize"]);
    lab.pass(60_000);
    let listings = lab.orders();
    assert_eq!(listings.len(), 2);
    let owners = [
        owner("c1", "a", 5),
        owner("c1", "a", 4),
        owner("c1", "b", 1),
        owner("c1", "c", 7),
        owner("c1", "c", 7),
        owner("c2", "d", 1),
        // Its node is known by an earlier life: gossip has not brought this one yet.
        owner("c1", "b", 2),
        owner("c1", "b", 0),
    ];
    lab.releaser
        .handle_owners(lab.now, &listings[0], Some(owners.to_vec()));
    lab.releaser
        .handle_owners(lab.now, &listings[1], Some(Vec::new()));
    let expected = [("a", 4), ("b", 0), ("c", 7)];
    let expected = expected.map(|(name, raw)| release("mail", name, raw));
    assert_eq!(lab.orders(), expected);
}

#[test]
fn every_node_lists_once_after_it_joined_and_the_lowest_ranks_every_minute() {
    let all = ["a", "b", "c", "d", "e"];
    for (rank, expected) in [(0, 5), (2, 5), (3, 0), (4, 0)] {
        let me = all[rank];
        let others: Vec<&str> = all.iter().copied().filter(|name| *name != me).collect();
        // The first listing is in here.
        let mut lab = Lab::new(me, &others, &["mail"]);
        let mut listed = 0;
        for _ in 0..330 {
            lab.pass(1_000);
            for order in lab.orders() {
                lab.releaser
                    .handle_owners(lab.now, &order, Some(Vec::new()));
                listed += 1;
            }
        }
        assert_eq!(listed, expected, "rank {rank}");
    }
}

#[test]
fn a_node_that_comes_to_a_low_rank_lists_from_then_on() {
    let mut lab = Lab::new("d", &["a", "b", "c"], &["mail"]);
    lab.pass(120_000);
    assert_eq!(lab.orders(), []);
    lab.view("d", &["a", "b"]);
    lab.pass(60_000);
    assert_eq!(
        lab.orders(),
        [Order::List {
            queue: "mail".into()
        }]
    );
}

#[test]
fn a_listing_that_failed_is_repeated_soon_and_never_twice_at_once() {
    let mut lab = Lab::new("a", &["b"], &["mail"]);
    lab.pass(60_000);
    let listing = lab.orders();
    assert_eq!(listing.len(), 1);
    // Joining again while it is in flight brings no second one.
    let mut apart = View {
        me: life("a", 5),
        members: Vec::new(),
        joined: false,
    };
    lab.releaser.handle_view(lab.now, apart.clone());
    apart.joined = true;
    lab.releaser.handle_view(lab.now, apart);
    lab.pass(4_000);
    assert_eq!(lab.orders(), []);
    lab.releaser.handle_owners(lab.now, &listing[0], None);
    lab.pass(4_999);
    assert_eq!(lab.orders(), []);
    lab.pass(1);
    assert_eq!(lab.orders(), listing);
}

#[test]
fn a_new_queue_is_asked_for_the_lives_that_are_kept_and_a_removed_one_no_more() {
    let mut lab = Lab::new("a", &["b"], &["mail"]);
    lab.departed("b", Cause::Died);
    let order = lab.orders();
    lab.releaser
        .handle_release(lab.now, &order[0], ReleaseReply::Alive);
    lab.releaser.handle_queues(lab.now, ["resize".into()]);
    let order = lab.orders();
    assert_eq!(order, [release("resize", "b", 1)]);
    lab.releaser
        .handle_release(lab.now, &order[0], ReleaseReply::Released(0));
    assert_eq!(lab.orders(), []);
    assert_eq!(lab.releaser.pending_lives(), 0);
    lab.departed("b", Cause::Died);
    lab.releaser
        .handle_queues(lab.now, ["resize".into(), "mail".into()]);
    assert_eq!(
        lab.orders(),
        [release("mail", "b", 1), release("resize", "b", 1)]
    );
}

#[test]
fn lives_queues_and_orders_in_flight_are_bounded() {
    let names: Vec<String> = (0..MAX_QUEUES + 1).map(|n| format!("q{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lab = Lab::new("a", &["b"], &["q000"]);
    lab.releaser
        .handle_queues(lab.now, names.iter().map(|name| Arc::from(*name)));
    let queue = names[MAX_QUEUES].into();
    assert_eq!(lab.reports(), [Report::QueueLeftOut { queue }]);
    for n in 0..MAX_LIVES as u64 + 10 {
        lab.releaser
            .handle_departed(lab.now, life("n", n), Cause::Died);
        lab.pass(1);
    }
    assert_eq!(lab.releaser.pending_lives(), MAX_LIVES);
    let dropped = (0..10).map(|n| Report::Dropped { life: life("n", n) });
    assert_eq!(lab.reports(), dropped.collect::<Vec<_>>());
    let orders = lab.orders();
    assert_eq!(orders.len(), MAX_IN_FLIGHT);
    assert_eq!(lab.releaser.poll_timeout(), None);
    lab.releaser
        .handle_release(lab.now, &orders[3], ReleaseReply::Released(0));
    assert!(lab.releaser.poll_timeout().is_some());
    assert_eq!(lab.orders().len(), 1);
}

/// A node used a new queue for the first time, and died before the others had read the names of the queues again.
#[test]
fn a_queue_that_is_new_after_a_departure_is_asked_for_it() {
    let queues = |names: &[&str]| -> Vec<Arc<str>> {
        let names = names.iter().copied().chain(["new"]);
        names.map(Arc::from).collect()
    };
    for known in [&[][..], &["mail"]] {
        let mut lab = Lab::new("a", &["b"], known);
        lab.view("a", &[]);
        lab.departed("b", Cause::Died);
        for order in lab.orders() {
            let reply = ReleaseReply::Released(0);
            lab.releaser.handle_release(lab.now, &order, reply);
        }
        lab.pass(100);
        lab.releaser.handle_queues(lab.now, queues(known));
        assert_eq!(lab.orders(), [release("new", "b", 1)], "{known:?}");

        // A life that is back is not.
        let mut lab = Lab::new("a", &["b"], known);
        lab.departed("b", Cause::Died);
        lab.view("a", &["b"]);
        lab.releaser.handle_queues(lab.now, queues(known));
        assert_eq!(lab.orders(), [], "{known:?}");
    }
    // Nor is one whose lease has ended.
    let mut lab = Lab::new("a", &["b"], &[]);
    lab.view("a", &[]);
    lab.departed("b", Cause::Died);
    lab.pass(15_000);
    lab.releaser.handle_queues(lab.now, queues(&[]));
    assert_eq!(lab.orders(), []);
}

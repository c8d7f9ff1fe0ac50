use super::*;
use proptest::prelude::*;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn seed(text: &str, local: &str) -> Option<Seed> {
    Some(Seed {
        text: text.into(),
        local: (!local.is_empty()).then(|| ip(local)),
    })
}

fn wish() -> Wish {
    Wish {
        host_name: "Web_1".into(),
        addresses: [
            "127.0.0.1",
            "::1",
            "fe80::1",
            "10.0.0.7",
            "192.168.1.7",
            "2001:db8::7",
        ]
        .map(ip)
        .to_vec(),
        ..Wish::default()
    }
}

#[test]
fn alone_a_node_is_on_loopback_under_the_name_of_its_host() {
    let place = Place::choose(&wish()).expect("a place");
    assert_eq!(place.name.as_str(), "web-1");
    assert_eq!(place.bind, LOOPBACK);
    assert_eq!((place.advertise, place.notes), (None, Vec::new()));
    let nameless = Wish::default();
    assert_eq!(
        Place::choose(&nameless).expect("a place").name.as_str(),
        "node"
    );
    let named = Wish {
        name: Name::new("a").ok(),
        ..wish()
    };
    assert_eq!(Place::choose(&named).expect("a place").name.as_str(), "a");
}

#[test]
fn nodes_of_one_machine_differ_by_their_ports() {
    let name = Name::new("web-1").expect("a name");
    assert_eq!(name_with_port(&name, 7400).as_str(), "web-1");
    assert_eq!(name_with_port(&name, 40123).as_str(), "web-1-40123");
    let long = Name::new(&"h".repeat(63)).expect("a name");
    assert!(name_with_port(&long, 40123).as_str().ends_with("-40123"));
    assert_eq!(instance(Some(6380), Some(&name)), "6380");
    assert_eq!(instance(None, Some(&name)), "web-1");
    assert_eq!(instance(None, None), "7400");
}

#[test]
fn joining_binds_the_address_that_routes_to_the_seed_and_says_so() {
    let joining = Wish {
        seed: seed("10.0.0.1", "10.0.0.7"),
        ..wish()
    };
    let place = Place::choose(&joining).expect("a place");
    assert_eq!(place.bind, ip("10.0.0.7"));
    assert_eq!(place.advertise.as_deref(), Some("10.0.0.7"));
    let said =
        "binding 10.0.0.7, the address that routes to 10.0.0.1 (--bind ADDRESS chooses another)";
    assert_eq!(place.notes, [said]);
    let local = Wish {
        seed: seed("127.0.0.1:7400", "127.0.0.1"),
        ..wish()
    };
    let place = Place::choose(&local).expect("a place");
    assert_eq!(
        (place.bind, place.advertise, place.notes),
        (LOOPBACK, None, Vec::new())
    );
    let lost = Wish {
        seed: seed("203.0.113.9", ""),
        ..wish()
    };
    let said = Place::choose(&lost).expect_err("no route").to_string();
    assert_eq!(
        said,
        "no route from this machine to 203.0.113.9: check the address, or name the address to bind with --bind ADDRESS"
    );
    // An address that was named needs no route.
    let named = Wish {
        bind: Some(ip("10.0.0.7")),
        ..lost
    };
    assert_eq!(Place::choose(&named).expect("a place").bind, ip("10.0.0.7"));
}

#[test]
fn a_seed_on_loopback_is_refused_to_a_node_that_is_not() {
    for text in [
        "127.0.0.1:7400",
        "127.0.0.1",
        "[::1]:7400",
        "::1",
        "localhost:7400",
    ] {
        let wish = Wish {
            bind: Some(ip("10.0.0.7")),
            seed: seed(text, "127.0.0.1"),
            ..wish()
        };
        let error = Place::choose(&wish).expect_err(text);
        assert!(matches!(error, PlaceError::LoopbackSeed { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("start the other node with --bind ADDRESS"),
            "{error}"
        );
    }
    // Another address of this very machine is reached from loopback, too.
    let wish = Wish {
        bind: Some(ip("10.0.0.7")),
        seed: seed("192.168.1.7:7400", "127.0.0.1"),
        ..wish()
    };
    assert!(Place::choose(&wish).is_ok());
}

#[test]
fn a_node_on_loopback_is_refused_a_seed_that_is_elsewhere() {
    let check = |bind: &str, seed: Option<Seed>, advertise: Option<&str>, is_refused: bool| {
        let wish = Wish {
            bind: Some(ip(bind)),
            advertise: advertise.map(str::to_owned),
            seed: seed.clone(),
            ..wish()
        };
        let chosen = Place::choose(&wish);
        let refused = matches!(chosen, Err(PlaceError::LoopbackBind { .. }));
        assert_eq!(refused, is_refused, "{bind} {seed:?} {chosen:?}");
    };
    for bind in ["127.0.0.1", "::1"] {
        check(bind, seed("10.0.0.1:7400", "10.0.0.7"), None, true);
        check(bind, seed("a.example:7400", "10.0.0.7"), None, true);
        check(bind, seed("10.0.0.1", ""), None, true);
        check(
            bind,
            seed("[2001:db8::1]:7400", ""),
            Some("b.example"),
            true,
        );
        check(bind, seed("127.0.0.1:7400", "127.0.0.1"), None, false);
        check(bind, seed("localhost:7400", "::1"), None, false);
        // A name that cannot be looked up now may be this machine's.
        check(bind, seed("a.example:7400", ""), None, false);
    }
    let wish = Wish {
        bind: Some(LOOPBACK),
        seed: seed("10.0.0.1:7400", "10.0.0.7"),
        ..wish()
    };
    let said = Place::choose(&wish).expect_err("elsewhere").to_string();
    assert!(
        said.starts_with(
            "this node binds 127.0.0.1, which is loopback, and 10.0.0.1:7400 is on another machine"
        ),
        "{said}"
    );
    assert!(said.contains("leave --bind out"), "{said}");
}

#[test]
fn what_listens_at_a_wildcard_is_reached_by_loopback_of_its_family() {
    assert_eq!(loopback_of(ip("0.0.0.0")), ip("127.0.0.1"));
    assert_eq!(loopback_of(ip("::")), ip("::1"));
}

#[test]
fn a_wildcard_advertises_an_address_that_others_reach() {
    let check = |bind: &str, seed: Option<Seed>, expected: &str, note: &str| {
        let wish = Wish {
            bind: Some(ip(bind)),
            seed,
            ..wish()
        };
        let place = Place::choose(&wish).expect("a place");
        assert_eq!(place.advertise.as_deref(), Some(expected));
        assert_eq!(place.notes, [note]);
    };
    let several = "(--advertise HOST chooses another)";
    check(
        "0.0.0.0",
        None,
        "10.0.0.7",
        &format!("advertising 10.0.0.7 to the others, of 2 addresses {several}"),
    );
    // It listens on IPv6 only, whatever the route to the seed is.
    for seed in [None, seed("192.168.1.1", "192.168.1.7")] {
        check(
            "::",
            seed,
            "2001:db8::7",
            "advertising 2001:db8::7 to the others",
        );
    }
    let routed = seed("192.168.1.1", "192.168.1.7");
    check(
        "0.0.0.0",
        routed,
        "192.168.1.7",
        &format!("advertising 192.168.1.7 to the others, of 2 addresses {several}"),
    );
    let only = Wish {
        bind: Some(ip("0.0.0.0")),
        addresses: vec![LOOPBACK, ip("10.0.0.7")],
        ..wish()
    };
    assert_eq!(
        Place::choose(&only).expect("a place").notes,
        ["advertising 10.0.0.7 to the others"]
    );
    let none = Wish {
        bind: Some(ip("0.0.0.0")),
        addresses: vec![LOOPBACK, ip("169.254.3.4"), ip("2001:db8::7")],
        ..wish()
    };
    let said = Place::choose(&none).expect_err("no address").to_string();
    assert_eq!(
        said,
        "0.0.0.0 binds all IPv4 addresses, and this machine has none that others reach: name one with --advertise HOST"
    );
}

#[test]
fn what_others_cannot_reach_is_never_advertised() {
    let advertised = |host: &str| {
        let wish = Wish {
            bind: Some(ip("0.0.0.0")),
            advertise: Some(host.into()),
            ..wish()
        };
        Place::choose(&wish).map(|place| place.advertise.unwrap_or_default())
    };
    for (host, expected) in [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("Node3.Example.", "node3.example"),
        ("db", "db"),
    ] {
        assert_eq!(advertised(host).as_deref(), Ok(expected));
    }
    for host in [
        "0.0.0.0",
        "::",
        "127.0.0.1",
        "127.1.2.3",
        "::1",
        "::ffff:127.0.0.1",
        "localhost",
        "a.localhost",
        "224.0.0.1",
        "255.255.255.255",
        "fe80::1",
    ] {
        let error = advertised(host).expect_err(host);
        assert!(
            matches!(error, PlaceError::NotReachable { .. }),
            "{host}: {error}"
        );
        assert!(error.to_string().contains("--advertise HOST"), "{error}");
    }
    for host in [
        "",
        "a:7400",
        "a b",
        "-a",
        "10.0.0",
        "10.0.0.256",
        "a..b",
        "[a]",
    ] {
        let error = advertised(host).expect_err(host);
        assert!(
            matches!(error, PlaceError::InvalidHost { .. }),
            "{host}: {error}"
        );
    }
}

#[test]
fn a_usual_port_on_loopback_is_replaced_and_no_other() {
    let taken = |service: Service, bind: &str, is_named: bool| {
        let port = service.default_port();
        taken_port(service, ip(bind), port, is_named) == TakenPort::AnyFree
    };
    for service in [Service::Membership, Service::Http] {
        assert!(taken(service, "127.0.0.1", false));
        assert!(taken(service, "::1", false));
        assert!(!taken(service, "127.0.0.1", true));
        assert!(!taken(service, "10.0.0.7", false));
        assert!(!taken(service, "0.0.0.0", false));
    }
    for bind in ["127.0.0.1", "10.0.0.7"] {
        assert!(!taken(Service::Store, bind, false));
    }
    let said = taken_port(Service::Store, ip("127.0.0.1"), 6379, false);
    let expected = "127.0.0.1:6379 is in use, where the store should listen: a store may be running there already; \
                    stop it, or choose another port with --port PORT";
    assert_eq!(said, TakenPort::Refuse(expected.into()));
    let said = taken_port(Service::Http, ip("2001:db8::7"), 7480, false);
    assert!(
        matches!(said, TakenPort::Refuse(said) if said.starts_with("[2001:db8::7]:7480 is in use"))
    );
    assert_eq!(
        replaced_port(Service::Membership, 7400, 40123),
        "port 7400 is taken; membership uses 40123 (kumi status on this machine finds it)"
    );
}

#[test]
fn messages_name_the_other_node() {
    assert!(loopback_store("a").contains("start node a with --bind ADDRESS"));
    let name = Name::new("a").expect("a name");
    assert!(
        name_in_use(&name, "10.0.0.1:7400")
            .starts_with("a live node at 10.0.0.1:7400 has the name a already")
    );
}

proptest! {
    /// Whatever is wished, what is advertised is neither a wildcard nor loopback.
    #[test]
    fn nothing_unreachable_is_advertised(
        bind in proptest::option::of(any::<IpAddr>()),
        wildcard in any::<bool>(),
        addresses in proptest::collection::vec(any::<IpAddr>(), 0..5),
        local in proptest::option::of(any::<IpAddr>()),
        host in proptest::option::of("[a-z0-9.:\\[\\]-]{0,20}"),
    ) {
        let wish = Wish {
            bind: if wildcard { Some(ip("0.0.0.0")) } else { bind },
            advertise: host,
            seed: local.map(|local| Seed { text: "seed".into(), local: Some(local) }),
            addresses,
            ..Wish::default()
        };
        if let Ok(Place { advertise: Some(host), bind, .. }) = Place::choose(&wish)
            && let Ok(address) = host.parse::<IpAddr>()
        {
            prop_assert!(!address.is_unspecified() && !address.is_loopback(), "{host}, bound to {bind}");
        }
    }
}

//! Places, distances and searches; the differential test compares them with a redis-server.

use crate::testing::Lab;

fn sicily() -> Lab {
    let mut lab = Lab::new();
    let line = "GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";
    lab.check(&[(line, ":2\r\n")]);
    lab
}

#[test]
fn places_are_scores_of_a_sorted_set() {
    let mut lab = sicily();
    lab.check(&[
        ("ZSCORE k Palermo", "$16\r\n3479099956230698\r\n"),
        ("GEODIST k Palermo Catania", "$11\r\n166274.1516\r\n"),
        ("GEODIST k Palermo Catania km", "$8\r\n166.2742\r\n"),
        ("GEODIST k Palermo nowhere", "$-1\r\n"),
        ("GEODIST none a b", "$-1\r\n"),
        ("GEOHASH k Palermo x", "*2\r\n$11\r\nsqc8b49rny0\r\n$-1\r\n"),
        (
            "GEOPOS k Palermo x",
            "*2\r\n*2\r\n$20\r\n13.36138933897018433\r\n$20\r\n38.11555639549629859\r\n*-1\r\n",
        ),
        ("GEOADD k XX CH 13.5 38 Palermo 1 1 new", ":1\r\n"),
        ("GEOADD k NX XX 1 1 a", "-ERR syntax error\r\n"),
        (
            "GEOADD k 200 100 a",
            "-ERR invalid longitude,latitude pair 200.000000,100.000000\r\n",
        ),
        ("GEOADD k x 1 a", "-ERR value is not a valid float\r\n"),
        (
            "GEODIST k Palermo Catania ly",
            "-ERR unsupported unit provided. please use M, KM, FT, MI\r\n",
        ),
    ]);
}

#[test]
fn a_search_lists_what_is_inside() {
    let mut lab = sicily();
    lab.check(&[
        (
            "GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 200 km ASC",
            "*2\r\n$7\r\nCatania\r\n$7\r\nPalermo\r\n",
        ),
        (
            "GEOSEARCH k FROMLONLAT 15 37 BYBOX 100 400 km WITHDIST",
            "*1\r\n*2\r\n$7\r\nCatania\r\n$7\r\n56.4413\r\n",
        ),
        (
            "GEORADIUS k 15 37 200 km DESC COUNT 1 WITHHASH",
            "*1\r\n*2\r\n$7\r\nPalermo\r\n:3479099956230698\r\n",
        ),
        (
            "GEORADIUSBYMEMBER_RO k Palermo 1 m",
            "*1\r\n$7\r\nPalermo\r\n",
        ),
        ("GEOSEARCHSTORE d k FROMMEMBER Catania BYRADIUS 1 km STOREDIST", ":1\r\n"),
        ("ZSCORE d Catania", "$1\r\n0\r\n"),
        ("GEORADIUS k 0 0 1 m STORE d", ":0\r\n"),
        ("EXISTS d", ":0\r\n"),
        (
            "GEOSEARCH k FROMLONLAT 15 37 ASC DESC WITHDIST",
            "-ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH\r\n",
        ),
        ("GEORADIUS_RO k 15 37 1 m STORE d", "-ERR syntax error\r\n"),
        (
            "GEORADIUS k 15 37 1 m STORE d WITHDIST",
            "-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options\r\n",
        ),
    ]);
}

#[test]
fn extreme_numbers_are_searched_or_refused() {
    let mut lab = sicily();
    for radius in ["0", "1e-300", "1e308", "inf", "5e-324"] {
        for shape in [
            format!("BYRADIUS {radius} mi"),
            format!("BYBOX {radius} {radius} mi"),
        ] {
            let line = format!(
                "GEOSEARCH k FROMLONLAT -180 -85.05112878 {shape} COUNT 9223372036854775807"
            );
            let reply = lab.run(&line);
            assert!(
                reply.starts_with('*') || reply.starts_with("-ERR"),
                "{line}: {reply}"
            );
        }
    }
    lab.check(&[
        (
            "GEOSEARCH k FROMLONLAT 0 0 BYRADIUS nan m",
            "-ERR need numeric radius\r\n",
        ),
        (
            "GEOSEARCH k FROMLONLAT 0 0 BYRADIUS 1 m COUNT 0",
            "-ERR COUNT must be > 0\r\n",
        ),
        ("ZADD k inf far -inf farther 1e300 wide", ":3\r\n"),
    ]);
    assert!(lab.run("GEOPOS k far farther wide").starts_with("*3\r\n"));
    assert!(
        lab.run("GEOSEARCH k FROMMEMBER far BYRADIUS 1 m")
            .starts_with('*')
    );
}

#[test]
fn geo_commands_are_recorded_and_announced_as_redis_does() {
    let mut lab = Lab::new();
    lab.check_writes(&[
        (
            "GEOADD k CH 13.361389 38.115556 Palermo",
            &["ZADD k CH 3479099956230698 Palermo"],
        ),
        ("GEOADD k 13.361389 38.115556 Palermo", &[]),
        (
            "GEOSEARCHSTORE d k FROMMEMBER Palermo BYRADIUS 1 m",
            &["GEOSEARCHSTORE d k FROMMEMBER Palermo BYRADIUS 1 m"],
        ),
    ]);
    let mut lab = Lab::new();
    lab.check_events(&[
        ("GEOADD k 13.361389 38.115556 Palermo", &["new k", "zadd k"]),
        (
            "GEOSEARCHSTORE d k FROMMEMBER Palermo BYRADIUS 1 m",
            &["new d", "geosearchstore d"],
        ),
        (
            "GEORADIUSBYMEMBER k Palermo 1 m STOREDIST d",
            &["georadiusstore d"],
        ),
        ("GEORADIUS k 0 0 1 m STORE d", &["del d"]),
    ]);
}

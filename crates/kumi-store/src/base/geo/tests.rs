use super::*;
use crate::reference::Reference;
use crate::support::frame::Frame;
use proptest::prelude::*;

fn point(longitude: f64, latitude: f64) -> Point {
    Point {
        longitude,
        latitude,
    }
}

#[test]
fn scores_strings_and_distances_of_known_places() {
    let palermo = point(13.361389, 38.115556);
    let catania = point(15.087269, 37.502669);
    assert_eq!(palermo.score(), 3_479_099_956_230_698.0);
    assert_eq!(catania.score(), 3_479_447_370_796_909.0);
    let (palermo, catania) = (
        Point::from_score(palermo.score()),
        Point::from_score(catania.score()),
    );
    assert_eq!(palermo.geohash(), *b"sqc8b49rny0");
    assert_eq!(catania.geohash(), *b"sqdtr74hyu0");
    assert_eq!(format!("{:.4}", palermo.distance(catania)), "166274.1516");
    assert_eq!(palermo.distance(palermo), 0.0);
}

#[test]
fn places_outside_the_projection_are_invalid() {
    assert!(point(180.0, 85.05112878).is_valid());
    assert!(point(-180.0, -85.05112878).is_valid());
    for (longitude, latitude) in [
        (180.1, 0.0),
        (-180.1, 0.0),
        (0.0, 85.06),
        (0.0, -85.06),
        (f64::NAN, 0.0),
    ] {
        assert!(!point(longitude, latitude).is_valid());
    }
}

#[test]
fn odd_radii_end() {
    for radius in [0.0, 5e-324, 1e-9, f64::MAX, f64::INFINITY, f64::NAN, -1.0] {
        let ranges = Shape::Circle { radius }.score_ranges(point(0.0, 0.0));
        assert!(ranges.len() <= 9, "{radius}");
    }
}

fn any_point() -> impl Strategy<Value = Point> {
    (-180.0..180.0, -85.0..85.0).prop_map(|(longitude, latitude)| point(longitude, latitude))
}

proptest! {
    #[test]
    fn spreading_and_gathering_are_inverse(value: u32, other: u32) {
        prop_assert_eq!(gather(spread(value)), value);
        prop_assert_eq!(gather(spread(value) | spread(other) << 1), value);
    }

    #[test]
    fn a_score_stands_for_a_place_nearby(place in any_point()) {
        let back = Point::from_score(place.score());
        prop_assert!(back.distance(place) < 1.0);
    }

    #[test]
    fn neighbours_are_next_to_each_other(place in any_point(), step in 2u32..27) {
        let cell = Cell::of(place, step, LATITUDES);
        prop_assert_eq!(cell.neighbour(1, 0).neighbour(-1, 0), cell);
        prop_assert_eq!(cell.neighbour(0, 1).neighbour(0, -1), cell);
        let area = cell.area();
        prop_assert!(area.longitudes.0 <= place.longitude && place.longitude <= area.longitudes.1);
        prop_assert!(area.latitudes.0 <= place.latitude && place.latitude <= area.latitudes.1);
    }

    #[test]
    fn a_circle_far_from_the_edges_visits_every_member_inside(
        (longitude, latitude) in (-120.0..120.0, -60.0..60.0),
        radius in 1.0..500_000.0f64,
        (east, north) in (-1.0..1.0f64, -1.0..1.0f64),
    ) {
        let centre = point(longitude, latitude);
        let reach = radius / 111_000.0;
        let place = Point::from_score(point(longitude + east * reach, latitude + north * reach).score());
        let shape = Shape::Circle { radius };
        if shape.distance_within(centre, place).is_some() {
            let score = place.score();
            prop_assert!(shape.score_ranges(centre).iter().any(|range| range.contains(&score)));
        }
    }
}

#[test]
fn scores_positions_distances_and_searches_agree_with_redis() {
    let seed = 17;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut redis = Reference::start();
    for round in 0..60 {
        redis.call(&["DEL", "k"]);
        let centre = point(
            rng.f64() * 360.0 - 180.0,
            [rng.f64() * 170.0 - 85.0, 84.0, -70.0, 0.0][rng.usize(0..4)],
        );
        let extent = [180.0, 10.0, 0.1][rng.usize(0..3)];
        let mut places = Vec::new();
        for member in 0..80 {
            let place = point(
                (centre.longitude + (rng.f64() - 0.5) * extent).clamp(-180.0, 180.0),
                (centre.latitude + (rng.f64() - 0.5) * extent).clamp(-85.0, 85.0),
            );
            let name = member.to_string();
            let (longitude, latitude) = (place.longitude.to_string(), place.latitude.to_string());
            redis.call(&["GEOADD", "k", &longitude, &latitude, &name]);
            let score = redis.text(&["ZSCORE", "k", &name]);
            let context = format!("seed {seed} round {round}: {place:?}");
            assert_eq!(score, place.score().to_string().as_bytes(), "{context}");
            let stored = Point::from_score(place.score());
            let hash = redis.call(&["GEOHASH", "k", &name]);
            assert_eq!(
                hash,
                Frame::Array(vec![Frame::Bulk(stored.geohash().to_vec())]),
                "{context}"
            );
            places.push((place.score(), name));
        }
        let (first, second) = (
            Point::from_score(places[0].0),
            Point::from_score(places[1].0),
        );
        assert_eq!(
            redis.text(&["GEODIST", "k", "0", "1"]),
            format!("{:.4}", first.distance(second)).as_bytes()
        );
        // Redis visits each range in the order of the sorted set: by score, then by name.
        places.sort_by(|left, right| {
            left.0
                .total_cmp(&right.0)
                .then_with(|| left.1.cmp(&right.1))
        });
        let size = extent * 111_000.0 * rng.f64();
        let other_size = extent * 111_000.0 * rng.f64();
        let shape = match rng.bool() {
            true => Shape::Circle { radius: size },
            false => Shape::Box {
                width: size,
                height: other_size,
            },
        };
        let mut command: Vec<String> = ["GEOSEARCH", "k", "FROMLONLAT"].map(String::from).to_vec();
        command.push(centre.longitude.to_string());
        command.push(centre.latitude.to_string());
        match shape {
            Shape::Circle { .. } => command.extend(["BYRADIUS".into(), size.to_string()]),
            Shape::Box { .. } => {
                command.extend(["BYBOX".into(), size.to_string(), other_size.to_string()]);
            }
        }
        command.push("m".into());
        let found: Vec<Frame> = shape
            .score_ranges(centre)
            .into_iter()
            .flat_map(|range| places.iter().filter(move |place| range.contains(&place.0)))
            .filter(|place| {
                shape
                    .distance_within(centre, Point::from_score(place.0))
                    .is_some()
            })
            .map(|place| Frame::Bulk(place.1.clone().into_bytes()))
            .collect();
        assert_eq!(
            redis.call(&command),
            Frame::Array(found),
            "seed {seed} round {round}: {command:?}"
        );
    }
}

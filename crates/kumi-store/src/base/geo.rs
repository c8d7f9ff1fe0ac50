//! Places on the globe as sorted-set scores: Redis's 52-bit geohashes, distances, and which scores a search must visit.
//!
//! A geohash interleaves 26 bits of latitude (even bits) with 26 bits of longitude (odd bits), so that places that are
//! near each other share high bits, and a cell of a coarser grid is one range of scores. A search looks at the cell of
//! its centre and the eight around it, at a step where nine cells cover the shape, and measures every member in them.
//!
//! The arithmetic is Redis's, operation by operation, because the last digits of scores and coordinates show. Members,
//! units and sorting are the commands' part.

/// The longitudes a geohash covers, in degrees.
pub(crate) const LONGITUDES: (f64, f64) = (-180.0, 180.0);
/// The latitudes a geohash covers, in degrees: those of the Mercator projection.
pub(crate) const LATITUDES: (f64, f64) = (-85.051_128_78, 85.051_128_78);
/// Bits per coordinate in a score.
const SCORE_STEP: u32 = 26;
/// Half the circumference of the Earth in the Mercator projection, in metres.
const MERCATOR_MAX: f64 = 20_037_726.37;
/// In metres, as Redis has it.
const EARTH_RADIUS: f64 = 6_372_797.560_856;
/// The latitudes of the geohashes that others write, in degrees.
const STANDARD_LATITUDES: (f64, f64) = (-90.0, 90.0);

/// A place, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) longitude: f64,
    pub(crate) latitude: f64,
}

impl Point {
    /// Whether GEOADD takes it.
    pub(crate) fn is_valid(self) -> bool {
        (LONGITUDES.0..=LONGITUDES.1).contains(&self.longitude)
            && (LATITUDES.0..=LATITUDES.1).contains(&self.latitude)
    }

    /// The score of a valid place. At 180 degrees east it has 54 bits, and the sorted set's double rounds it.
    pub(crate) fn score(self) -> f64 {
        Cell::of(self, SCORE_STEP, LATITUDES).bits as f64
    }

    /// The place a score stands for: the centre of its cell.
    pub(crate) fn from_score(score: f64) -> Self {
        let cell = Cell {
            bits: score as u64,
            step: SCORE_STEP,
        };
        let area = cell.area();
        let middle = |(min, max): (f64, f64), bounds: (f64, f64)| {
            ((min + max) / 2.0).clamp(bounds.0, bounds.1)
        };
        Self {
            longitude: middle(area.longitudes, LONGITUDES),
            latitude: middle(area.latitudes, LATITUDES),
        }
    }

    /// The eleven characters of GEOHASH. The last is always `0`: ten characters are all that 52 bits give.
    pub(crate) fn geohash(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = Cell::of(self, SCORE_STEP, STANDARD_LATITUDES).bits;
        let mut text = [b'0'; 11];
        for (index, character) in text.iter_mut().take(10).enumerate() {
            *character = ALPHABET[(bits >> (52 - (index + 1) * 5) & 0x1f) as usize];
        }
        text
    }

    /// The distance in metres by the haversine formula.
    pub(crate) fn distance(self, other: Self) -> f64 {
        let (from, to) = (radians(self.longitude), radians(other.longitude));
        let v = ((to - from) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance(self.latitude, other.latitude);
        }
        let (south, north) = (radians(self.latitude), radians(other.latitude));
        let u = ((north - south) / 2.0).sin();
        let a = u * u + south.cos() * north.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }
}

/// What a search covers, with sizes in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

impl Shape {
    /// The distance from the centre to a place inside the shape; `None` for a place outside.
    pub(crate) fn distance_within(self, centre: Point, place: Point) -> Option<f64> {
        match self {
            Shape::Circle { radius } => {
                let distance = centre.distance(place);
                (distance <= radius).then_some(distance)
            }
            Shape::Box { width, height } => {
                if latitude_distance(place.latitude, centre.latitude) > height / 2.0 {
                    return None;
                }
                let same_latitude = Point {
                    longitude: centre.longitude,
                    latitude: place.latitude,
                };
                if place.distance(same_latitude) > width / 2.0 {
                    return None;
                }
                Some(centre.distance(place))
            }
        }
    }

    /// The half-open ranges of scores that hold every member inside the shape, in the order Redis visits them. Members
    /// outside the shape may be among them.
    pub(crate) fn score_ranges(self, centre: Point) -> Vec<std::ops::Range<f64>> {
        let mut ranges: Vec<std::ops::Range<f64>> = Vec::with_capacity(9);
        let mut last: Option<Cell> = None;
        for cell in self.cells(centre).into_iter().flatten() {
            // With a huge radius neighbours wrap around and are the same cell.
            if last == Some(cell) {
                continue;
            }
            last = Some(cell);
            let unused = 52 - cell.step * 2;
            let (from, to) = (cell.bits << unused, (cell.bits + 1) << unused);
            ranges.push(from as f64..to as f64);
        }
        ranges
    }

    /// The cell of the centre and those around it, without those that cannot hold a match.
    fn cells(self, centre: Point) -> [Option<Cell>; 9] {
        let bounds = self.bounds(centre);
        let reach = match self {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        };
        let mut step = step_for(reach, centre.latitude);
        let mut cell = Cell::of(centre, step, LATITUDES);
        if step > 1 && !cell.neighbours_cover(&bounds) {
            step -= 1;
            cell = Cell::of(centre, step, LATITUDES);
        }
        let area = cell.area();
        // In a grid of two by two, everything is a neighbour in more than one direction.
        let fine = step >= 2;
        let skip_south = fine && area.latitudes.0 < bounds.latitudes.0;
        let skip_north = fine && area.latitudes.1 > bounds.latitudes.1;
        let skip_west = fine && area.longitudes.0 < bounds.longitudes.0;
        let skip_east = fine && area.longitudes.1 > bounds.longitudes.1;
        const AROUND: [(i8, i8); 9] = [
            (0, 0),
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (-1, 1),
            (1, -1),
            (-1, -1),
        ];
        AROUND.map(|(east, north)| {
            let skipped = (east > 0 && skip_east)
                || (east < 0 && skip_west)
                || (north > 0 && skip_north)
                || (north < 0 && skip_south);
            (!skipped).then(|| cell.neighbour(east, north))
        })
    }

    /// The smallest area of degrees around the shape.
    fn bounds(self, centre: Point) -> Area {
        let (width, height) = match self {
            Shape::Circle { radius } => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let Point {
            longitude,
            latitude,
        } = centre;
        let north_south = degrees(height / EARTH_RADIUS);
        // A degree of longitude is shortest on the side that is nearer to a pole.
        let widest = match latitude < 0.0 {
            true => latitude - north_south,
            false => latitude + north_south,
        };
        let east_west = degrees(width / EARTH_RADIUS / radians(widest).cos());
        Area {
            longitudes: (longitude - east_west, longitude + east_west),
            latitudes: (latitude - north_south, latitude + north_south),
        }
    }
}

/// A part of the globe, in degrees.
#[derive(Clone, Copy, Debug)]
struct Area {
    longitudes: (f64, f64),
    latitudes: (f64, f64),
}

/// A cell of the grid that has `2^step` columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    bits: u64,
    step: u32,
}

impl Cell {
    fn of(point: Point, step: u32, latitudes: (f64, f64)) -> Self {
        let cells = (1u64 << step) as f64;
        let index = |value: f64, (min, max): (f64, f64)| {
            let share = (value - min) / (max - min);
            (share * cells) as u32
        };
        let row = index(point.latitude, latitudes);
        let column = index(point.longitude, LONGITUDES);
        Self {
            bits: spread(row) | spread(column) << 1,
            step,
        }
    }

    fn area(self) -> Area {
        let cells = (1u64 << self.step) as f64;
        let side = |index: u32, (min, max): (f64, f64)| {
            let scale = max - min;
            let low = min + (f64::from(index) / cells) * scale;
            let high = min + ((f64::from(index) + 1.0) / cells) * scale;
            (low, high)
        };
        Area {
            longitudes: side(gather(self.bits >> 1), LONGITUDES),
            latitudes: side(gather(self.bits), LATITUDES),
        }
    }

    /// The cell so many columns east and rows north; the grid wraps around. As in Redis, a coordinate that does not move
    /// stays as it is, also at the last meridian, which lies one column behind the grid.
    fn neighbour(self, east: i8, north: i8) -> Self {
        let mask = u32::MAX >> (32 - self.step);
        let moved = |index: u32, by: i8| match by {
            0 => index,
            by => index.wrapping_add_signed(i32::from(by)) & mask,
        };
        let row = moved(gather(self.bits), north);
        let column = moved(gather(self.bits >> 1), east);
        Self {
            bits: spread(row) | spread(column) << 1,
            step: self.step,
        }
    }

    /// Whether the cells around this one reach the bounds on all four sides.
    fn neighbours_cover(self, bounds: &Area) -> bool {
        self.neighbour(0, 1).area().latitudes.1 >= bounds.latitudes.1
            && self.neighbour(0, -1).area().latitudes.0 <= bounds.latitudes.0
            && self.neighbour(1, 0).area().longitudes.1 >= bounds.longitudes.1
            && self.neighbour(-1, 0).area().longitudes.0 <= bounds.longitudes.0
    }
}

/// The finest step at which nine cells cover a radius in metres.
fn step_for(radius: f64, latitude: f64) -> u32 {
    if radius == 0.0 {
        return SCORE_STEP;
    }
    let mut step = 1i32;
    let mut covered = radius;
    // A radius that is not a number, or so small that doubling does not reach, ends at the finest step.
    while covered < MERCATOR_MAX && step < 64 {
        covered *= 2.0;
        step += 1;
    }
    step -= 2;
    if !(-66.0..=66.0).contains(&latitude) {
        step -= 1;
        if !(-80.0..=80.0).contains(&latitude) {
            step -= 1;
        }
    }
    step.clamp(1, SCORE_STEP as i32) as u32
}

fn latitude_distance(one: f64, other: f64) -> f64 {
    EARTH_RADIUS * (radians(other) - radians(one)).abs()
}

fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

/// The pairs of (shift, mask) that move the bits of a number to the even bits of another.
const SPREAD: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];

/// Puts the bits of a number at the even places.
fn spread(value: u32) -> u64 {
    SPREAD
        .iter()
        .fold(u64::from(value), |bits, &(shift, mask)| {
            (bits | bits << shift) & mask
        })
}

/// Takes the bits at the even places.
fn gather(bits: u64) -> u32 {
    let even = bits & SPREAD[4].1;
    let gathered = SPREAD
        .windows(2)
        .rev()
        .fold(even, |bits, pair| (bits | bits >> pair[1].0) & pair[0].1);
    (gathered | gathered >> 16) as u32
}

#[cfg(test)]
mod tests;

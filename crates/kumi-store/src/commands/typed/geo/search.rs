//! GEOSEARCH, GEORADIUS and their variants: members inside a circle or a box, listed or stored.

use super::{coordinates, distance, point, unit};
use crate::base::error::{CommandError, CommandResult};
use crate::base::geo::{Point, Shape};
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::commands::typed::sorted_sets::{limits, parse_score};
use crate::config::NotifyFlags;
use crate::data::keyspace::Look;
use crate::engine::store::ctx::Ctx;
use crate::types::zset::{ScoreBound, Zset, ZsetEncoding, ZsetRef};
use kumi_resp::Args;

pub(super) fn geosearch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Variant::Search)
}

pub(super) fn geosearchstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Variant::SearchStore)
}

pub(super) fn georadius(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Variant::Radius { may_store: true })
}

pub(super) fn georadius_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Variant::Radius { may_store: false })
}

pub(super) fn georadiusbymember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Variant::ByMember { may_store: true })
}

pub(super) fn georadiusbymember_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Variant::ByMember { may_store: false })
}

/// Which command it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Search,
    SearchStore,
    Radius { may_store: bool },
    ByMember { may_store: bool },
}

impl Variant {
    /// The position of the sorted set's key, and where options begin.
    fn layout(self) -> (usize, usize) {
        match self {
            Variant::Search => (1, 2),
            Variant::SearchStore => (2, 3),
            Variant::Radius { .. } => (1, 6),
            Variant::ByMember { .. } => (1, 5),
        }
    }

    fn is_search(self) -> bool {
        matches!(self, Variant::Search | Variant::SearchStore)
    }

    fn may_store(self) -> bool {
        matches!(
            self,
            Variant::Radius { may_store: true } | Variant::ByMember { may_store: true }
        )
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As the search comes upon them.
    Found,
    Nearest,
    Farthest,
}

/// A request, read as far as it can be without the members.
struct Request<'a> {
    /// None while there is no sorted set to find a member in.
    centre: Option<Point>,
    has_centre: bool,
    shape: Option<Shape>,
    /// Metres of the unit.
    metres: f64,
    with_distance: bool,
    with_hash: bool,
    with_coordinates: bool,
    order: Order,
    /// No limit if it is 0.
    count: usize,
    any: bool,
    store: Option<&'a [u8]>,
    store_distance: bool,
}

/// A member that was found.
struct Match {
    member: Vec<u8>,
    score: f64,
    place: Point,
    metres: f64,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, variant: Variant) -> CommandResult {
    let limits = limits(ctx);
    let source = &args[variant.layout().0];
    let (mut keys, reply) = ctx.keys_and_reply();
    let seed = keys.seed();
    let zset = keys.view::<Zset>(source, Look::Read)?;
    let request = Request::parse(args, variant, zset)?;
    let matches = match (zset, request.centre, request.shape) {
        (Some(zset), Some(centre), Some(shape)) => search(zset, centre, shape, &request),
        _ => Vec::new(),
    };
    let Some(target) = request.store else {
        let details = [
            request.with_distance,
            request.with_hash,
            request.with_coordinates,
        ];
        let details = details.into_iter().filter(|&detail| detail).count();
        reply.array(matches.len());
        for found in &matches {
            if details > 0 {
                reply.array(details + 1);
            }
            reply.bulk(&found.member);
            if request.with_distance {
                distance(reply, found.metres / request.metres);
            }
            if request.with_hash {
                reply.integer(found.score as i64);
            }
            if request.with_coordinates {
                coordinates(reply, found.place);
            }
        }
        return Ok(());
    };
    let (mut stored, mut longest) = (Zset::with_encoding(ZsetEncoding::Skiplist), 0);
    for found in &matches {
        longest = longest.max(found.member.len());
        let score = if request.store_distance {
            found.metres / request.metres
        } else {
            found.score
        };
        stored.insert(&found.member, score, limits, seed);
    }
    if matches.is_empty() {
        if keys.remove(target) {
            keys.notify(NotifyFlags::GENERIC, "del", target);
            ctx.dirty(1);
        }
    } else {
        stored.settle(longest, limits);
        keys.put_collection(target, stored)?;
        let event = if variant.is_search() {
            "geosearchstore"
        } else {
            "georadiusstore"
        };
        keys.notify(NotifyFlags::ZSET, event, target);
        ctx.dirty(matches.len());
    }
    ctx.reply.count(matches.len());
    Ok(())
}

impl<'a> Request<'a> {
    fn parse(
        args: Args<'a>,
        variant: Variant,
        zset: Option<ZsetRef<'_>>,
    ) -> Result<Self, CommandError> {
        let mut request = Request {
            centre: None,
            has_centre: false,
            shape: None,
            metres: 1.0,
            with_distance: false,
            with_hash: false,
            with_coordinates: false,
            order: Order::Found,
            count: 0,
            any: false,
            store: args.get(1).filter(|_| variant == Variant::SearchStore),
            store_distance: false,
        };
        match variant {
            Variant::Radius { .. } => {
                request.set_centre(point(&args[2], &args[3])?);
                request.set_circle(&args[4], &args[5])?;
            }
            Variant::ByMember { .. } => {
                if let Some(zset) = zset {
                    request.set_centre(place_of(zset, &args[2])?);
                    request.set_circle(&args[3], &args[4])?;
                }
            }
            Variant::Search | Variant::SearchStore => {}
        }
        request.parse_options(args, variant, zset)?;
        request.check(args, variant)?;
        if request.count > 0 && request.order == Order::Found && !request.any {
            request.order = Order::Nearest;
        }
        Ok(request)
    }

    fn parse_options(
        &mut self,
        args: Args<'a>,
        variant: Variant,
        zset: Option<ZsetRef<'_>>,
    ) -> CommandResult {
        let search = variant.is_search();
        let (mut from_place, mut from_member, mut circle, mut rectangle) =
            (false, false, false, false);
        let mut options = OptionReader::new(args, variant.layout().1);
        while let Some(word) = options.word() {
            match &*word {
                b"withdist" => self.with_distance = true,
                b"withhash" => self.with_hash = true,
                b"withcoord" => self.with_coordinates = true,
                b"any" => self.any = true,
                b"asc" => self.order = Order::Nearest,
                b"desc" => self.order = Order::Farthest,
                b"count" => {
                    let count = usize::try_from(integer(options.value()?)?).ok();
                    self.count = count
                        .filter(|&count| count > 0)
                        .ok_or(CommandError::fixed("ERR COUNT must be > 0"))?;
                }
                b"store" | b"storedist" if variant.may_store() => {
                    self.store = Some(options.value()?);
                    self.store_distance = *word == *b"storedist";
                }
                b"storedist" if variant == Variant::SearchStore => self.store_distance = true,
                b"frommember" if search && !from_place => {
                    let member = options.value()?;
                    if let Some(zset) = zset {
                        self.set_centre(place_of(zset, member)?);
                    }
                    (self.has_centre, from_member) = (true, true);
                }
                b"fromlonlat" if search && !from_member => {
                    let [longitude, latitude] = options.values()?;
                    self.set_centre(point(longitude, latitude)?);
                    from_place = true;
                }
                b"byradius" if search && !rectangle => {
                    let [radius, unit] = options.values()?;
                    self.set_circle(radius, unit)?;
                    circle = true;
                }
                b"bybox" if search && !circle => {
                    let [width, height, unit] = options.values()?;
                    self.set_box(width, height, unit)?;
                    rectangle = true;
                }
                _ => return Err(CommandError::SYNTAX),
            }
        }
        Ok(())
    }

    /// Refuses options that contradict each other, and searches without a place or a shape.
    fn check(&self, args: Args<'_>, variant: Variant) -> CommandResult {
        let details = self.with_distance || self.with_hash || self.with_coordinates;
        if self.store.is_some() && details {
            let what = if variant == Variant::SearchStore {
                "GEOSEARCHSTORE"
            } else {
                "STORE option in GEORADIUS"
            };
            return Err(CommandError::new(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let exactly = |what: &str| {
            let mut text = format!("ERR exactly one of {what} can be specified for ").into_bytes();
            text.extend_from_slice(&args[0]);
            Err(CommandError::new(text))
        };
        if variant.is_search() && !self.has_centre {
            return exactly("FROMMEMBER or FROMLONLAT");
        }
        if variant.is_search() && self.shape.is_none() {
            return exactly("BYRADIUS and BYBOX");
        }
        if self.any && self.count == 0 {
            return Err(CommandError::fixed(
                "ERR the ANY argument requires COUNT argument",
            ));
        }
        Ok(())
    }

    fn set_centre(&mut self, centre: Point) {
        self.centre = Some(centre);
        self.has_centre = true;
    }

    fn set_circle(&mut self, radius: &[u8], unit_name: &[u8]) -> CommandResult {
        let radius = parse_score(radius).ok_or(CommandError::fixed("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(CommandError::fixed("ERR radius cannot be negative"));
        }
        self.metres = unit(unit_name)?;
        self.shape = Some(Shape::Circle {
            radius: radius * self.metres,
        });
        Ok(())
    }

    fn set_box(&mut self, width: &[u8], height: &[u8], unit_name: &[u8]) -> CommandResult {
        let width = parse_score(width).ok_or(CommandError::fixed("ERR need numeric width"))?;
        let height = parse_score(height).ok_or(CommandError::fixed("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::fixed(
                "ERR height or width cannot be negative",
            ));
        }
        self.metres = unit(unit_name)?;
        self.shape = Some(Shape::Box {
            width: width * self.metres,
            height: height * self.metres,
        });
        Ok(())
    }
}

fn place_of(zset: ZsetRef<'_>, member: &[u8]) -> Result<Point, CommandError> {
    let score = zset.score(member).ok_or(CommandError::fixed(
        "ERR could not decode requested zset member",
    ))?;
    Ok(Point::from_score(score))
}

/// The members inside the shape, in the order and number the request wants.
fn search(zset: ZsetRef<'_>, centre: Point, shape: Shape, request: &Request<'_>) -> Vec<Match> {
    let enough = if request.any {
        request.count
    } else {
        usize::MAX
    };
    let mut matches = Vec::new();
    'areas: for scores in shape.score_ranges(centre) {
        let min = ScoreBound {
            score: scores.start,
            exclusive: false,
        };
        let max = ScoreBound {
            score: scores.end,
            exclusive: true,
        };
        for (member, score) in zset.range(zset.score_range(min, max)) {
            let place = Point::from_score(score);
            if let Some(metres) = shape.distance_within(centre, place) {
                matches.push(Match {
                    member: member.to_vec(),
                    score,
                    place,
                    metres,
                });
                if matches.len() >= enough {
                    break 'areas;
                }
            }
        }
    }
    match request.order {
        Order::Found => {}
        Order::Nearest => matches.sort_by(|one, other| one.metres.total_cmp(&other.metres)),
        Order::Farthest => matches.sort_by(|one, other| other.metres.total_cmp(&one.metres)),
    }
    if request.count > 0 {
        matches.truncate(request.count);
    }
    matches
}

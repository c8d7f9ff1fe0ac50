//! From a request to a response: what is decided without waiting, and the paths.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode, Uri, Version};

use super::hosts::HostNames;

const INDEX: &str = "kumi\n\n/healthz  whether the process serves\n/readyz   whether the node can be used\n/metrics  Prometheus metrics\n";

/// The content type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN_TYPE: &str = "text/plain; charset=utf-8";

/// What a path shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Index,
    Health,
    Readiness,
    Metrics,
}

impl Route {
    fn of(path: &str) -> Option<Route> {
        match path {
            "/" => Some(Route::Index),
            "/healthz" => Some(Route::Health),
            "/readyz" => Some(Route::Readiness),
            "/metrics" => Some(Route::Metrics),
            _ => None,
        }
    }
}

/// The parts of a request that decide about it.
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) version: Version,
    pub(super) headers: &'a HeaderMap,
}

/// A response with its whole body.
pub(super) type Answer = Response<Full<Bytes>>;

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No host is named, or several.
    NoHost,
    /// The host is not one of the node's names.
    ForeignHost,
    NoSuchPath,
    Method,
    NoToken,
}

impl Refusal {
    pub(super) fn answer(self) -> Answer {
        let (status, text) = match self {
            Refusal::NoHost => (StatusCode::BAD_REQUEST, "one Host header is needed\n"),
            Refusal::ForeignHost => (
                StatusCode::MISDIRECTED_REQUEST,
                "this name is not one of the node's: use an IP address or localhost, or add the name to its configuration\n",
            ),
            Refusal::NoSuchPath => (StatusCode::NOT_FOUND, "no such path\n"),
            Refusal::Method => (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n"),
            Refusal::NoToken => (
                StatusCode::UNAUTHORIZED,
                "metrics need a token on this address: Authorization: Bearer TOKEN\n",
            ),
        };
        let mut answer = plain(status, text);
        let header = match self {
            Refusal::Method => Some((header::ALLOW, "GET, HEAD")),
            Refusal::NoToken => Some((header::WWW_AUTHENTICATE, "Bearer realm=\"kumi\"")),
            _ => None,
        };
        if let Some((name, value)) = header {
            answer
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        answer
    }
}

/// The route of a request, or why it is refused. `is_open` says whether the listener shows everything without a token.
pub(super) fn admit(
    asked: &Asked<'_>,
    hosts: &HostNames,
    is_open: bool,
    is_token: impl FnOnce(&[u8]) -> bool,
) -> Result<Route, Refusal> {
    check_host(asked, hosts)?;
    let route = Route::of(asked.uri.path()).ok_or(Refusal::NoSuchPath)?;
    if asked.method != Method::GET && asked.method != Method::HEAD {
        return Err(Refusal::Method);
    }
    let needs_token = route == Route::Metrics && !is_open;
    if needs_token && !bearer(asked.headers).is_some_and(is_token) {
        return Err(Refusal::NoToken);
    }
    Ok(route)
}

/// A request names its host once, and by a name that is ours. HTTP/1.0 may leave it out: no browser does.
fn check_host(asked: &Asked<'_>, hosts: &HostNames) -> Result<(), Refusal> {
    let authority = asked.uri.authority();
    let mut named = asked.headers.get_all(header::HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        (None, _) if asked.version == Version::HTTP_10 && authority.is_none() => return Ok(()),
        _ => return Err(Refusal::NoHost),
    };
    let is_ours = hosts.allow(host) && authority.is_none_or(|one| hosts.allow(one.as_str()));
    is_ours.then_some(()).ok_or(Refusal::ForeignHost)
}

/// The token of `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

pub(super) fn index() -> Answer {
    plain(StatusCode::OK, INDEX)
}

pub(super) fn metrics(text: Bytes) -> Answer {
    respond(StatusCode::OK, METRICS_TYPE, text)
}

/// A short text. It is shown as text, whatever a browser makes of it, and kept by no cache.
pub(super) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    respond(status, PLAIN_TYPE, text.into())
}

fn respond(status: StatusCode, content_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        request: &str,
        headers: &[(&'static str, &'static str)],
        is_open: bool,
    ) -> Result<Route, StatusCode> {
        let (method, uri) = request.split_once(' ').unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let asked = Asked {
            method: &method.parse().unwrap(),
            uri: &uri.parse().unwrap(),
            version: Version::HTTP_11,
            headers: &map,
        };
        admit(&asked, &HostNames::default(), is_open, |token| {
            token == b"right"
        })
        .map_err(|refusal| refusal.answer().status())
    }

    const HOST: (&str, &str) = ("host", "localhost");

    #[test]
    fn paths_and_methods() {
        assert_eq!(check("GET /", &[HOST], true), Ok(Route::Index));
        assert_eq!(check("HEAD /healthz", &[HOST], true), Ok(Route::Health));
        assert_eq!(
            check("GET /readyz?a=b", &[HOST], false),
            Ok(Route::Readiness)
        );
        for path in ["/metric", "/metrics/", "//", "/healthz/../metrics", "*"] {
            let request = format!("GET {path}");
            assert_eq!(
                check(&request, &[HOST], true),
                Err(StatusCode::NOT_FOUND),
                "{path}"
            );
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"] {
            let request = format!("{method} /metrics");
            assert_eq!(
                check(&request, &[HOST], true),
                Err(StatusCode::METHOD_NOT_ALLOWED)
            );
        }
    }

    #[test]
    fn metrics_need_a_token_where_the_listener_is_not_open() {
        assert_eq!(check("GET /metrics", &[HOST], true), Ok(Route::Metrics));
        let with = |value| check("GET /metrics", &[HOST, ("authorization", value)], false);
        assert_eq!(with("Bearer right"), Ok(Route::Metrics));
        assert_eq!(with("bearer  right "), Ok(Route::Metrics));
        for wrong in [
            "Bearer wrong",
            "Bearer",
            "Bearer ",
            "Basic right",
            "right",
            "",
        ] {
            assert_eq!(with(wrong), Err(StatusCode::UNAUTHORIZED), "{wrong:?}");
        }
        assert_eq!(
            check("GET /metrics", &[HOST], false),
            Err(StatusCode::UNAUTHORIZED)
        );
        let twice = ("authorization", "Bearer right");
        let twice = check("GET /metrics", &[HOST, twice, twice], false);
        assert_eq!(twice, Err(StatusCode::UNAUTHORIZED));
        assert_eq!(check("GET /healthz", &[HOST], false), Ok(Route::Health));
    }

    #[test]
    fn a_foreign_name_is_refused_wherever_it_stands() {
        let foreign = ("host", "attacker.example");
        let refused = Err(StatusCode::MISDIRECTED_REQUEST);
        for path in ["/", "/healthz", "/readyz", "/metrics", "/nowhere"] {
            assert_eq!(
                check(&format!("GET {path}"), &[foreign], true),
                refused,
                "{path}"
            );
        }
        assert_eq!(
            check("GET http://attacker.example/metrics", &[HOST], true),
            refused
        );
        assert_eq!(
            check("GET http://127.0.0.1/metrics", &[HOST], true),
            Ok(Route::Metrics)
        );
        assert_eq!(check("GET /", &[], true), Err(StatusCode::BAD_REQUEST));
        assert_eq!(
            check("GET /", &[HOST, HOST], true),
            Err(StatusCode::BAD_REQUEST)
        );
    }
}

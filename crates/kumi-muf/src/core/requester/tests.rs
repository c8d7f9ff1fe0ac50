//! How a call ends when claim and request do not fit together.

use super::*;
use crate::core::{Core, Target, Token};

/// A core with one call, and what it asks.
struct Calling {
    core: Core,
    sent: VecDeque<(Token, Vec<Command>)>,
    ended: Option<Result<Bytes, CallError>>,
    now: Time,
}

impl Calling {
    fn new(ttl_ms: u64) -> Self {
        Self::with(Settings::default(), ttl_ms)
    }

    fn with(settings: Settings, ttl_ms: u64) -> Self {
        let unit = UnitName::new("web").expect("a name");
        let rng = fastrand::Rng::with_seed(1);
        let mut calling = Self {
            core: Core::new(unit, "1", settings, rng),
            sent: VecDeque::new(),
            ended: None,
            now: Time(0),
        };
        calling.core.handle_subscribed(calling.now);
        let target = Target::new("a.b").expect("a target");
        let spec = CallSpec {
            id: RequestId::new(&target, false, "1", false),
            payload: Bytes::new(),
            ttl_ms,
            timeout_ms: 30_000,
            meta: None,
        };
        calling.core.call(spec, calling.now);
        calling.settle();
        let (token, _) = calling.sent.pop_front().expect("REQ is written");
        calling.reply(token, vec![Reply::Ok]);
        calling
    }

    /// The next look finds this claim, and REQ there or not. True if the call ended.
    fn look(&mut self, claim: Option<&'static str>, there: bool) -> bool {
        self.look_taking(1, claim, there)
    }

    /// The same, with a reply that takes this long.
    fn look_taking(&mut self, ms: u64, claim: Option<&'static str>, there: bool) -> bool {
        let token = loop {
            match self.sent.pop_front() {
                Some((token, commands)) if matches!(commands[0], Command::Read { .. }) => {
                    break token;
                }
                // REQ is written again.
                Some((token, _)) => self.reply(token, vec![Reply::Ok]),
                None => {
                    self.now = self.core.poll_timeout().expect("a call looks by the clock");
                    self.core.handle_timeout(self.now);
                    self.settle();
                }
            }
        };
        // The way there and back.
        self.now = self.now.plus(ms);
        let claim = Bytes::from(claim.unwrap_or_default());
        let replies = vec![
            Reply::Value(Bytes::new()),
            Reply::Value(Bytes::new()),
            Reply::Value(claim),
            Reply::Number(i64::from(there) << 2),
        ];
        self.reply(token, replies);
        self.ended.is_some()
    }

    fn reply(&mut self, token: Token, replies: Vec<Reply>) {
        self.core.handle_reply(token, Ok(replies), self.now);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Run(op) => self.sent.push_back((op.token, op.commands)),
                Output::Deliver { result, .. } => self.ended = Some(result),
                _ => {}
            }
        }
    }
}

#[test]
fn a_claim_made_after_the_request_ended_does_not_count() {
    let mut calling = Calling::new(10);
    // REQ's life is over. A backend was late: it claimed, found nothing to run, and lets its claim lapse.
    assert!(!calling.look(Some("back~1"), false));
    while !calling.look(None, false) {}
    assert_eq!(calling.ended, Some(Err(CallError::NoResponder)));
    assert!(calling.now < Time(3_000), "{:?}", calling.now);
}

#[test]
fn late_claims_one_after_the_other_do_not_count() {
    let mut calling = Calling::new(10);
    assert!(!calling.look(Some("one~1"), false));
    // Each is there for less than a lease.
    assert!(!calling.look(Some("two~2"), false));
    while !calling.look(None, false) {}
    assert_eq!(calling.ended, Some(Err(CallError::NoResponder)));
}

#[test]
fn a_claim_that_is_renewed_without_a_request_is_somebody() {
    let mut calling = Calling::new(10);
    // REQ ended between the claim and its first renewal; the handler works.
    while !calling.look(Some("back~1"), false) {}
    let claimant = "back".to_owned();
    assert_eq!(
        calling.ended,
        Some(Err(CallError::HandlerTimeout { claimant }))
    );
    assert!(calling.now >= Time(30_000), "{:?}", calling.now);
}

#[test]
fn a_claim_with_its_request_is_somebody_whatever_follows() {
    let mut calling = Calling::new(10_000);
    assert!(!calling.look(Some("back~1"), true));
    while !calling.look(None, false) {}
    assert!(matches!(
        calling.ended,
        Some(Err(CallError::HandlerTimeout { .. }))
    ));
}

#[test]
fn an_answer_is_read_with_one_command_and_an_empty_one_with_three() {
    let mut calling = Calling::new(10_000);
    let push = |calling: &mut Calling| {
        calling
            .core
            .handle_push("MUF/web/RES/a.b~1", "set", calling.now);
        calling.settle();
    };
    push(&mut calling);
    let (token, commands) = calling.sent.pop_front().expect("RES is read");
    assert_eq!(commands.len(), 1, "{commands:?}");
    // A second push while RES is read asks nothing.
    push(&mut calling);
    assert!(calling.sent.is_empty());
    calling.reply(token, vec![Reply::Value(Bytes::new())]);
    assert!(calling.ended.is_none());
    let (token, commands) = calling.sent.pop_front().expect("RES is looked for");
    assert_eq!(commands.len(), 2, "{commands:?}");
    calling.reply(token, vec![Reply::Value(Bytes::new()), Reply::Number(1)]);
    assert_eq!(calling.ended, Some(Ok(Bytes::new())));

    let mut calling = Calling::new(10_000);
    push(&mut calling);
    let (token, _) = calling.sent.pop_front().expect("RES is read");
    calling.reply(token, vec![Reply::Value("x".into())]);
    assert_eq!(calling.ended, Some(Ok("x".into())));
}

#[test]
fn a_request_that_stays_unclaimed_is_set_again_and_again_ever_more_rarely() {
    let mut calling = Calling::new(20_000);
    let mut at = Vec::new();
    while calling.now.0 < 19_000 {
        assert!(!calling.look(None, true));
        for (token, commands) in std::mem::take(&mut calling.sent) {
            assert!(
                matches!(commands[..], [Command::SetAgain { .. }]),
                "{commands:?}"
            );
            at.push(calling.now.0 / 1_000);
            calling.reply(token, vec![Reply::Ok]);
        }
    }
    assert_eq!(at, [1, 3, 7, 15]);
}

#[test]
fn a_slow_reply_to_a_look_does_not_cost_the_next_event() {
    let mut calling = Calling::new(10_000);
    let mut events = 0;
    for ms in [30, 1, 30, 1] {
        assert!(!calling.look_taking(ms, None, true));
        events += calling.sent.len();
        for (token, _) in std::mem::take(&mut calling.sent) {
            calling.reply(token, vec![Reply::Ok]);
        }
    }
    // After 1, 3 and 7 s, whatever the looks took.
    assert_eq!((events, calling.now), (3, Time(7_001)));
}

#[test]
fn a_request_whose_claim_lapsed_is_set_again_with_a_mark_that_it_was_tried() {
    let mut calling = Calling::new(20_000);
    assert!(!calling.look(Some("back~1"), true));
    assert!(calling.sent.is_empty());
    assert!(!calling.look(None, true));
    let (_, commands) = calling.sent.pop_front().expect("it is set again");
    let key = "MUF/web/KEEP/a.b~1.tries";
    let is_mark = |command: &Command| matches!(command, Command::Set { key: k, only_new: true, .. } if k == key);
    assert!(is_mark(&commands[0]), "{commands:?}");
    assert!(matches!(commands[1], Command::SetAgain { .. }));
}

#[test]
fn a_request_that_is_gone_is_written_again_with_a_mark_that_it_may_have_run() {
    let mut calling = Calling::new(20_000);
    assert!(!calling.look(None, false));
    let (_, commands) = calling.sent.pop_front().expect("it is written again");
    let key = "MUF/web/KEEP/a.b~1.tries";
    let is_mark = |command: &Command| matches!(command, Command::Set { key: k, only_new: true, .. } if k == key);
    assert!(is_mark(&commands[0]), "{commands:?}");
    let req = "MUF/web/REQ/a.b~1";
    let is_request = |command: &Command| matches!(command, Command::Set { key: k, only_new: true, .. } if k == req);
    assert!(is_request(&commands[1]), "{commands:?}");
}

/// The server's clock and the requester's differ by the way of REQ to the server: REQ may be gone a little before its end is
/// looked for. Watchers would see a request after the end of the same request.
#[test]
fn a_request_that_is_about_to_end_is_not_written_again() {
    let mut calling = Calling::new(3_005);
    for there in [true, false] {
        assert!(!calling.look(None, there));
    }
    assert_eq!(calling.now, Time(3_001));
    assert!(calling.sent.is_empty(), "{:?}", calling.sent);
    assert!(calling.look(None, false));
    assert_eq!(calling.ended, Some(Err(CallError::NoResponder)));
}

/// For which everything over four bytes is large.
fn few() -> Settings {
    Settings {
        inline_limit_bytes: 4,
        lasting_answer_bytes: 8,
        ..Settings::default()
    }
}

#[test]
fn a_large_answer_is_read_once_however_often_it_is_looked_for_and_its_life_is_cut() {
    let mut calling = Calling::with(few(), 10_000);
    let res = "MUF/web/RES/a.b~1".to_owned();
    let push = |calling: &mut Calling| {
        calling.core.handle_push(&res, "set", calling.now);
        calling.settle();
    };
    push(&mut calling);
    let (token, commands) = calling.sent.pop_front().expect("its beginning is read");
    let read = |limit_bytes| Command::Read {
        key: res.clone(),
        limit_bytes,
    };
    assert_eq!(commands, [read(4)]);
    calling.reply(token, vec![Reply::Value("a lar".into())]);
    let (token, commands) = calling.sent.pop_front().expect("all of it is read");
    assert_eq!(commands, [read(Settings::default().payload_limit_bytes)]);
    push(&mut calling);
    while calling.now < Time(20_000) {
        calling.now = calling.core.poll_timeout().expect("a timer");
        calling.core.handle_timeout(calling.now);
        calling.settle();
        assert!(calling.sent.is_empty(), "{:?}", calling.sent);
    }
    calling.reply(token, vec![Reply::Value("a large answer".into())]);
    assert_eq!(calling.ended, Some(Ok("a large answer".into())));
    let (_, commands) = calling.sent.pop_front().expect("its life is cut");
    let ttl_ms = 2 * Settings::default().lease_ms();
    let request = Command::Expire {
        key: "MUF/web/REQ/a.b~1".into(),
        ttl_ms: Settings::default().req_answered_ms(),
    };
    let answer = Command::Expire { key: res, ttl_ms };
    assert_eq!(commands, [request, answer]);
}

#[test]
fn a_large_answer_whose_read_was_lost_is_read_again() {
    let mut calling = Calling::with(few(), 10_000);
    let res = "MUF/web/RES/a.b~1";
    calling.core.handle_push(res, "set", calling.now);
    calling.settle();
    let (token, _) = calling.sent.pop_front().expect("its beginning is read");
    calling.reply(token, vec![Reply::Value("a lar".into())]);
    let (token, _) = calling.sent.pop_front().expect("all of it is read");
    let lost = Err(crate::core::Lost);
    calling.core.handle_reply(token, lost, calling.now);
    calling.settle();
    calling.now = calling.core.poll_timeout().expect("another look");
    calling.core.handle_timeout(calling.now);
    calling.settle();
    let (token, _) = calling.sent.pop_front().expect("a look");
    let empty = || Reply::Value(Bytes::new());
    let found = Reply::Value("a lar".into());
    calling.reply(token, vec![found, empty(), empty(), Reply::Number(1)]);
    let (token, commands) = calling.sent.pop_front().expect("all of it is read");
    assert_eq!(commands.len(), 1);
    calling.reply(token, vec![Reply::Value("a large answer".into())]);
    assert_eq!(calling.ended, Some(Ok("a large answer".into())));
}

#[test]
fn large_requests_are_sent_a_few_at_a_time_and_not_looked_for_before() {
    let mut calling = Calling::with(few(), 10_000);
    let target = Target::new("a.b").expect("a target");
    for number in 2..=4 {
        let spec = CallSpec {
            id: RequestId::new(&target, false, &number.to_string(), false),
            payload: "large".into(),
            ttl_ms: 10_000,
            timeout_ms: 30_000,
            meta: None,
        };
        calling.core.call(spec, calling.now);
    }
    calling.settle();
    let written = |calling: &mut Calling| {
        let is_write = |(token, _): &(Token, _)| matches!(token.0, Purpose::CallWrite { .. });
        let at = calling.sent.iter().position(is_write)?;
        calling.sent.remove(at)
    };
    let first = [written(&mut calling), written(&mut calling)].map(|it| it.expect("two").0);
    assert!(written(&mut calling).is_none(), "the third waits");
    while calling.now < Time(5_000) {
        calling.now = calling.core.poll_timeout().expect("a timer");
        calling.core.handle_timeout(calling.now);
        calling.settle();
    }
    let names = |(_, commands): &(Token, Vec<Command>)| format!("{commands:?}").contains("a.b~4");
    assert!(!calling.sent.iter().any(names), "{:?}", calling.sent);
    for token in first {
        calling.reply(token, vec![Reply::Ok]);
    }
    let (_, commands) = written(&mut calling).expect("the third");
    assert!(matches!(
        &commands[..],
        [Command::Set {
            ttl_ms: Some(10_000),
            ..
        }]
    ));
}

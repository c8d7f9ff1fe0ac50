//! Large requests and answers: what is read and written, when, and what is renewed meanwhile.

use super::*;

const ANSWER: &str = "a large answer";

impl Serving {
    /// A core for which all payloads of these tests are large.
    fn of_large() -> Self {
        let settings = Settings {
            inline_limit_bytes: 4,
            ..Settings::default()
        };
        Self::with(settings, "*")
    }

    /// Requests with these numbers come, and are claimed.
    fn win(&mut self, numbers: std::ops::RangeInclusive<u32>) {
        for number in numbers {
            self.push(&format!("a.b~{number}"));
            let at = self.sent.len() - 1;
            self.sent.swap(0, at);
            self.claim("back~1", None, None);
        }
    }

    /// The next pipeline for this purpose.
    fn take(&mut self, is_it: impl Fn(&Purpose) -> bool) -> Option<(Token, Vec<Command>)> {
        let at = self.sent.iter().position(|(token, _)| is_it(&token.0))?;
        self.sent.remove(at)
    }

    fn fetch(&mut self) -> Option<(Token, Vec<Command>)> {
        self.take(|purpose| matches!(purpose, Purpose::Fetch { .. }))
    }

    fn reply(&mut self, token: Token, replies: Vec<Reply>) {
        self.core.handle_reply(token, Ok(replies), self.now);
        self.settle();
    }

    /// Lets the third of a lease pass after which a claim is renewed.
    fn pass(&mut self) {
        self.now = self.now.plus(Settings::default().renew_ms());
        self.core.handle_timeout(self.now);
        self.settle();
    }

    /// Replies to a renewal that the claim is ours.
    fn renew(&mut self) -> Vec<Command> {
        let renewal = self.take(|purpose| matches!(purpose, Purpose::Renew { .. }));
        let (token, commands) = renewal.expect("a renewal");
        let ours = Reply::Value("back~1".into());
        self.reply(token, vec![Reply::Number(1), ours, Reply::Number(1)]);
        commands
    }
}

fn expires(commands: &[Command], ending: &str) -> bool {
    let is_it =
        |command: &Command| matches!(command, Command::Expire { key, .. } if key.ends_with(ending));
    commands.iter().any(is_it)
}

#[test]
fn a_large_request_is_read_by_the_backend_that_has_the_claim_and_by_no_other() {
    let mut serving = Serving::of_large();
    serving.push("a.b~1");
    let (_, claim) = &serving.sent[0];
    let is_beginning = |it: &Command| matches!(it, Command::Read { limit_bytes: 4, .. });
    assert!(claim.iter().any(is_beginning), "{claim:?}");
    serving.claim("other~1", None, None);
    assert!(serving.sent.is_empty(), "{:?}", serving.sent);

    serving.win(2..=2);
    assert!(serving.started.is_empty());
    let (token, commands) = serving.fetch().expect("it is read");
    let limit_bytes = Settings::default().payload_limit_bytes;
    let key = "MUF/me/REQ/a.b~2".to_owned();
    assert_eq!(commands, [Command::Read { key, limit_bytes }]);
    // It takes long. Claim and request are kept alive, and it is not read again.
    for _ in 0..20 {
        serving.pass();
        let renewal = serving.renew();
        assert!(expires(&renewal, ".claim") && expires(&renewal, "REQ/a.b~2"));
        assert!(serving.fetch().is_none());
    }
    serving.reply(token, vec![Reply::Value("the whole payload".into())]);
    assert_eq!(serving.payloads, ["the whole payload"]);
    assert_eq!(serving.core.backend_counters().lapsed, 0);
}

#[test]
fn a_read_that_was_lost_is_repeated() {
    let mut serving = Serving::of_large();
    serving.win(1..=1);
    let (token, _) = serving.fetch().expect("it is read");
    serving
        .core
        .handle_reply(token, Err(crate::core::Lost), serving.now);
    serving.settle();
    assert!(serving.fetch().is_none(), "not at once");
    serving.pass();
    let (token, _) = serving.fetch().expect("it is read again");
    serving.reply(token, vec![Reply::Value("payload".into())]);
    assert_eq!(serving.started.len(), 1);
}

#[test]
fn a_claim_that_lapsed_while_a_request_was_read_is_tried_again() {
    let mut serving = Serving::of_large();
    serving.win(1..=1);
    let (token, _) = serving.fetch().expect("it is read");
    serving.now = serving.now.plus(10_000);
    serving.reply(token, vec![Reply::Value("payload".into())]);
    assert!(serving.started.is_empty(), "the claim may be another's");
    serving.claim("back~1", None, None);
    assert_eq!(serving.payloads, ["payload"]);
    // Another backend got it.
    let mut serving = Serving::of_large();
    serving.win(1..=1);
    let (token, _) = serving.fetch().expect("it is read");
    serving.now = serving.now.plus(10_000);
    serving.reply(token, vec![Reply::Value("payload".into())]);
    serving.claim("other~1", None, None);
    assert!(serving.started.is_empty());
}

#[test]
fn a_few_large_requests_are_read_at_a_time() {
    let mut serving = Serving::of_large();
    serving.win(1..=4);
    let first = [serving.fetch(), serving.fetch()].map(|it| it.expect("a read").0);
    assert!(serving.fetch().is_none(), "the others wait");
    for token in first {
        serving.reply(token, vec![Reply::Value("payload".into())]);
    }
    assert_eq!(serving.started.len(), 2);
    assert!(serving.fetch().is_some() && serving.fetch().is_some());
}

#[test]
fn a_large_answer_on_its_way_keeps_its_claim_and_not_its_request() {
    let mut serving = Serving::of_large();
    serving.win(1..=1);
    let (token, _) = serving.fetch().expect("it is read");
    serving.reply(token, vec![Reply::Value("payload".into())]);
    serving.finish(Outcome::Good(ANSWER.into()));
    let is_answer = |purpose: &Purpose| matches!(purpose, Purpose::Answer { bulk: true, .. });
    let (token, commands) = serving.take(is_answer).expect("an answer");
    assert!(writes(&commands, "MUF/me/RES/a.b~1"));
    for _ in 0..5 {
        serving.pass();
        let (_, commands) = serving.sent.pop_front().expect("the claim is kept");
        let key = "MUF/me/KEEP/a.b~1.claim".to_owned();
        let ttl_ms = Settings::default().lease_ms();
        assert_eq!(commands, [Command::Expire { key, ttl_ms }]);
    }
    serving.reply(token, vec![Reply::Ok, Reply::Number(1)]);
    assert_eq!(serving.core.backend_counters().answered, 1);
    serving.pass();
    assert!(serving.sent.is_empty(), "{:?}", serving.sent);
}

#[test]
fn large_answers_that_wait_hold_their_places_and_are_renewed() {
    let mut serving = Serving::of_large();
    for number in 1..=4 {
        serving.win(number..=number);
        let (token, _) = serving.fetch().expect("it is read");
        serving.reply(token, vec![Reply::Value("payload".into())]);
        serving.finish(Outcome::Good(ANSWER.into()));
    }
    let is_answer = |purpose: &Purpose| matches!(purpose, Purpose::Answer { .. });
    let first = [serving.take(is_answer), serving.take(is_answer)].map(|it| it.expect("two").0);
    assert!(serving.take(is_answer).is_none(), "the others wait");
    // All four places are taken.
    serving.push("a.b~5");
    assert!(serving.sent.is_empty(), "{:?}", serving.sent);
    serving.pass();
    let renewals = [serving.renew(), serving.renew()];
    assert!(renewals.iter().all(|it| expires(it, ".claim")));
    for token in first {
        serving.reply(token, vec![Reply::Ok, Reply::Number(1)]);
    }
    assert!(serving.take(is_answer).is_some() && serving.take(is_answer).is_some());
    let is_claim = |purpose: &Purpose| matches!(purpose, Purpose::Claim { .. });
    assert!(serving.take(is_claim).is_some(), "there is a place");
}

use super::*;
use alloc::string::ToString;
use alloc::vec;
use proptest::prelude::*;

fn a() -> Authority {
    Authority::new("a:1").expect("valid")
}

fn ms(ms: u64) -> TimerInstant {
    TimerInstant::from_millis(ms)
}

fn beating(interval_ms: u64, count: u64) -> (PhiFailureDetector, TimerInstant) {
    let mut detector = PhiFailureDetector::new(PhiConfig::default());
    detector.watch(&a(), ms(0));
    for beat in 1..=count {
        detector.record_heartbeat(&a(), ms(beat * interval_ms));
    }
    (detector, ms(count * interval_ms))
}

#[test]
fn the_deadline_is_the_moment_at_which_phi_reaches_the_threshold() {
    let (mut detector, _) = beating(500, 200);
    let deadline = detector.next_deadline().expect("watched");
    let before = deadline.saturating_sub(Duration::from_millis(1));
    assert!(detector.phi(&a(), before).expect("watched") < 8.0);
    assert!(detector.phi(&a(), deadline).expect("watched") >= 8.0);
    assert_eq!(detector.poll(before), vec![]);
    assert_eq!(detector.poll(deadline), vec![DetectorEffect::Suspect(a())]);
    assert_eq!(detector.poll(deadline), vec![], "told once");
}

#[test]
fn a_regular_sender_is_suspected_after_mean_pause_and_a_few_deviations() {
    let (detector, last) = beating(500, 200);
    let silence = detector
        .next_deadline()
        .expect("watched")
        .saturating_since(last);
    assert!((2900..3300).contains(&silence.as_millis()), "{silence:?}");
}

#[test]
fn a_sender_that_is_often_late_gets_more_time() {
    let mut detector = PhiFailureDetector::new(PhiConfig::default());
    detector.watch(&a(), ms(0));
    let mut now = 0;
    for beat in 0..100 {
        now += if beat % 5 == 0 { 4000 } else { 500 };
        detector.record_heartbeat(&a(), ms(now));
    }
    let silence = detector
        .next_deadline()
        .expect("watched")
        .saturating_since(ms(now));
    assert!(silence > Duration::from_secs(8), "{silence:?}");
}

#[test]
fn being_heard_after_suspicion_is_reported_once() {
    let (mut detector, last) = beating(500, 20);
    let late = last + Duration::from_secs(30);
    detector.poll(late);
    assert_eq!(
        detector.touch(&a(), late),
        Some(DetectorEffect::Reachable(a()))
    );
    assert_eq!(detector.record_heartbeat(&a(), late), None);
}

#[test]
fn somebody_never_heard_becomes_suspicious_after_the_first_estimate() {
    let (mut detector, _) = beating(500, 0);
    assert_eq!(detector.poll(ms(2000)), vec![]);
    assert_eq!(detector.poll(ms(4000)).len(), 1);
    let stranger = Authority::new("b:1").expect("valid");
    assert_eq!(detector.phi(&stranger, ms(1)), None);
    assert_eq!(detector.record_heartbeat(&stranger, ms(1)), None);
}

#[test]
fn a_health_multiplier_moves_the_deadline_and_back() {
    let (mut detector, _) = beating(500, 20);
    let before = detector.next_deadline().expect("watched");
    detector.set_health_multiplier(3);
    assert_eq!(
        detector.next_deadline(),
        Some(before + Duration::from_secs(4))
    );
    detector.set_health_multiplier(1);
    assert_eq!(detector.next_deadline(), Some(before));
}

#[test]
fn an_absence_that_a_probe_has_ended_does_not_blind_the_detector() {
    let (mut detector, last) = beating(500, 20);
    let silence = |detector: &PhiFailureDetector, now| {
        let deadline = detector.next_deadline().expect("watched");
        deadline.saturating_since(now)
    };
    let before = silence(&detector, last);
    let back = last + Duration::from_secs(60);
    detector.poll(back);
    detector.touch(&a(), back);
    detector.record_heartbeat(&a(), back);
    let after = silence(&detector, back);
    assert!(
        after < before + Duration::from_secs(5),
        "{before:?} became {after:?}"
    );
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let config = PhiConfig::new();
    assert_eq!(config.check(), Ok(()));
    for (config, expected) in [
        (config.threshold(0.0), "threshold"),
        (config.threshold(-1.0), "threshold"),
        (config.threshold(f64::NAN), "threshold"),
        (config.threshold(1000.1), "threshold"),
        (config.first_estimate(Duration::ZERO), "first estimate"),
        (config.min_deviation(Duration::MAX), "365 days"),
        (config.acceptable_pause(Duration::MAX), "365 days"),
    ] {
        let error = config.check().expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn phi_is_finite_and_never_falls_while_silence_lasts(
        beats in proptest::collection::vec(any::<u64>(), 0..150),
        times in proptest::collection::vec(any::<u64>(), 2..20),
        threshold in 0.0..1e9f64,
        durations in any::<[Duration; 3]>(),
        usual in any::<bool>(),
    ) {
        let [first_estimate, min_deviation, acceptable_pause] = durations;
        let mut config = PhiConfig::new().threshold(threshold);
        if !usual {
            config = config
                .first_estimate(first_estimate)
                .min_deviation(min_deviation)
                .acceptable_pause(acceptable_pause);
        }
        let mut detector = PhiFailureDetector::new(config);
        detector.watch(&a(), ms(0));
        for beat in beats {
            detector.record_heartbeat(&a(), TimerInstant::from_micros(beat));
        }
        let mut times = times;
        times.sort_unstable();
        let mut last = 0.0;
        for time in times {
            let phi = detector.phi(&a(), TimerInstant::from_micros(time)).expect("watched");
            prop_assert!(phi.is_finite() && phi >= last, "{phi} after {last}");
            last = phi;
        }
    }
}

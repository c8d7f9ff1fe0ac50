use super::*;
use crate::core::base::identity::Authority;
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::status::NodeStatus;
use crate::core::state::record::{Accusation, Accusations};
use alloc::vec;
use proptest::collection::vec;
use proptest::prelude::*;

fn any_authority() -> impl Strategy<Value = Authority> {
    "[!-~]{1,40}".prop_map(|text| Authority::new(&text).expect("visible"))
}

prop_compose! {
    fn any_identity()(authority in any_authority(), uid in any::<u64>()) -> NodeIdentity {
        NodeIdentity { authority, uid: NodeUid::from_raw(uid) }
    }
}

prop_compose! {
    fn any_record()(
        identity in any_identity(),
        incarnation in any::<u64>(),
        status in 0..6u8,
        stamp in any::<u64>(),
        metadata in vec(any::<u8>(), 0..513),
        accusers in proptest::collection::btree_map(any::<u64>(), 1..=u16::MAX, 0..25),
    ) -> MemberRecord {
        let status = NodeStatus::from_code(status).expect("below 6");
        let accusers = accusers.into_iter().filter(|_| status == NodeStatus::Suspect);
        let accusers = accusers.map(|(accuser, round)| Accusation { accuser: NodeUid::from_raw(accuser), round });
        let metadata = MemberMetadata::from_bytes(&metadata).expect("at most 512");
        MemberRecord {
            authority: identity.authority,
            uid: identity.uid,
            incarnation,
            status,
            accusations: Accusations::from_sorted(accusers.collect()),
            metadata_stamp: stamp,
            metadata: if stamp == 0 { MemberMetadata::EMPTY } else { metadata },
        }
    }
}

prop_compose! {
    fn any_delta()(
        from_version in any::<u64>(),
        to_version in any::<u64>(),
        records in vec(any_record(), 0..5),
        quarantines in vec((any_authority(), any::<u64>(), any::<(u64, u64)>(), ".{0,50}"), 0..3),
    ) -> MembershipDelta {
        let quarantines = quarantines.into_iter().map(|(authority, version, (remaining_ms, remember_ms), text)| QuarantineRumor {
            authority, version, remaining_ms, remember_ms, text: ReasonText::escaped(&text),
        });
        MembershipDelta { from_version, to_version, records, quarantines: quarantines.collect() }
    }
}

fn any_seen() -> impl Strategy<Value = Seen> {
    (any::<u64>(), any::<u64>()).prop_map(|(version, digest)| Seen { version, digest })
}

fn any_message() -> impl Strategy<Value = Message> {
    let number = any::<u64>;
    prop_oneof![
        (number(), number()).prop_map(|(sequence, incarnation)| Message::Heartbeat {
            sequence,
            incarnation
        }),
        (number(), any::<Option<u64>>(), any::<bool>()).prop_map(
            |(sequence, suspected, not_my_monitor)| {
                Message::HeartbeatAck {
                    sequence,
                    suspected,
                    not_my_monitor,
                }
            }
        ),
        number().prop_map(|nonce| Message::Probe { nonce }),
        (number(), number())
            .prop_map(|(nonce, incarnation)| Message::ProbeAck { nonce, incarnation }),
        (number(), any_identity())
            .prop_map(|(nonce, target)| Message::ProbeRequest { nonce, target }),
        (number(), any_identity(), number()).prop_map(|(nonce, target, incarnation)| {
            Message::ProbeReply {
                nonce,
                target,
                incarnation,
            }
        }),
        (any_seen(), any_delta()).prop_map(|(seen, delta)| Message::Push { seen, delta }),
        (any_seen(), any::<bool>(), number(), number(), any::<u32>()).prop_map(
            |(seen, observer, bookmark, quarantines, bucket)| Message::PullRequest {
                seen,
                observer,
                bookmark,
                quarantines,
                buckets: Box::new([bucket; BUCKETS]),
            }
        ),
        (any_seen(), number(), any_delta()).prop_map(|(seen, wanted, delta)| Message::PullReply {
            seen,
            wanted,
            delta
        }),
        any_record().prop_map(|record| Message::Join { record }),
        (any_seen(), any_delta()).prop_map(|(seen, delta)| Message::Welcome { seen, delta }),
        number().prop_map(|uid| Message::JoinRefused {
            reason: JoinRefusal::Superseded {
                current: NodeUid::from_raw(uid)
            }
        }),
        (number(), number(), ".{0,50}").prop_map(|(version, remaining_ms, text)| {
            Message::JoinRefused {
                reason: JoinRefusal::Quarantined {
                    version,
                    remaining_ms,
                    text: ReasonText::escaped(&text),
                },
            }
        }),
        Just(Message::JoinRefused {
            reason: JoinRefusal::Full
        }),
        any_identity().prop_map(|holder| Message::JoinRefused {
            reason: JoinRefusal::NameTaken { holder }
        }),
        (any_record(), any_delta()).prop_map(|(record, delta)| {
            let quarantine = delta.quarantines.into_iter().next();
            Message::Verdict { record, quarantine }
        }),
    ]
}

prop_compose! {
    fn any_envelope()(cluster in "[!-~]{1,64}", sender in any_identity(), message in any_message()) -> Envelope {
        Envelope { cluster, versions: (MIN_VERSION, MAX_VERSION), sender, message }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(envelope in any_envelope()) {
        let bytes = envelope.encode();
        prop_assert_eq!(Envelope::decode(&bytes), Ok(envelope));
    }

    #[test]
    fn a_cut_envelope_is_refused_wherever_it_is_cut(envelope in any_envelope(), at in any::<prop::sample::Index>()) {
        let bytes = envelope.encode();
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert!(Envelope::decode(cut).is_err());
    }

    #[test]
    fn bytes_after_the_end_are_refused(envelope in any_envelope()) {
        let mut bytes = envelope.encode();
        bytes.push(0);
        prop_assert_eq!(Envelope::decode(&bytes), Err(EnvelopeError::TrailingBytes(1)));
    }

    #[test]
    fn a_flipped_byte_is_refused_or_read_as_something_that_is_written_the_same(
        envelope in any_envelope(),
        at in any::<prop::sample::Index>(),
        flip in 1..=255u8,
    ) {
        let mut bytes = envelope.encode();
        let index = at.index(bytes.len());
        bytes[index] ^= flip;
        if let Ok(read) = Envelope::decode(&bytes) {
            prop_assert_eq!(read.encode(), bytes);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        let _ = Envelope::decode(&bytes);
    }

    #[test]
    fn a_record_never_takes_more_room_than_reckoned(record in any_record()) {
        let size = |records| {
            let delta = MembershipDelta { records, ..MembershipDelta::default() };
            envelope(Message::Push { seen: Seen::default(), delta }).encode().len()
        };
        let reckoned = encoded_len(&record, true);
        prop_assert!(size(alloc::vec![record]) <= size(Vec::new()) + reckoned);
    }
}

proptest! {
    #[test]
    fn an_order_never_takes_more_room_than_reckoned(delta in any_delta()) {
        let size = |quarantines| {
            let delta = MembershipDelta { quarantines, ..MembershipDelta::default() };
            envelope(Message::Push { seen: Seen::default(), delta }).encode().len()
        };
        let reckoned: usize = delta.quarantines.iter().map(encoded_rumor_len).sum();
        prop_assert!(size(delta.quarantines) <= size(Vec::new()) + reckoned);
    }
}

fn envelope(message: Message) -> Envelope {
    Envelope {
        cluster: "c".into(),
        versions: (1, 1),
        sender: NodeIdentity {
            authority: Authority::new("10.0.0.1:7000").expect("valid"),
            uid: NodeUid::new(1_700_000_000_000, 5),
        },
        message,
    }
}

#[test]
fn a_heartbeat_is_small() {
    let heartbeat = Message::Heartbeat {
        sequence: 100_000,
        incarnation: 3,
    };
    assert_eq!(envelope(heartbeat).encode().len(), 33);
}

#[test]
fn a_peer_without_a_common_version_is_told_apart_from_nonsense() {
    let mut bytes = envelope(Message::Probe { nonce: 1 }).encode();
    bytes[1..3].copy_from_slice(&[2, 9]);
    assert_eq!(
        Envelope::decode(&bytes),
        Err(EnvelopeError::Version { min: 2, max: 9 })
    );
    bytes[1..3].copy_from_slice(&[0, 9]);
    assert!(Envelope::decode(&bytes).is_ok(), "version 1 is common");
    bytes[1..3].copy_from_slice(&[3, 2]);
    assert_eq!(
        Envelope::decode(&bytes),
        Err(EnvelopeError::BadField("the version range"))
    );
    bytes[0] = 0;
    assert_eq!(Envelope::decode(&bytes), Err(EnvelopeError::BadMagic));
}

#[test]
fn a_message_in_a_later_version_is_refused_though_its_sender_speaks_ours_too() {
    let mut bytes = envelope(Message::Probe { nonce: 1 }).encode();
    bytes[1..4].copy_from_slice(&[1, 2, 2]);
    assert_eq!(
        Envelope::decode(&bytes),
        Err(EnvelopeError::Version { min: 1, max: 2 })
    );
    bytes[3] = 1;
    assert!(Envelope::decode(&bytes).is_ok());
    bytes[3] = 3;
    assert_eq!(
        Envelope::decode(&bytes),
        Err(EnvelopeError::BadField("the version of the message"))
    );
}

#[test]
fn a_false_count_is_refused_before_anything_is_allocated_for_it() {
    let delta = MembershipDelta::default();
    let mut bytes = envelope(Message::Push {
        seen: Seen::default(),
        delta,
    })
    .encode();
    let count = bytes.len() - 2;
    bytes.splice(count..=count, [0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(
        Envelope::decode(&bytes),
        Err(EnvelopeError::TooLarge("the number of records"))
    );
}

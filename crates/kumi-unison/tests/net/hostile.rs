//! Peers that send what they should not, while others are served.
//!
//! The server runs in a process of its own, this same test binary started again, so that the memory it takes can be
//! read from outside and belongs to this test alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kumi_unison::wire::{
    Codec, ContentType, HEADER_LEN, PacketFlags, PacketHeader, PacketType, encode_frame,
};
use kumi_unison::{ClientTls, ProtocolClient, ProtocolMessage, ServerLimits, UnisonChannel};
use serde_json::json;

use crate::lab::{Lab, options, within};
use crate::raw::RawClient;

const SERVER_VARIABLE: &str = "KUMI_UNISON_HOSTILE_SERVER";
const MIB: u64 = 1024 * 1024;

/// Not a test by itself: serves when it is started for that, until its standard input ends.
#[tokio::test]
async fn serves_hostile_peers_when_started_for_it() {
    if std::env::var_os(SERVER_VARIABLE).is_none() {
        return;
    }
    let limits = ServerLimits::new()
        .first_message_timeout(Duration::from_millis(500))
        .max_handshakes(32)
        .handshake_timeout(Duration::from_secs(2));
    let lab = Lab::with(limits, |_| {});
    println!("\nlistening {} {}", lab.address(), lab.tls.fingerprint());
    std::io::stdout().flush().unwrap();
    tokio::task::spawn_blocking(|| std::io::stdin().lines().count())
        .await
        .unwrap();
}

/// A server process.
pub(crate) struct Victim {
    process: Child,
    pub(crate) address: SocketAddr,
    tls: ClientTls,
}

impl Victim {
    pub(crate) fn start() -> Victim {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "hostile::serves_hostile_peers_when_started_for_it",
            ])
            .args(["--nocapture", "--test-threads", "1"])
            .env(SERVER_VARIABLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let line = output
            .lines()
            .map(|line| line.unwrap())
            .find(|line| line.starts_with("listening "))
            .expect("the server says where it listens");
        let words: Vec<&str> = line.split(' ').collect();
        Victim {
            process,
            address: words[1].parse().unwrap(),
            tls: ClientTls::pinned([words[2].parse().unwrap()]).unwrap(),
        }
    }

    /// A client that behaves, and its channel.
    pub(crate) async fn neighbour(&self) -> (ProtocolClient, UnisonChannel) {
        let address = self.address.to_string();
        let connecting = ProtocolClient::connect_with(&address, self.tls.clone(), options());
        let client = within(connecting).await.unwrap();
        let channel = within(client.open_channel("echo")).await.unwrap();
        (client, channel)
    }

    /// The most memory the server ever had.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line
            .and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse().ok())
            .unwrap();
        kib * 1024
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().unwrap();
    }
}

/// The first message of a channel, as a well-behaved client sends it.
fn opening() -> Vec<u8> {
    let message = ProtocolMessage::request(1, "__channel:echo", ContentType::Json, &b"{}"[..]);
    encode_frame(PacketType::Handshake, &message, &Codec::new()).unwrap()
}

/// Writes the checksum that fits the rest of a frame.
fn seal(frame: &mut [u8]) {
    let packet = &mut frame[4..];
    packet[12..16].fill(0);
    let crc = crc32fast::hash(packet);
    packet[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// A frame around a payload, with whatever lengths the header is to claim.
fn frame(flags: PacketFlags, payload_len: u32, compressed_len: u32, payload: &[u8]) -> Vec<u8> {
    let header = PacketHeader {
        packet_type: PacketType::Data,
        flags,
        payload_len,
        compressed_len,
        crc32: 0,
        sequence: 0,
        timestamp_ns: 0,
        stream_id: 0,
        message_id: 1,
        response_to: 0,
    };
    let mut frame = u32::try_from(HEADER_LEN + payload.len())
        .unwrap()
        .to_be_bytes()
        .to_vec();
    frame.extend(header.to_bytes());
    frame.extend(payload);
    seal(&mut frame);
    frame
}

/// Whether a stream's outcome is anything but agreement.
fn is_refusal(answer: Option<Vec<u8>>) -> bool {
    // A whole answer would be a frame with the handshake's acknowledgement.
    answer.is_none_or(|bytes| {
        bytes.len() < 4 + HEADER_LEN || bytes[4 + 1] != PacketType::Handshake as u8
    })
}

#[tokio::test]
async fn the_opening_itself_is_agreed_to() {
    let victim = Victim::start();
    let client = RawClient::connect(victim.address).await;
    assert!(!is_refusal(client.exchange(&opening()).await));
}

#[tokio::test]
async fn a_bit_flipped_at_any_position_is_noticed() {
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let good = opening();
    let hostile = RawClient::connect(victim.address).await;
    for at in 0..good.len() {
        let attempts = (0..8).map(|bit| {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let hostile = &hostile;
            async move { is_refusal(hostile.exchange(&bad).await) }
        });
        let refused = within(futures_util::future::join_all(attempts)).await;
        assert_eq!(refused, [true; 8], "byte {at}");
        if at % 16 == 0 {
            within(channel.request("echo", json!(at))).await.unwrap();
        }
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_packet_cut_off_anywhere_is_noticed() {
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let good = opening();
    let hostile = RawClient::connect(victim.address).await;
    for chunk in (0..good.len()).collect::<Vec<_>>().chunks(32) {
        let attempts = chunk.iter().map(|&end| hostile.exchange(&good[..end]));
        for answer in within(futures_util::future::join_all(attempts)).await {
            assert!(is_refusal(answer));
        }
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
}

#[tokio::test]
async fn lengths_that_do_not_fit_are_refused() {
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let hostile = RawClient::connect(victim.address).await;
    let good = opening();
    let length = u32::from_be_bytes(good[..4].try_into().unwrap());
    for claimed in [
        0,
        1,
        55,
        56,
        length - 1,
        length + 1,
        8 << 20,
        (8 << 20) + 1,
        u32::MAX,
    ] {
        let mut bad = good.clone();
        bad[..4].copy_from_slice(&claimed.to_be_bytes());
        assert!(is_refusal(hostile.exchange(&bad).await), "{claimed}");
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
}

#[tokio::test]
async fn garbage_in_a_sound_packet_is_refused() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let hostile = RawClient::connect(victim.address).await;
    for _ in 0..200 {
        let mut payload = vec![0; random.usize(1..400)];
        random.fill(&mut payload);
        let length = payload.len() as u32;
        let bad = frame(PacketFlags::NONE, length, 0, &payload);
        assert!(is_refusal(hostile.exchange(&bad).await));
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_compressed_bomb_bursts_small() {
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let hostile = RawClient::connect(victim.address).await;
    // A gigabyte of zeros is some tens of kilobytes.
    let bomb = zstd::encode_all(std::io::repeat(0).take(1 << 30), 1).unwrap();
    assert!(bomb.len() < 1 << 20);
    let compressed = bomb.len() as u32;
    for claimed in [1, 4096, (8 << 20) - 56] {
        let bad = frame(PacketFlags::COMPRESSED, claimed, compressed, &bomb);
        for _ in 0..4 {
            assert!(is_refusal(hostile.exchange(&bad).await), "{claimed}");
        }
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
    let peak = victim.peak_bytes();
    assert!(peak < 200 * MIB, "{} MiB", peak / MIB);
}

#[tokio::test]
async fn frames_that_are_never_completed_hold_little() {
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let hostile = RawClient::connect(victim.address).await;
    // Each says that eight megabytes follow, and stops a little before their end.
    let size = (8 << 20) - HEADER_LEN - 4;
    let whole = frame(PacketFlags::NONE, size as u32, 0, &vec![7; size]);
    let mut streams = Vec::new();
    for _ in 0..40 {
        let Ok(Ok((mut send, receive))) =
            tokio::time::timeout(Duration::from_secs(1), hostile.connection.open_bi()).await
        else {
            break;
        };
        // The server stops taking them; that is the point.
        let _ = tokio::time::timeout(
            Duration::from_millis(200),
            send.write_all(&whole[..whole.len() - 100]),
        )
        .await;
        streams.push((send, receive));
        within(channel.request("echo", json!(streams.len())))
            .await
            .unwrap();
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
    let peak = victim.peak_bytes();
    assert!(peak < 200 * MIB, "{} MiB", peak / MIB);
}

#[tokio::test]
async fn good_packets_that_unfold_to_gigabytes_hold_little() {
    const FRAMES: u64 = 150;
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let hostile = RawClient::connect(victim.address).await;
    let mut burst = opening();
    for id in 1..=FRAMES {
        let request = ProtocolMessage::request(id, "gate", ContentType::Bytes, vec![0; 8_000_000]);
        let mut frame = encode_frame(PacketType::Data, &request, &Codec::new()).unwrap();
        frame[4 + 16..4 + 24].copy_from_slice(&id.to_le_bytes());
        seal(&mut frame);
        burst.extend(frame);
    }
    assert!(burst.len() < 1 << 20, "{} bytes on the wire", burst.len());
    let streams = (0..4).map(|_| async {
        let (mut send, mut receive) = within(hostile.connection.open_bi()).await.unwrap();
        let _ = within(send.write_all(&burst)).await;
        let _ = send.finish();
        let _ = within(receive.read_to_end(1 << 24)).await;
    });
    futures_util::future::join_all(streams).await;
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
    let peak = victim.peak_bytes();
    assert!(peak < 200 * MIB, "{} MiB", peak / MIB);
}

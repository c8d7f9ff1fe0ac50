//! `kumi cluster up`: a node, from its options to its leave.

use super::failure::Failure;
use super::key;
use super::options::{MetadataOptions, Preset, TrustOptions, UpOptions, authority};
use super::printer::Printer;
use super::words;
use crate::command_line::hangup;
use crate::command_line::terminal::{self, Colour, Terminal};
use kumi_cluster::{
    AdminEvent, AdminEvents, Authority, ClusterEvent, ClusterNode, ClusterWatch, DriverError,
    Member, MemberMetadata, MembershipRuntimeConfig, NodeOptions, NodeStatus, Notice, Transport,
};
use serde_json::json;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that come so soon after one another are one: a terminal and a wrapper may both pass ctrl-c on.
const SAME_SIGNAL: Duration = Duration::from_millis(300);

/// How often a node that is not in yet looks at why.
const TROUBLE_INTERVAL: Duration = Duration::from_secs(2);

/// How long connections may take to close once the other nodes know that the node has left.
const LAST_PACKETS: Duration = Duration::from_millis(200);

pub(super) async fn run(options: UpOptions) -> Result<(), Failure> {
    let terminal = Terminal::new(options.output);
    let security = key::security(&options.trust)?;
    // Before anything runs, so that a signal during the start is not lost.
    let mut signals = Signals::new()?;
    let mut reload = listen(SignalKind::user_defined1())?;
    let seeds = seeds(&options)?;
    let node_options = node_options(&options, &seeds)?;
    let node = tokio::select! {
        node = ClusterNode::start(node_options, Transport::quic(security)) => node?,
        () = signals.next() => return Err(Failure::Ended("stopped before it had started".into())),
    };
    let printer = Printer::start(&terminal, |error| match error.kind() {
        ErrorKind::BrokenPipe => {
            terminal::note("standard output has no reader any more; the node goes on without it");
        }
        _ => terminal::note(format_args!(
            "cannot write to standard output ({error}); the node goes on, lines may be missing"
        )),
    })?;
    let events = node.subscribe();
    let told = Told {
        words: AdminEvents::new(events.first()).names_from(node.shared()),
        events,
        printer: &printer,
        given_up: None,
        has_joined: false,
    };
    announce(&node, &options, &printer, &terminal)?;
    let running = Running {
        seeds: &seeds,
        trust: &options.trust,
        terminal: &terminal,
        reload: &mut reload,
    };
    let ended = run_node(node, told, running, &mut signals).await;
    printer.finish();
    ended
}

/// What a running node needs besides itself.
struct Running<'a> {
    seeds: &'a [Authority],
    trust: &'a TrustOptions,
    terminal: &'a Terminal,
    /// SIGUSR1: the key file or the certificates are to be read again.
    reload: &'a mut Signal,
}

async fn run_node(
    node: ClusterNode,
    mut told: Told<'_>,
    running: Running<'_>,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let printer = told.printer;
    let Running {
        seeds,
        trust,
        terminal,
        reload,
    } = running;
    let end = tokio::select! {
        told = told.all() => told.map(|()| End::ByItself),
        () = signals.next() => Ok(End::Asked),
        () = node.ended() => Ok(End::ByItself),
        failure = tell_troubles(&node, seeds, printer, terminal) => Err(failure),
        failure = reload_on(reload, &node, trust, printer, terminal) => Err(failure),
    };
    let leaving = async {
        match end {
            Ok(End::ByItself) => ended(node, told).await,
            Ok(End::Asked) => leave(node, told).await,
            Err(failure) => {
                // The others need not find out by themselves.
                let _ = node.leave().await;
                Err(failure)
            }
        }
    };
    tokio::select! {
        done = leaving => done,
        () = signals.again() => Err(Failure::Ended("stopped while leaving".into())),
    }
}

/// Reads the key file or the certificates again at each signal. When they cannot be used, the node keeps those it has.
/// Ends only when a result cannot be shown.
async fn reload_on(
    signal: &mut Signal,
    node: &ClusterNode,
    trust: &TrustOptions,
    printer: &Printer<'_>,
    terminal: &Terminal,
) -> Failure {
    loop {
        if signal.recv().await.is_none() {
            return core::future::pending().await;
        }
        let replaced = match key::security(trust) {
            Ok(security) => node.set_security(security).await.map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = show_reload(replaced.err(), printer, terminal) {
            return failure;
        }
    }
}

fn show_reload(
    failed: Option<Failure>,
    printer: &Printer<'_>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let reason = failed.map(|failure| failure.to_string());
    if terminal.is_json {
        return printer.show_json(&match &reason {
            None => json!({"kind": "reloaded"}),
            Some(reason) => json!({"kind": "reload_failed", "reason": reason}),
        });
    }
    let time = terminal::clock(terminal::unix_ms());
    let time = terminal.paint(Colour::Dim, &time);
    let line = match &reason {
        None => "keys and certificates were read again; new connections use them".to_owned(),
        Some(reason) => {
            let line = format!("keys and certificates stay as they are: {reason}");
            terminal.paint(Colour::Red, &line)
        }
    };
    printer.say(format!("{time} {line}"));
    Ok(())
}

/// Why a node does not run on.
enum End {
    /// A signal.
    Asked,
    /// An operator made it leave, a later life of its authority took over, or it failed.
    ByItself,
}

async fn leave(node: ClusterNode, mut told: Told<'_>) -> Result<(), Failure> {
    // All events are printed once the node has left. Connections that are not closed soon after that lead to peers that
    // did not answer.
    let all_told = async {
        told.all().await?;
        tokio::time::sleep(LAST_PACKETS).await;
        Ok(())
    };
    tokio::select! {
        left = node.leave() => {
            left.map_err(|error| Failure::Ended(unleft_text(&error)))?;
        }
        told = all_told => return told,
    }
    told.all().await
}

async fn ended(node: ClusterNode, mut told: Told<'_>) -> Result<(), Failure> {
    let (authority, name) = (node.authority().clone(), node.name_and_life());
    let has_failed = node.has_failed();
    let _ = tokio::time::timeout(LAST_PACKETS, node.shutdown()).await;
    told.all().await?;
    if has_failed {
        return Err(DriverError::Failed.into());
    }
    match told.given_up {
        Some(reason) => Err(Failure::Ended(ended_text(
            &authority,
            name.as_str(),
            &reason,
        ))),
        None => Ok(()),
    }
}

/// The node's events on their way to standard output.
struct Told<'a> {
    events: ClusterWatch,
    words: AdminEvents,
    printer: &'a Printer<'a>,
    /// Why the others gave this node up, if it does not come back.
    given_up: Option<String>,
    /// There was a topology with a member that had joined.
    has_joined: bool,
}

impl Told<'_> {
    /// Shows events until the node is gone.
    async fn all(&mut self) -> Result<(), Failure> {
        while let Some(notice) = self.events.next().await {
            let events = match &notice {
                Notice::Event(event) if self.is_of_one_outside(event) => Vec::new(),
                Notice::Event(event) => self.words.of(event),
                Notice::Missed(events) => vec![AdminEvent::Missed { events: *events }],
                _ => vec![AdminEvent::Other],
            };
            for event in events {
                if let AdminEvent::SelfDowned {
                    now: None, reason, ..
                } = &event
                {
                    self.given_up = Some(reason.clone());
                }
                self.printer.show(&event)?;
            }
        }
        Ok(())
    }

    /// Whether this is the topology of a node that has not joined, even if it leaves now. It is in no cluster, not in one of
    /// its own.
    fn is_of_one_outside(&mut self, event: &ClusterEvent) -> bool {
        let ClusterEvent::TopologyUpdated { members, .. } = event else {
            return false;
        };
        let has_joined =
            |member: &Member| !matches!(member.status, NodeStatus::Joining | NodeStatus::Leaving);
        self.has_joined |= members.iter().any(has_joined);
        !self.has_joined && !members.is_empty()
    }
}

/// Says which seeds do not answer and why, for as long as that keeps the node out; each change once. Ends only when
/// it cannot be put into words.
async fn tell_troubles(
    node: &ClusterNode,
    seeds: &[Authority],
    printer: &Printer<'_>,
    terminal: &Terminal,
) -> Failure {
    let mut last = Vec::new();
    loop {
        tokio::time::sleep(TROUBLE_INTERVAL).await;
        let is_out = match node.status() {
            Some(status) => status == NodeStatus::Joining,
            None => node.members().members.is_empty(),
        };
        let mut troubles = node.unreachable();
        troubles.retain(|(authority, _)| is_out && seeds.contains(authority));
        let news = troubles.iter().filter(|trouble| !last.contains(*trouble));
        let news: Vec<_> = news.cloned().collect();
        if !news.is_empty()
            && let Err(failure) = show_troubles(&news, printer, terminal)
        {
            return failure;
        }
        last = troubles;
    }
}

fn show_troubles(
    troubles: &[(Authority, String)],
    printer: &Printer<'_>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    if terminal.is_json {
        let seeds = troubles.iter();
        let seeds: Vec<_> = seeds
            .map(|(seed, reason)| json!({"seed": seed.as_str(), "reason": reason}))
            .collect();
        return printer.show_json(&json!({"kind": "waiting", "seeds": seeds}));
    }
    let time = terminal::clock(terminal::unix_ms());
    let time = terminal.paint(Colour::Dim, &time);
    for (seed, reason) in troubles {
        let line = format!("waiting for {seed}: {}", words::shown(reason));
        printer.say(format!("{time} {}", terminal.paint(Colour::Yellow, &line)));
    }
    Ok(())
}

/// The message of a node that could not leave as it was asked to.
fn unleft_text(error: &DriverError) -> String {
    match error {
        DriverError::Failed => error.to_string(),
        _ => format!("stopped without leaving: {error}"),
    }
}

/// The last message of a node that stops without being asked to.
fn ended_text(authority: &Authority, name: &str, reason: &str) -> String {
    match reason {
        "superseded" => format!(
            "another node has taken over {authority}; two nodes cannot share an address (see --advertise)"
        ),
        _ => format!("{authority} {name} was given up by the others ({reason})"),
    }
}

fn announce(
    node: &ClusterNode,
    options: &UpOptions,
    printer: &Printer<'_>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let cluster = &options.cluster;
    let (identity, name) = (node.identity(), node.name_and_life());
    let listening = node.local_addr().map(|address| address.to_string());
    if terminal.is_json {
        return printer.show_json(&json!({
            "kind": "started",
            "node": identity.authority.as_str(),
            "uid": identity.uid.to_string(),
            "name_and_life": name.as_str(),
            "cluster": cluster,
            "listening": listening,
        }));
    }
    let authority = terminal.paint(Colour::Bold, identity.authority.as_str());
    let hint = terminal.paint(Colour::Dim, "ctrl-c leaves");
    printer.say(format!("{authority} {name} of cluster {cluster}; {hint}"));
    Ok(())
}

fn seeds(options: &UpOptions) -> Result<Vec<Authority>, Failure> {
    options.seed.iter().map(|seed| authority(seed)).collect()
}

fn node_options(options: &UpOptions, seeds: &[Authority]) -> Result<NodeOptions, Failure> {
    let nodes = usize::try_from(options.nodes).unwrap_or(usize::MAX);
    let mut config = match options.preset {
        Preset::Lan => MembershipRuntimeConfig::lan(nodes),
        Preset::Wan => MembershipRuntimeConfig::wan(nodes),
        Preset::Local => MembershipRuntimeConfig::local(),
    };
    config.cluster_name = options.cluster.clone();
    let node = NodeOptions::new(config)
        .bind(options.bind)
        .seeds(seeds.iter().cloned())
        .metadata(metadata(options)?)
        .observer(options.observer);
    let node = match &options.name {
        Some(name) => node.name(name.clone()),
        None => node,
    };
    Ok(match &options.advertise {
        Some(advertise) => node.advertise(authority(advertise)?),
        None => node,
    })
}

fn metadata(options: &UpOptions) -> Result<MemberMetadata, Failure> {
    let MetadataOptions { role, meta } = &options.metadata;
    let roles: Vec<&str> = role.iter().map(String::as_str).collect();
    let pairs = meta.iter();
    let pairs: Vec<(&str, &str)> = pairs.map(|(key, value)| (&**key, &**value)).collect();
    MemberMetadata::build(kumi_store::KUMI_VERSION, &roles, &pairs)
        .map_err(|error| Failure::usage(error.to_string()))
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(signal_failure)
}

fn signal_failure(error: io::Error) -> Failure {
    Failure::io("listening to signals", error)
}

/// Ctrl-c, SIGTERM, and the end of the terminal.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where it is ignored, as with nohup.
    hangup: Option<Signal>,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: hangup::listen().map_err(signal_failure)?,
        })
    }

    /// Waits for another signal than the one that has just come.
    async fn again(&mut self) {
        let _ = tokio::time::timeout(SAME_SIGNAL, async {
            loop {
                self.next().await;
            }
        })
        .await;
        self.next().await;
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup::received(&mut self.hangup) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_cluster::Security;
    use kumi_unison::ClusterKey;
    use std::process::ExitCode;

    /// What `kumi cluster up` does after its node has started, with a node whose engine panics.
    #[tokio::test]
    async fn a_node_whose_engine_panics_ends_with_exit_code_1() {
        let key = ClusterKey::from_secret(&[7; 32]).unwrap();
        let transport = Transport::quic(Security::key(&key).unwrap());
        let options = NodeOptions::new(MembershipRuntimeConfig::local());
        let node = ClusterNode::start(options, transport).await.unwrap();
        let terminal = Terminal::plain();
        let printer = Printer::start(&terminal, |_| {}).unwrap();
        let events = node.subscribe();
        let told = Told {
            words: AdminEvents::new(events.first()),
            events,
            printer: &printer,
            given_up: None,
            has_joined: false,
        };
        let mut reload = listen(SignalKind::user_defined1()).unwrap();
        let running = Running {
            seeds: &[],
            trust: &TrustOptions::default(),
            terminal: &terminal,
            reload: &mut reload,
        };
        let mut signals = Signals::new().unwrap();
        node.panic_core_task();
        let ended = run_node(node, told, running, &mut signals).await;
        let failure = ended.unwrap_err();
        assert_eq!(failure.exit_code(), ExitCode::from(1));
        assert!(failure.to_string().contains("a panic"), "{failure}");
    }
}

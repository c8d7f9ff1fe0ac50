//! GET over TLS 1.3, with a certificate made for the run.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{Bench, VALUE, key};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{self, Contender};
use crate::wire;

/// Keys in the store.
const KEYS: usize = 100_000;
/// Threads that drive the connections.
const THREADS: usize = 2;
/// Runs of each depth, of which the median counts.
const RUNS: usize = 3;

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let files = bench.stage.subdirectory("tls")?;
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(files.join("cert.pem"), certified.cert.pem())?;
    fs::write(files.join("key.pem"), certified.signing_key.serialize_pem())?;
    let config = client_config(certified.cert.der().clone())?;
    let mut rows = Vec::new();
    for pipeline in [1, 16] {
        let name = format!("durability.tls.get.p{pipeline}");
        let label = format!("GET over TLS, pipeline {pipeline}: server CPU");
        let mut row = Row::new(name, label, "us/op").goal(Some(Goal::RatioAtMost(1.0)));
        let mut costs = vec![Vec::new(); bench.contenders.len()];
        for _ in 0..RUNS {
            for (contender, costs) in bench.contenders.iter().zip(&mut costs) {
                bench
                    .progress
                    .line(&format!("{}: TLS at pipeline {pipeline}", contender.name()));
                match get(bench, contender, &files, &config, pipeline) {
                    Ok(cost) => costs.push(cost),
                    Err(error) => {
                        let name = contender.name();
                        report.note(format!("{name} was not measured over TLS: {error:#}"));
                    }
                }
            }
        }
        for (contender, costs) in bench.contenders.iter().zip(costs) {
            if let Some(sample) = Sample::new(costs) {
                row.add(contender.name(), sample);
            }
        }
        rows.push(report.shown(row));
    }
    let title = format!("GET over TLS, {} connections", bench.args.connections);
    report.section(title, rows);
    Ok(())
}

fn client_config(certificate: CertificateDer<'static>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Microseconds of the server's CPU per GET.
fn get(
    bench: &Bench<'_>,
    contender: &Contender,
    files: &Path,
    config: &Arc<ClientConfig>,
    pipeline: usize,
) -> Result<f64> {
    let address = servers::free_address()?;
    let (port, certificate, key_file) = (
        address.port().to_string(),
        files.join("cert.pem"),
        files.join("key.pem"),
    );
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .context("a path that is no text")
    };
    let (certificate, key_file) = (text(&certificate)?, text(&key_file)?);
    let directives = [
        ("tls-port", port.as_str()),
        ("tls-cert-file", &certificate),
        ("tls-key-file", &key_file),
        ("tls-ca-cert-file", &certificate),
        ("tls-auth-clients", "no"),
    ];
    let server = contender.start(&bench.stage, &directives)?;
    wire::load(server.address(), KEYS, |index, out| {
        wire::push_command(out, &[b"SET", key(index).as_bytes(), VALUE]);
    })?;
    let readers = Readers::start(address, config, bench.args.connections, pipeline)?;
    // Handshakes are over, and caches warm, after the first half second.
    thread::sleep(Duration::from_millis(500));
    let (from, before) = (readers.read.load(Ordering::Relaxed), server.cpu_time()?);
    thread::sleep(Duration::from_secs_f64(bench.args.seconds.min(3.0)));
    let busy_ns = server.cpu_time()?.since(before).busy_ns;
    let operations = readers.read.load(Ordering::Relaxed) - from;
    readers.stop()?;
    if operations == 0 {
        bail!("no GET was replied to");
    }
    Ok(busy_ns as f64 / 1000.0 / operations as f64)
}

/// Threads that read until they are stopped.
struct Readers {
    stop: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Readers {
    fn start(
        address: SocketAddr,
        config: &Arc<ClientConfig>,
        connections: usize,
        pipeline: usize,
    ) -> Result<Readers> {
        let stop = Arc::new(AtomicBool::new(false));
        let read = Arc::new(AtomicU64::new(0));
        let mut threads = Vec::new();
        for number in 0..THREADS {
            let share = connections / THREADS + usize::from(number < connections % THREADS);
            let mut open = (0..share)
                .map(|_| connect(address, config))
                .collect::<Result<Vec<_>>>()?;
            let (stop, read) = (Arc::clone(&stop), Arc::clone(&read));
            let mut random = fastrand::Rng::with_seed(number as u64);
            // "$16\r\n", the value and "\r\n".
            let reply_bytes = pipeline * (5 + VALUE.len() + 2);
            threads.push(thread::spawn(move || {
                let (mut bytes, mut reply) = (Vec::new(), vec![0; reply_bytes]);
                while !stop.load(Ordering::Relaxed) {
                    for stream in &mut open {
                        bytes.clear();
                        for _ in 0..pipeline {
                            let key = key(random.usize(..KEYS));
                            wire::push_command(&mut bytes, &[b"GET", key.as_bytes()]);
                        }
                        stream.write_all(&bytes)?;
                    }
                    for stream in &mut open {
                        stream.read_exact(&mut reply)?;
                        if !reply.starts_with(b"$16\r\n") {
                            bail!("the server replied {}", reply.escape_ascii());
                        }
                        read.fetch_add(pipeline as u64, Ordering::Relaxed);
                    }
                }
                Ok(())
            }));
        }
        Ok(Readers {
            stop,
            read,
            threads,
        })
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow!("a reader panicked"))??;
        }
        Ok(())
    }
}

fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let socket = TcpStream::connect(address).context("cannot connect")?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let name = ServerName::try_from("localhost").context("a server name")?;
    let mut client = ClientConnection::new(config.clone(), name)?;
    let mut socket = socket;
    client
        .complete_io(&mut socket)
        .context("the handshake failed")?;
    Ok(StreamOwned::new(client, socket))
}

//! Running a server: from a configuration and its listeners to the end of the last connection.

use crate::base::crash;
use crate::base::descriptors;
use crate::base::random;
use crate::base::shutdown::Shutdown;
use crate::front::{EngineIo, Found, Front, ServerConfig, ServerError, control};
use crate::handle::{Places, ServerHandle};
use crate::net::listen::Listeners;
use crate::net::tls;
use kumi_store::{Outputs, Store};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// When the server stops, requests that had arrived are still executed for this long ...
const LAST_REQUESTS: Duration = Duration::from_millis(100);
/// ... and clients may take their replies for this long.
const LAST_REPLIES: Duration = Duration::from_secs(3);

/// Serves clients on the calling thread until it is asked to stop.
///
/// On shutdown it accepts no more connections, executes what it has received, and gives clients a
/// few seconds to take their replies.
///
/// # Errors
/// The event loop could not be set up or failed.
///
/// ```
/// use kumi_server::{Listeners, Shutdown, run};
/// use std::io::{Read, Write};
///
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let mut listeners = Listeners::none();
/// listeners.add_tcp(listener)?;
/// let shutdown = Shutdown::new();
/// let stop = shutdown.clone();
/// let server = std::thread::spawn(move || run(kumi_store::Config::new(), listeners, &shutdown));
///
/// let mut client = std::net::TcpStream::connect(address)?;
/// client.write_all(b"PING\r\n")?;
/// let mut reply = [0; 7];
/// client.read_exact(&mut reply)?;
/// assert_eq!(&reply, b"+PONG\r\n");
///
/// stop.request();
/// assert!(server.join().expect("it does not panic").is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn run(
    config: impl Into<ServerConfig>,
    listeners: Listeners,
    shutdown: &Shutdown,
) -> Result<(), ServerError> {
    run_and_tell(config.into(), listeners, shutdown, |_| {})
}

/// The one way in which a server starts, runs and ends, on the calling thread. `ready` is called with its handle once the
/// data is loaded.
pub(crate) fn run_and_tell(
    mut config: ServerConfig,
    listeners: Listeners,
    shutdown: &Shutdown,
    ready: impl FnOnce(ServerHandle),
) -> Result<(), ServerError> {
    descriptors::fit_maxclients(&mut config.config);
    let engine = config.config.clone();
    let ends_process = config.ends_process;
    let tls = &config.config.settings().tls;
    let tls = (tls.port != 0).then(|| tls::config::build(tls)).transpose();
    let tls = tls.map_err(|error| ServerError::Tls {
        reason: error.to_string(),
    })?;
    let (places, users) = (Places::of(&listeners), config.users.clone());
    let (sender, control) = control::channel();
    let mut front = Front::new(config, listeners, shutdown.clone())?;
    front.control = Some(control);
    front.tls.config = tls;
    let settings = engine.settings();
    if let Some(identity) = front.config.by_address.clone() {
        let set = front.tls.set_identity(identity, &settings.tls);
        set.map_err(|error| ServerError::Tls {
            reason: error.to_string(),
        })?;
    }
    front.process.oom_score.start(settings, ends_process);
    let now = front.clock.read();
    let mut store = Store::new(engine, random::seeds()?, now);
    if let Some(id) = front.config.data_id {
        store.set_data_id(id);
    }
    if ends_process {
        crash::watch(store.running_command());
    }
    store
        .load_users(&mut front)
        .and_then(|()| store.set_host_users(&users))
        .map_err(|reason| ServerError::Users { reason })?;
    let mut engine = EngineIo {
        store: &mut store,
        outputs: &mut Outputs::new(),
    };
    let found = front.load_data(&mut engine)?;
    if found == Found::Stopped {
        // Nothing is saved: the data is not complete.
        shutdown.attach(None);
        return Ok(());
    }
    front.settle_data_id(&mut engine, found)?;
    announce(&front);
    let data_id = engine.store.data_id();
    ready(ServerHandle::new(places, data_id, shutdown.clone(), sender));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let served = serve(&mut front, &mut engine);
        served.and_then(|()| stop(&mut front, &mut engine))
    }));
    shutdown.attach(None);
    if !ends_process {
        // A program may start the next server in the same directory, or remove it.
        front.aof.wait_for_thread();
    }
    if let Some(error) = front.aof.fatal.take() {
        return Err(ServerError::Aof(error));
    }
    let Ok(stopped) = outcome else {
        tracing::error!("the engine panicked in the middle of a change: the server stops");
        if ends_process {
            // What the report of a crash has besides; the data may be in any condition.
            let info = || tracing::error!("INFO after the panic\n{}", store.info(&mut front));
            if catch_unwind(AssertUnwindSafe(info)).is_err() {
                tracing::error!("INFO panicked as well");
            }
        }
        // Not dropped: a drop would walk data that may be inconsistent.
        std::mem::forget(store);
        return Err(ServerError::Engine);
    };
    if ends_process {
        std::mem::forget(store);
    } else {
        front.discarder.discard_store(store);
    }
    stopped?;
    front
        .stop
        .unsaved
        .take()
        .map_or(Ok(()), |error| Err(ServerError::Save(error)))
}

fn announce(front: &Front) {
    let open = || front.acceptor.open();
    if open().any(|listener| listener.tcp_address().is_some()) {
        tracing::info!("Ready to accept connections tcp");
    }
    if open().any(|listener| listener.tls_address().is_some()) {
        tracing::info!("Ready to accept connections tls");
    }
    if open().any(|listener| listener.unix_path().is_some()) {
        tracing::info!("Ready to accept connections unix");
    }
}

fn serve(front: &mut Front, engine: &mut EngineIo<'_>) -> io::Result<()> {
    loop {
        while !front.is_stopping() || front.postpones_stop(engine) {
            let timeout = front.longest_wait(engine);
            front.turn(engine, timeout)?;
        }
        // SHUTDOWN and a signal are refused until the first base of the append-only file is complete. The owner of the
        // handle joins the thread, so its stop waits for the base instead.
        while front.waits_for_first_base() {
            let timeout = front.longest_wait(engine);
            front.turn(engine, timeout)?;
        }
        if front.aof.fatal.is_some() {
            // No reply may be sent any more.
            return Err(io::Error::other("the append-only file failed"));
        }
        // The command SHUTDOWN has saved what it had to.
        if front.stop.request.is_some() || front.prepare_stop(engine) {
            return Ok(());
        }
    }
}

/// Lets what is in flight land.
fn stop(front: &mut Front, engine: &mut EngineIo<'_>) -> io::Result<()> {
    // Connections that were waiting before the request to stop are still accepted.
    front.turn(engine, Duration::ZERO)?;
    front.acceptor.listeners.clear();
    let at_once = front.stop.request.is_some_and(|request| request.now);
    let start_ns = front.clock.read().mono_ns;
    let within = |front: &Front, limit: Duration| {
        let elapsed_ns = front.clock.last().mono_ns - start_ns;
        !at_once && u128::from(elapsed_ns) < limit.as_nanos()
    };
    loop {
        front.turn(engine, Duration::ZERO)?;
        if front.connections.unread.is_empty() || !within(front, LAST_REQUESTS) {
            break;
        }
    }
    front.stop.draining = true;
    if front.stop.request.is_some_and(|request| request.saved)
        && engine.store.unsaved_changes() > 0
        && let Err(error) = engine.store.save_now(front)
    {
        tracing::error!(%error, "the last writes before the stop could not be saved");
        front.stop.unsaved = Some(error);
    }
    while front.connections.have_output(engine.outputs) && within(front, LAST_REPLIES) {
        front.turn(engine, Duration::from_millis(10))?;
    }
    front.close_all(engine);
    front.rescue_aof(engine);
    if let Err(error) = front.close_aof(engine) {
        tracing::error!(%error, "the append-only file could not be ended");
        front.aof.fatal = Some(error);
    }
    tracing::info!("kumi is now ready to exit, bye bye...");
    Ok(())
}

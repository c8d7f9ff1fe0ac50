//! What ends programs with everything they started when this process is killed, and could not do it itself.
//!
//! Two helper processes do so, and both are the host program started again with words of its own choice: the host's `main` has to
//! call [`exec`] or [`guard`] when it sees them. A host that gives no [`Shim`] does without: its programs then outlive a SIGKILL
//! of it.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufRead};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// How the host program starts itself for [`exec`] and for [`guard`].
///
/// ```
/// use kumi_node::programs::{self, Shim};
/// use std::ffi::OsString;
/// use std::process::ExitCode;
///
/// fn shim() -> Shim {
///     Shim::new("/proc/self/exe", "__exec", "__guard").arg0("my-program")
/// }
///
/// /// The beginning of `main`.
/// fn helper(args: &[OsString]) -> Option<ExitCode> {
///     match args.get(1)?.to_str()? {
///         "__exec" => Some(programs::exec(&args[2..])),
///         "__guard" => Some(programs::guard()),
///         _ => None,
///     }
/// }
/// # assert!(helper(&["my-program".into(), "serve".into()]).is_none());
/// # let _ = shim();
/// ```
#[derive(Clone, Debug)]
pub struct Shim {
    pub(super) program: PathBuf,
    pub(super) arg0: Option<OsString>,
    pub(super) exec: OsString,
    pub(super) guard: OsString,
}

impl Shim {
    /// The path of the host program, and the first words by which its `main` knows that it is to be [`exec`] or [`guard`].
    pub fn new(
        program: impl Into<PathBuf>,
        exec: impl Into<OsString>,
        guard: impl Into<OsString>,
    ) -> Self {
        Self {
            program: program.into(),
            arg0: None,
            exec: exec.into(),
            guard: guard.into(),
        }
    }

    /// The name by which lists of processes show the helpers.
    #[must_use]
    pub fn arg0(mut self, name: impl Into<OsString>) -> Self {
        self.arg0 = Some(name.into());
        self
    }
}

/// Becomes a program that is killed when its parent ends: `PARENT PROGRAM ARGUMENTS`. The signal is asked for first and the
/// parent is looked at after that, so that a parent that ended in between is noticed. The signal comes when the thread ends
/// that started this process; threads of a runtime end with it.
///
/// For a process that the host program started with its word for this: what fails is written to standard error, because this
/// process has nothing else.
pub fn exec(args: &[OsString]) -> ExitCode {
    let [parent, program, args @ ..] = args else {
        return ExitCode::from(2);
    };
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("kumi: the end of the parent will not be noticed: {error}");
    }
    let parent = parent.to_str().and_then(|parent| parent.parse().ok());
    if parent != Some(std::os::unix::process::parent_id()) {
        return ExitCode::FAILURE;
    }
    let error = std::process::Command::new(program).args(args).exec();
    eprintln!("kumi: {} cannot be run: {error}", program.display());
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    })
}

/// Kills process groups when its standard input ends: lines `+GROUP` and `-GROUP` say which there are. For a process that the
/// host program started with its word for this.
pub fn guard() -> ExitCode {
    let mut groups = HashSet::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else {
            break;
        };
        let (sign, number) = line.split_at_checked(1).unwrap_or_default();
        let group = number.parse().ok().and_then(Pid::from_raw);
        match (sign, group) {
            ("+", Some(group)) => drop(groups.insert(group)),
            ("-", Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    for group in groups {
        // It fails only if the group has no process left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    ExitCode::SUCCESS
}

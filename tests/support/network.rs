//! Network namespaces on one bridge, with links that can be cut by blackhole routes and made bad by netem. Needs the rights of
//! root, or of its own user namespace.

use std::process::{Command, Stdio};

/// Namespaces with a network of their own, removed when dropped.
pub(crate) struct Network {
    prefix: String,
    size: usize,
}

impl Network {
    /// One namespace per place. The names keep two runs on one machine apart.
    pub(crate) fn new(size: usize) -> Result<Self, String> {
        let id = std::process::id();
        let network = Self {
            prefix: format!("kumi{id}"),
            size,
        };
        network.make().map(|()| network)
    }

    fn make(&self) -> Result<(), String> {
        let bridge = self.bridge();
        for place in 0..self.size {
            ip(&format!("netns add {}", self.name(place)))?;
        }
        ip(&format!("netns add {bridge}"))?;
        ip(&format!("-n {bridge} link add sw0 type bridge"))?;
        ip(&format!("-n {bridge} link set sw0 up"))?;
        for place in 0..self.size {
            let name = self.name(place);
            ip(&format!(
                "link add e netns {name} type veth peer name p{place} netns {bridge}"
            ))?;
            ip(&format!("-n {bridge} link set p{place} master sw0 up"))?;
            ip(&format!(
                "-n {name} addr add {}/24 dev e",
                self.address(place)
            ))?;
            ip(&format!("-n {name} link set e up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(())
    }

    /// The namespace of a place, for `ip netns exec`.
    pub(crate) fn name(&self, place: usize) -> String {
        format!("{}n{place}", self.prefix)
    }

    fn bridge(&self) -> String {
        format!("{}br", self.prefix)
    }

    /// The address of a place.
    pub(crate) fn address(&self, place: usize) -> String {
        format!("10.211.0.{}", place + 1)
    }

    /// Cuts two parts from each other.
    pub(crate) fn cut(&self, one: &[usize], other: &[usize]) -> Result<(), String> {
        self.route("add", one, other)
    }

    /// Ends a cut.
    pub(crate) fn heal(&self, one: &[usize], other: &[usize]) -> Result<(), String> {
        self.route("del", one, other)
    }

    /// Adds or deletes the routes that keep two parts from each other.
    fn route(&self, change: &str, one: &[usize], other: &[usize]) -> Result<(), String> {
        for (from, to) in one
            .iter()
            .flat_map(|one| other.iter().map(move |other| (*one, *other)))
        {
            for (from, to) in [(from, to), (to, from)] {
                let name = self.name(from);
                ip(&format!(
                    "-n {name} route {change} blackhole {}/32",
                    self.address(to)
                ))?;
            }
        }
        Ok(())
    }

    /// Makes what a place sends bad, in the words of netem: `delay 10ms loss 2%`.
    #[allow(dead_code, reason = "one of its two users has good links only")]
    pub(crate) fn impair(&self, place: usize, netem: &str) -> Result<(), String> {
        let name = self.name(place);
        run(
            "tc",
            &format!("-n {name} qdisc add dev e root netem {netem}"),
        )
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Where it could not be made whole, some of it is not there.
        for place in 0..self.size {
            let _ = ip(&format!("netns del {}", self.name(place)));
        }
        let _ = ip(&format!("netns del {}", self.bridge()));
    }
}

fn ip(words: &str) -> Result<(), String> {
    run("ip", words)
}

fn run(program: &str, words: &str) -> Result<(), String> {
    let output = Command::new(program)
        .args(words.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{program} {words}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

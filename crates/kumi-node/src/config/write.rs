//! A configuration as the text of a file, and as the list of entries that two configurations are compared by.

use super::secrets::has_secret;
use super::settings::{Place, Section};
use super::values::{backoff_text, duration_text};
use super::{
    Cron, HttpSection, LogLevel, NodeConfig, NodeSection, Preset, Restart, Run, Serve,
    StoreSection, StoreUrl, Surroundings, Work, other_queue,
};
use kumi_kdl::is_disallowed;
use kumi_store::Config;
use std::fmt::Display;
use std::path::Path;

/// One value of a section, or one whole entry of a program or schedule.
pub(super) struct Entry {
    pub(super) section: Section,
    /// The setting's name, or what tells the entry from others of its section.
    pub(super) key: String,
    /// Where it stands; whole entries are arguments.
    place: Place,
    /// As it is written, secrets included.
    pub(super) text: String,
    /// What is written instead of a text with a secret.
    shown: Option<String>,
}

/// The text of a file.
pub(super) fn file(config: &NodeConfig) -> String {
    let entries = entries(config);
    let mut text = String::new();
    for section in [Section::Node, Section::Store, Section::Http] {
        let of = |place| {
            let here = move |entry: &&Entry| entry.section == section && entry.place == place;
            let shown = |entry: &Entry| entry.shown.clone().unwrap_or_else(|| entry.text.clone());
            let written = entries.iter().filter(here).map(shown);
            written.filter(|text| !text.is_empty()).collect::<Vec<_>>()
        };
        let head = [of(Place::Argument), of(Place::Property)].concat();
        let head = head
            .iter()
            .map(|value| format!(" {value}"))
            .collect::<String>();
        let block = of(Place::Child)
            .iter()
            .map(|child| format!("    {child}\n"))
            .collect::<String>();
        text += &match block.is_empty() {
            true => format!("{section}{head}\n"),
            false => format!("{section}{head} {{\n{block}}}\n"),
        };
    }
    for entry in entries.iter().filter(|entry| entry.section > Section::Http) {
        text += &format!("{}\n", entry.text);
    }
    text
}

/// Everything that a configuration says.
pub(super) fn entries(config: &NodeConfig) -> Vec<Entry> {
    let mut entries = Vec::new();
    node(&config.node, &mut entries);
    store(&config.store, &mut entries);
    http(&config.http, &mut entries);
    let mut push = |section, key, text| {
        entries.push(Entry {
            section,
            key,
            place: Place::Argument,
            text,
            shown: None,
        });
    };
    for work in &config.work {
        push(Section::Work, work.key(), self::work(work));
    }
    for serve in &config.serve {
        push(
            Section::Serve,
            serve.pattern.to_string(),
            self::serve(serve),
        );
    }
    for run in &config.run {
        push(Section::Run, run.name.to_string(), self::run(run));
    }
    for cron in &config.cron {
        push(Section::Cron, cron.key(), self::cron(cron));
    }
    entries
}

/// Adds the values of one section.
struct Values<'e> {
    section: Section,
    entries: &'e mut Vec<Entry>,
}

impl Values<'_> {
    fn push(&mut self, place: Place, key: &str, text: String) {
        self.entries.push(Entry {
            section: self.section,
            key: key.into(),
            place,
            text,
            shown: None,
        });
    }

    fn child(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            self.push(Place::Child, key, format!("{key} {value}"));
        }
    }

    fn list<T: Display>(&mut self, key: &str, values: &[T]) {
        let values: Vec<String> = values.iter().map(quoted).collect();
        self.child(key, (!values.is_empty()).then(|| values.join(" ")));
    }
}

fn node(node: &NodeSection, entries: &mut Vec<Entry>) {
    let section = Section::Node;
    let mut values = Values { section, entries };
    if let Some(name) = &node.name {
        values.push(Place::Argument, "name", quoted(name));
    }
    values.list("bind", &node.bind);
    values.child("port", node.port.map(|port| port.to_string()));
    values.child("advertise", node.advertise.as_ref().map(quoted));
    let seeds: Vec<&str> = node.join.iter().map(|seed| seed.as_str()).collect();
    values.list("join", &seeds);
    values.child("key-file", node.key_file.as_deref().map(path));
    if let Some(files) = &node.certificates {
        values.child("tls-cert-file", Some(path(&files.certificate)));
        values.child("tls-key-file", Some(path(&files.key)));
        values.child("tls-ca-file", Some(path(&files.authority)));
    }
    values.child(
        "preset",
        node.preset.map(|preset| word(&Preset::ALL, preset)),
    );
    values.child("state-dir", node.state_dir.as_deref().map(path));
    values.child(
        "log-level",
        node.log_level.map(|level| word(&LogLevel::ALL, level)),
    );
    values.child(
        "stop-within",
        node.stop_within.map(|time| quoted(duration_text(time))),
    );
}

fn store(store: &StoreSection, entries: &mut Vec<Entry>) {
    let section = Section::Store;
    let mut values = Values { section, entries };
    let role = |values: &mut Values<'_>, text| values.push(Place::Argument, "URL", text);
    match store {
        StoreSection::Unset => {}
        StoreSection::Off => role(&mut values, "#false".into()),
        StoreSection::Outside(StoreUrl::Plain(url)) => {
            role(&mut values, quoted(url));
            if let Some(entry) = values.entries.last_mut().filter(|_| has_secret(url)) {
                entry.shown = Some(quoted(kumi_muf::without_password(url)));
            }
        }
        StoreSection::Outside(StoreUrl::File(file)) => {
            role(&mut values, format!("url-file={}", path(file)));
        }
        StoreSection::Here(here) => {
            role(&mut values, String::new());
            if let Some(ephemeral) = here.ephemeral {
                let text = format!("ephemeral=#{ephemeral}");
                values.push(Place::Property, "ephemeral", text);
            }
            for (name, value) in &here.directives {
                values.child(name, Some(quoted(value)));
                if let Some(entry) = values.entries.last_mut()
                    && Config::is_sensitive(name.as_bytes())
                {
                    entry.shown = Some(format!("// {name} is set by a flag"));
                }
            }
            for (name, file) in &here.secret_files {
                values.push(Place::Child, name, format!("{name}-file {}", path(file)));
            }
        }
    }
}

fn http(http: &HttpSection, entries: &mut Vec<Entry>) {
    let section = Section::Http;
    let mut values = Values { section, entries };
    if let Some(on) = http.on {
        values.push(Place::Argument, "on", format!("#{on}"));
    }
    values.list("bind", &http.bind);
    values.child("port", http.port.map(|port| port.to_string()));
    values.list("allow-host", &http.allow_hosts);
    values.child("token-file", http.token_file.as_deref().map(path));
}

/// A whole entry, property by property.
struct Line {
    text: String,
}

impl Line {
    fn new(section: Section, arguments: &[&str]) -> Self {
        let arguments = arguments
            .iter()
            .map(|argument| format!(" {}", quoted(argument)));
        Self {
            text: format!("{section}{}", arguments.collect::<String>()),
        }
    }

    fn text(self, name: &str, value: impl Display) -> Self {
        self.raw(name, quoted(value))
    }

    fn number(self, name: &str, value: impl Display) -> Self {
        self.raw(name, value.to_string())
    }

    fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    fn raw(mut self, name: &str, value: String) -> Self {
        self.text += &format!(" {name}={value}");
        self
    }

    fn surroundings(self, surroundings: &Surroundings) -> String {
        let shown = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map(|path| path.display().to_string())
        };
        let line = self.maybe("dir", shown(&surroundings.dir));
        let line = line.maybe("env-file", shown(&surroundings.env_file));
        if surroundings.env.is_empty() {
            return line.text;
        }
        let env = surroundings
            .env
            .iter()
            .map(|(name, value)| format!(" {name}={}", quoted(value)));
        format!("{} {{\n    env{}\n}}", line.text, env.collect::<String>())
    }
}

fn work(work: &Work) -> String {
    Line::new(Section::Work, &[&work.task_type])
        .text("exec", &work.exec)
        .maybe("queue", other_queue(work.queue.as_deref()))
        .number("concurrency", work.concurrency)
        .text("lease", duration_text(work.lease))
        .maybe("backoff", work.backoff.as_ref().map(backoff_text))
        .maybe("time-limit", work.time_limit.map(duration_text))
        .text("kill-after", duration_text(work.kill_after))
        .surroundings(&work.surroundings)
}

fn serve(serve: &Serve) -> String {
    let (name, command) = serve.command.parts();
    Line::new(Section::Serve, &[&serve.pattern.to_string()])
        .text(name, command)
        .maybe("unit", serve.unit.as_deref())
        .number("concurrency", serve.concurrency)
        .text("handler-timeout", duration_text(serve.handler_timeout))
        .surroundings(&serve.surroundings)
}

fn run(run: &Run) -> String {
    Line::new(Section::Run, &[run.name.as_str()])
        .text("exec", &run.exec)
        .raw("restart", word(&Restart::ALL, run.restart))
        .text("stop-grace", duration_text(run.stop_grace))
        .surroundings(&run.surroundings)
}

fn cron(cron: &Cron) -> String {
    const PRIORITIES: [&str; 4] = ["high", "normal", "low", "bulk"];
    let priority = PRIORITIES.get(cron.priority.level());
    Line::new(Section::Cron, &[&cron.name, &cron.expression])
        .text("zone", &cron.zone)
        .text("type", &cron.task_type)
        .text("payload", &cron.payload)
        .maybe("queue", other_queue(cron.queue.as_deref()))
        .maybe("priority", priority)
        .number("max-attempts", cron.max_attempts)
        .text
}

/// The word of a choice.
fn word<T: PartialEq>(words: &[(&str, T)], choice: T) -> String {
    let found = words.iter().find(|(_, other)| *other == choice);
    quoted(found.map_or("", |(word, _)| word))
}

fn path(path: &Path) -> String {
    quoted(path.display())
}

/// A path as a parameter of a URL.
pub(super) fn in_url(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut text = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match is_plain(*byte) {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A text in quotes, as KDL reads it back.
fn quoted(text: impl Display) -> String {
    let mut quoted = String::from('"');
    for c in text.to_string().chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_disallowed(c) || kumi_kdl::is_newline(c) => {
                quoted.push_str(&format!("\\u{{{:x}}}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

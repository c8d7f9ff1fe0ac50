//! From a document to a [`NodeConfig`]: which nodes a file may have, and what each means.

mod programs;
mod store;

use super::fields::Reader;
use super::secrets::masked;
use super::settings::Section;
use super::values::{address, advertised, duration, host_name, seed};
use super::{
    CertificateFiles, HttpSection, LogLevel, MAX_ENTRIES, NodeConfig, NodeSection, Preset,
};
use kumi_common::Name;
use kumi_kdl::{Diagnostic, Diagnostics, MAX_FILE_BYTES, Node, Sources, Span, Value};
use std::collections::BTreeMap;

/// Reads the text of a file.
pub(super) fn parse(name: &str, text: &str) -> Result<NodeConfig, Diagnostics> {
    let mut errors = Diagnostics::default();
    if text.len() > MAX_FILE_BYTES {
        let message = format!("{name} is larger than {} KiB", MAX_FILE_BYTES / 1024);
        errors.push_with(|| Diagnostic::without_place(message));
        return Err(errors);
    }
    let mut sources = Sources::default();
    let file = sources.add(name.to_owned(), text.into());
    let document = kumi_kdl::parse(&sources, file, &mut errors);
    let config = Reader {
        sources: &sources,
        errors: &mut errors,
    }
    .config(&document.nodes);
    match errors.is_empty() {
        true => Ok(config),
        false => Err(fit_to_show(errors)),
    }
}

/// The errors in the order of the file, without what may be a secret in its lines.
fn fit_to_show(mut errors: Diagnostics) -> Diagnostics {
    errors.sort_by_file(|_| 0);
    let mut shown = Diagnostics::default();
    for error in &errors {
        let mut error = error.clone();
        error.source_line = masked(&error.source_line);
        shown.push_with(|| error);
    }
    for _ in shown.len()..errors.len() {
        shown.push_with(|| Diagnostic::without_place(String::new()));
    }
    shown
}

/// Where entries of a kind were declared, by their keys.
type Declared = BTreeMap<(Section, String), Span>;

impl Reader<'_> {
    fn config(&mut self, nodes: &[Node]) -> NodeConfig {
        let mut config = NodeConfig::default();
        let mut declared = Declared::new();
        for node in nodes {
            self.no_annotations(node);
            let names = Section::ALL.map(Section::name);
            let Some(section) = Section::ALL
                .into_iter()
                .find(|section| section.name() == node.name.value)
            else {
                let message = format!("{:?} is not known", node.name.value);
                self.unknown(&node.name, message, &names, "");
                continue;
            };
            let key = match section {
                Section::Node => {
                    config.node = self.node(node);
                    Some(String::new())
                }
                Section::Store => {
                    config.store = self.store(node);
                    Some(String::new())
                }
                Section::Http => {
                    config.http = self.http(node);
                    Some(String::new())
                }
                Section::Work => self.work(node).map(|work| {
                    let key = work.key();
                    config.work.push(work);
                    key
                }),
                Section::Serve => self.serve(node).map(|serve| {
                    let key = serve.pattern.to_string();
                    config.serve.push(serve);
                    key
                }),
                Section::Run => self.run(node).map(|run| {
                    let key = run.name.to_string();
                    config.run.push(run);
                    key
                }),
                Section::Cron => self.cron(node).map(|cron| {
                    let key = cron.key();
                    config.cron.push(cron);
                    key
                }),
            };
            if let Some(key) = key {
                self.declare(&mut declared, section, key, node.name.span);
            }
        }
        config
    }

    /// Notes an entry. A second one of its key, and one too many, are errors.
    fn declare(&mut self, declared: &mut Declared, section: Section, key: String, span: Span) {
        if declared.keys().filter(|(of, _)| *of == section).count() == MAX_ENTRIES {
            let message = format!("a file has at most {MAX_ENTRIES} {section} entries");
            self.error(span, message, "run a second node for the others");
        }
        let what = match key.is_empty() {
            true => section.to_string(),
            false => format!("{section} {key:?}"),
        };
        if let Some(first) = declared.insert((section, key), span) {
            let sources = self.sources;
            self.errors.push_with(|| {
                let place = sources.diagnostic(first, "").place();
                let twice = sources.diagnostic(span, format!("{what} is there twice"));
                twice
                    .note(format!("the first one is at {place}"))
                    .help("keep one of them")
            });
        }
    }

    fn node(&mut self, node: &Node) -> NodeSection {
        self.properties(node, Section::Node);
        let name = self.argument(node, "name");
        let name = name.and_then(|value| self.parsed(value, "name", Name::new));
        let children = self.children(node, Section::Node);
        let mut value = |name: &str| children.get(name).and_then(|child| self.value(child));
        let (port, preset, log_level) = (value("port"), value("preset"), value("log-level"));
        let (advertise, stop_within) = (value("advertise"), value("stop-within"));
        let mut path = |name: &str| {
            let value = children.get(name).and_then(|child| self.value(child))?;
            self.path(value, name)
        };
        let (key_file, state_dir) = (path("key-file"), path("state-dir"));
        let own = ["tls-cert-file", "tls-key-file", "tls-ca-file"].map(&mut path);
        let certificates = match own {
            [Some(certificate), Some(key), Some(authority)] => Some(CertificateFiles {
                certificate,
                key,
                authority,
            }),
            [None, None, None] => None,
            _ => {
                let help = "write all of tls-cert-file, tls-key-file and tls-ca-file, or none";
                self.error(node.name.span, "own certificates are three files", help);
                None
            }
        };
        if key_file.is_some() && certificates.is_some() {
            let message = "a node has a key or certificates of its own, not both";
            self.error(
                node.name.span,
                message,
                "take key-file or the tls- files out",
            );
        }
        NodeSection {
            name,
            bind: self.list(children.get("bind"), address),
            port: port.and_then(|value| self.port(value)),
            advertise: advertise.and_then(|value| self.parsed(value, "advertise", advertised)),
            join: self.list(children.get("join"), seed),
            key_file,
            certificates,
            preset: preset.and_then(|value| self.choice(value, "preset", &Preset::ALL)),
            state_dir,
            log_level: log_level.and_then(|value| self.choice(value, "log-level", &LogLevel::ALL)),
            stop_within: stop_within.and_then(|value| self.parsed(value, "stop-within", duration)),
        }
    }

    fn http(&mut self, node: &Node) -> HttpSection {
        self.properties(node, Section::Http);
        let on = self
            .argument(node, "on")
            .and_then(|value| self.truth(value, "http"));
        let children = self.children(node, Section::Http);
        let mut value = |name: &str| children.get(name).and_then(|child| self.value(child));
        let (port, token_file) = (value("port"), value("token-file"));
        HttpSection {
            on,
            bind: self.list(children.get("bind"), address),
            port: port.and_then(|value| self.port(value)),
            allow_hosts: self.list(children.get("allow-host"), host_name),
            token_file: token_file.and_then(|value| self.path(value, "token-file")),
        }
    }

    /// The one argument that a section may have.
    fn argument<'n>(&mut self, node: &'n Node, name: &str) -> Option<&'n Value> {
        if let Some(second) = node.arguments.get(1) {
            let message = format!("{} has one {name}", node.name.value);
            self.error(second.span, message, "take this one out");
        }
        node.arguments.first()
    }
}

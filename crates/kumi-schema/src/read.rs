//! From files to a [`Protocol`]: imports are followed, nodes become declarations, older forms become newer ones.
//!
//! What is looked at here is one node at a time: is it known, are its arguments and properties of the right kind. How
//! declarations fit together is the business of [`crate::check`].

mod channel;
mod declaration;
mod field;
mod files;
mod node;

use crate::loader::Loader;
use crate::model::{At, Protocol, Schema, Version};
use kumi_kdl::{Diagnostic, Diagnostics, Node, Sources, Span};
use std::collections::BTreeSet;

/// Reads a schema and everything it imports, and checks it.
pub(crate) fn read(loader: &dyn Loader, root: &str) -> Result<Schema, Diagnostics> {
    let mut reader = Reader::default();
    let files = files::load_all(&mut reader, loader, root);
    let protocol = reader.protocol(&files);
    let protocol = match protocol {
        Some(mut protocol) => {
            crate::check::check(
                &mut protocol,
                &reader.sources,
                &mut reader.errors,
                reader.incomplete,
                &reader.unusable,
            );
            Some(protocol)
        }
        None => None,
    };
    match protocol {
        Some(protocol) if reader.errors.is_empty() => Ok(Schema {
            protocol,
            sources: reader.sources,
        }),
        _ => {
            let names: Vec<String> = reader
                .sources
                .files()
                .iter()
                .map(|file| file.name.clone())
                .collect();
            reader.errors.sort_by_file(|file| {
                names
                    .iter()
                    .position(|name| name == file)
                    .unwrap_or(usize::MAX)
            });
            Err(reader.errors)
        }
    }
}

/// What reading has come to know.
#[derive(Default)]
struct Reader {
    sources: Sources,
    errors: Diagnostics,
    /// Something could not be read that may have declared a type, so that missing ones are not reported.
    incomplete: bool,
    /// Types that were declared and refused, whose names are not reported as missing on top of that.
    unusable: BTreeSet<String>,
}

impl Reader {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.error_with(span, message, |diagnostic| diagnostic);
    }

    fn error_help(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.error_with(span, message, |diagnostic| diagnostic.help(help));
    }

    /// Notes an error; `more` adds to it, and is not called when the error is not kept.
    fn error_with(
        &mut self,
        span: Span,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let sources = &self.sources;
        self.errors
            .push_with(|| more(sources.diagnostic(span, message)));
    }

    /// The one protocol of the first file, with the types of all files.
    fn protocol(&mut self, files: &[files::File]) -> Option<Protocol> {
        let first = files.first()?;
        let mut found: Option<&Node> = None;
        for node in &first.document.nodes {
            if node.name.value != "protocol" {
                continue;
            }
            if found.is_some() {
                self.error_help(
                    node.name.span,
                    "a file describes one protocol",
                    "put the other one into a file of its own; types they share can be imported",
                );
            } else {
                found = Some(node);
            }
        }
        let Some(root) = found else {
            if self.errors.is_empty() {
                self.error_help(
                    Span::new(first.id, 0, 0),
                    "there is no protocol in this file",
                    "begin with: protocol \"name\" version=\"1.0.0\" { ... }",
                );
            }
            // Types are checked all the same; that channels are missing follows from what was said.
            self.incomplete = true;
            let mut protocol = Protocol::empty();
            self.declarations(files, None, &mut protocol);
            return Some(protocol);
        };
        let mut protocol = self.protocol_head(root)?;
        self.declarations(files, Some(root), &mut protocol);
        Some(protocol)
    }

    /// Name and version. A protocol without a name is still read to the end, to find its other errors.
    fn protocol_head(&mut self, node: &Node) -> Option<Protocol> {
        let mut protocol = Protocol::empty();
        let properties = self.properties(node, &["version", "namespace", "description"]);
        let name = self.name_argument(node, "protocol", "\"chat\"");
        protocol.at = At(node.name.span);
        if let Some(name) = name {
            protocol.at = At(name.span);
            protocol.name = name.value;
        } else {
            protocol.name = "unnamed".into();
        }
        match self.text(&properties, "version") {
            Some(text) => match Version::parse(&text.value) {
                Some(version) => protocol.version = version,
                None => self.error_help(
                    text.span,
                    format!("{:?} is not a version", text.value),
                    "a version has three numbers, as in version=\"1.0.0\"",
                ),
            },
            None if properties.get("version").is_none() => self.error_help(
                node.name.span,
                "the protocol has no version",
                "add version=\"1.0.0\"; peers with different first numbers refuse each other",
            ),
            None => {}
        }
        protocol.namespace = self.text(&properties, "namespace").map(|text| text.value);
        protocol.description = self.text(&properties, "description").map(|text| text.value);
        Some(protocol)
    }
}

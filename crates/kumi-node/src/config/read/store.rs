//! `store`: here with Redis's directives, outside by URL, or none.

use crate::config::fields::{Reader, nodes};
use crate::config::settings::Section;
use crate::config::{PATH_PARAMETERS, StoreHere, StoreSection, StoreUrl};
use kumi_jobs::RedisOptions;
use kumi_kdl::{Node, Scalar, Value, did_you_mean};
use kumi_store::Config;
use kumi_store::config::{ConfigError, Directive, Origin, Standing, TABLE};
use std::collections::BTreeMap;

impl Reader<'_> {
    pub(super) fn store(&mut self, node: &Node) -> StoreSection {
        let properties = self.properties(node, Section::Store);
        let outside = self.argument(node, "URL");
        let url_file = properties.get("url-file");
        let ephemeral = properties.get("ephemeral");
        let is_here = ephemeral.is_some() || !nodes(node).is_empty();
        if (outside.is_some() || url_file.is_some()) && is_here {
            let message = "directives and ephemeral are for a store that this node runs";
            self.error(node.name.span, message, "take them out, or the URL");
        }
        if let (Some(_), Some(value)) = (outside, url_file) {
            self.error(
                value.span,
                "there are two URLs",
                "keep the argument or url-file",
            );
        }
        let ephemeral = ephemeral.and_then(|value| self.truth(value, "ephemeral"));
        let here = self.directives(node, ephemeral);
        match (outside, url_file) {
            (Some(value), _) => match value.scalar {
                Scalar::Bool(false) => StoreSection::Off,
                Scalar::Bool(true) => StoreSection::Here(here),
                _ => self
                    .url(value)
                    .map_or(StoreSection::Unset, StoreSection::Outside),
            },
            (None, Some(value)) => match self.path(value, "url-file") {
                Some(file) => StoreSection::Outside(StoreUrl::File(file)),
                None => StoreSection::Unset,
            },
            (None, None) => StoreSection::Here(here),
        }
    }

    fn url(&mut self, value: &Value) -> Option<StoreUrl> {
        let url = self.text(value, "URL")?;
        if let Err(error) = RedisOptions::from_url(&without_files(url)) {
            self.error(
                value.span,
                format!("the store's URL: {error}"),
                "docs/url.md has the forms of URLs",
            );
            return None;
        }
        Some(StoreUrl::Plain(url.to_owned()))
    }

    /// The block of a store that the node runs.
    fn directives(&mut self, node: &Node, ephemeral: Option<bool>) -> StoreHere {
        let mut config = Config::new();
        let mut here = StoreHere {
            ephemeral,
            ..StoreHere::default()
        };
        let mut seen = BTreeMap::new();
        for child in nodes(node) {
            self.no_annotations(child);
            self.no_properties(child);
            self.no_block(child);
            let Some((directive, by_file)) = self.directive(child) else {
                continue;
            };
            let name = directive.name;
            if let Some(first) = seen.insert(name, child.name.span) {
                let place = self.sources.diagnostic(first, "").place();
                let help = format!("the first one is at {place}; put all values into one");
                self.error(child.name.span, format!("{name} is given twice"), help);
            } else if by_file {
                let file = self.value(child).and_then(|value| self.path(value, name));
                here.secret_files
                    .extend(file.map(|file| (name.to_owned(), file)));
            } else if let Some(value) = self.directive_value(child)
                && self.accepts(&mut config, child, name, &value)
            {
                here.directives.insert(name.to_owned(), value);
            }
        }
        here
    }

    /// The row of a directive, and whether its value is in a file.
    fn directive(&mut self, child: &Node) -> Option<(&'static Directive, bool)> {
        let written = &*child.name.value;
        let found = |name: &str| {
            let is_named =
                |row: &&Directive| row.names().any(|known| known.eq_ignore_ascii_case(name));
            TABLE.iter().find(is_named)
        };
        let span = child.name.span;
        match (
            found(written),
            written.strip_suffix("-file").and_then(found),
        ) {
            (Some(row), _) if row.name == "bind" => {
                let help =
                    "the whole node listens on the same addresses: write bind in the block of node";
                self.error(span, "the store has no bind of its own", help);
                None
            }
            (Some(row), _) if row.sensitive => {
                let help = match row.standing {
                    Standing::Refused { why, .. } => why.to_owned(),
                    _ => format!(
                        "put it into a file that only the node may read: {written}-file \"FILE\""
                    ),
                };
                self.error(span, format!("{written} is a secret"), help);
                None
            }
            (Some(row), _) => Some((row, false)),
            (None, Some(row)) if row.sensitive => Some((row, true)),
            _ => {
                let known = TABLE.iter().flat_map(|row| row.names());
                let help = match did_you_mean(written, known) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => "the block of store has directives of redis.conf".to_owned(),
                };
                self.error(span, format!("there is no directive {written:?}"), help);
                None
            }
        }
    }

    /// The values of a directive as redis.conf has them, on one line.
    fn directive_value(&mut self, child: &Node) -> Option<String> {
        let mut words = Vec::new();
        for value in &child.arguments {
            words.push(match &value.scalar {
                Scalar::String(_) => self.text(value, &child.name.value)?.to_owned(),
                Scalar::Integer(number) => number.to_string(),
                Scalar::Bool(truth) => if *truth { "yes" } else { "no" }.to_owned(),
                other => {
                    let message = format!(
                        "a directive is a text or a whole number, not {}",
                        other.kind()
                    );
                    self.error(value.span, message, "put quotes around it");
                    return None;
                }
            });
        }
        if words.is_empty() {
            let name = &child.name.value;
            self.error(
                child.name.span,
                format!("{name} needs a value"),
                format!("write {name} \"VALUE\""),
            );
            return None;
        }
        Some(words.join(" "))
    }

    fn accepts(&mut self, config: &mut Config, child: &Node, name: &str, value: &str) -> bool {
        let set = config.set_many(&[(name.as_bytes(), value.as_bytes())], Origin::Startup);
        let reason = match set {
            Ok(_) => return true,
            Err(ConfigError::Failed { reason, .. }) => reason.into_owned(),
            Err(other) => other.to_string(),
        };
        let span = child
            .arguments
            .first()
            .map_or(child.name.span, |value| value.span);
        self.error(span, format!("{name} cannot have this value"), reason);
        false
    }
}

/// A URL without the parameters that name files, which are not opened here.
fn without_files(url: &str) -> String {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let is_kept = |parameter: &&str| {
        let mut names = PATH_PARAMETERS.iter();
        !names.any(|name| parameter.starts_with(name))
    };
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    match kept.concat().is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", kept.join("&")),
    }
}

//! What a node's worker runs: `work`, `serve`, `run` and `cron`.

use crate::config::fields::{Properties, Reader};
use crate::config::secrets::is_secret_name;
use crate::config::settings::Section;
use crate::config::values::{
    HANDLER_TIMEOUT, KILL_AFTER, PAYLOAD, SERVE_CONCURRENCY, STOP_GRACE, ZONE, backoff, duration,
    schedule_fault,
};
use crate::config::{Cron, Restart, Run, Serve, ServeCommand, Surroundings, Work, other_queue};
use kumi_common::Name;
use kumi_jobs::{DEFAULT_MAX_ATTEMPTS, LEASE, Priority, RENEWAL, RedisOptions};
use kumi_kdl::{Node, Value};
use kumi_muf::core::{Pattern, UnitName};
use std::time::Duration;

/// The most tasks or requests at once, and the most attempts.
const MAX_COUNT: u32 = 10_000;
/// The longest task type, in bytes.
const MAX_TYPE_BYTES: usize = 128;
/// Variables that the node sets itself.
const OWN_VARIABLES: [&str; 2] = ["KUMI_NODE", "KUMI_URL"];

impl Reader<'_> {
    pub(super) fn work(&mut self, node: &Node) -> Option<Work> {
        let properties = self.properties(node, Section::Work);
        let task_type = self
            .name_of(node, "type")
            .and_then(|value| self.task_type(value, "type"));
        let exec = self.required(node, &properties, "exec");
        let time = |reader: &mut Self, name| reader.time(&properties, name);
        let lease = properties.get("lease");
        let work = Work {
            task_type: task_type.clone().unwrap_or_default(),
            queue: self.queue(&properties),
            exec: exec.clone().unwrap_or_default(),
            concurrency: self.count(&properties, "concurrency").unwrap_or(1),
            lease: lease
                .and_then(|value| self.parsed(value, "lease", read_lease))
                .unwrap_or(LEASE),
            backoff: properties
                .get("backoff")
                .and_then(|value| self.parsed(value, "backoff", backoff)),
            time_limit: time(self, "time-limit"),
            kill_after: time(self, "kill-after").unwrap_or(KILL_AFTER),
            surroundings: self.surroundings(node, &properties, Section::Work),
        };
        task_type.and(exec).map(|_| work)
    }

    pub(super) fn serve(&mut self, node: &Node) -> Option<Serve> {
        let properties = self.properties(node, Section::Serve);
        let pattern = self.name_of(node, "pattern");
        let pattern =
            pattern.and_then(|value| self.parsed(value, "pattern", str::parse::<Pattern>));
        let mut command = |name| {
            properties
                .get(name)
                .and_then(|value| self.filled(value, name))
        };
        let command = match (command("exec"), command("pipe")) {
            (Some(exec), None) => Some(ServeCommand::Exec(exec)),
            (None, Some(pipe)) => Some(ServeCommand::Pipe(pipe)),
            (None, None) if properties.get("exec").or(properties.get("pipe")).is_some() => None,
            (found, _) => {
                let message = match found {
                    Some(_) => "serve has exec or pipe, not both",
                    None => "serve needs exec or pipe",
                };
                let help =
                    "exec=\"COMMAND\" runs a command per request, pipe=\"COMMAND\" one for all";
                self.error(node.name.span, message, help);
                None
            }
        };
        let unit = properties
            .get("unit")
            .and_then(|value| self.parsed(value, "unit", UnitName::new));
        let concurrency = self
            .count(&properties, "concurrency")
            .unwrap_or(SERVE_CONCURRENCY);
        let handler_timeout = self
            .time(&properties, "handler-timeout")
            .unwrap_or(HANDLER_TIMEOUT);
        let surroundings = self.surroundings(node, &properties, Section::Serve);
        Some(Serve {
            pattern: pattern?,
            command: command?,
            unit: unit.map(|unit| unit.to_string()),
            concurrency,
            handler_timeout,
            surroundings,
        })
    }

    pub(super) fn run(&mut self, node: &Node) -> Option<Run> {
        let properties = self.properties(node, Section::Run);
        let name = self
            .name_of(node, "name")
            .and_then(|value| self.parsed(value, "name", Name::new));
        let exec = self.required(node, &properties, "exec");
        let restart = properties.get("restart");
        let restart = restart.and_then(|value| self.choice(value, "restart", &Restart::ALL));
        let stop_grace = self.time(&properties, "stop-grace").unwrap_or(STOP_GRACE);
        let surroundings = self.surroundings(node, &properties, Section::Run);
        Some(Run {
            name: name?,
            exec: exec?,
            stop_grace,
            restart: restart.unwrap_or_default(),
            surroundings,
        })
    }

    pub(super) fn cron(&mut self, node: &Node) -> Option<Cron> {
        let properties = self.properties(node, Section::Cron);
        self.no_block(node);
        let [name, expression] = &node.arguments[..] else {
            let help = "for instance: cron \"digest\" \"0 9 * * MON-FRI\" zone=\"Asia/Tokyo\"";
            self.error(node.name.span, "cron has a name and an expression", help);
            return None;
        };
        let name = self.filled(name, "name");
        let fields = self.filled(expression, "expression");
        let zone = properties.get("zone");
        let zone_name = zone
            .and_then(|value| self.filled(value, "zone"))
            .unwrap_or_else(|| ZONE.into());
        if let Some(fields) = &fields
            && let Some(fault) = schedule_fault(fields, &zone_name)
        {
            let span = match zone {
                Some(zone) if fault.contains("time zone") => zone.span,
                _ => expression.span,
            };
            self.error(
                span,
                fault,
                "for instance: \"0 9 * * MON-FRI\" is 9 o'clock on working days",
            );
        }
        let task_type = match properties.get("type") {
            Some(value) => self.task_type(value, "type"),
            None => node
                .arguments
                .first()
                .and_then(|value| self.task_type(value, "name (which is the type too)")),
        };
        let payload = properties.get("payload");
        let payload = payload.and_then(|value| self.parsed(value, "payload", json));
        let priority = properties.get("priority");
        let priority =
            priority.and_then(|value| self.parsed(value, "priority", str::parse::<Priority>));
        let attempts = properties.get("max-attempts");
        let attempts = attempts.and_then(|value| self.number(value, "max-attempts", 1..=MAX_COUNT));
        let queue = self.queue(&properties);
        Some(Cron {
            name: name?,
            expression: fields?,
            zone: zone_name,
            task_type: task_type?,
            payload: payload.unwrap_or_else(|| PAYLOAD.into()),
            queue,
            priority: priority.unwrap_or(Priority::Normal),
            max_attempts: attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS),
        })
    }

    /// The argument that names an entry.
    fn name_of<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n Value> {
        if node.arguments.is_empty() {
            let kind = &node.name.value;
            self.error(
                node.name.span,
                format!("{kind} needs a {what}"),
                format!("write {kind} \"{}\"", what.to_uppercase()),
            );
        }
        self.argument(node, what)
    }

    fn required(&mut self, node: &Node, properties: &Properties<'_>, name: &str) -> Option<String> {
        match properties.get(name) {
            Some(value) => self.filled(value, name),
            None => {
                let message = format!("{} needs {name}", node.name.value);
                self.error(node.name.span, message, format!("write {name}=\"COMMAND\""));
                None
            }
        }
    }

    fn task_type(&mut self, value: &Value, name: &str) -> Option<String> {
        self.parsed(value, name, |text| {
            let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
            match (1..=MAX_TYPE_BYTES).contains(&text.len()) && text.chars().all(is_plain) {
                true => Ok(text.to_owned()),
                false => Err("a task type has 1 to 128 bytes and no white space"),
            }
        })
    }

    fn queue(&mut self, properties: &Properties<'_>) -> Option<String> {
        let value = properties.get("queue")?;
        let queue = self.parsed(value, "queue", |text| {
            let named = RedisOptions::from_url("redis://localhost").and_then(|any| any.queue(text));
            named.map(|_| text.to_owned())
        });
        queue.filter(|queue| other_queue(Some(queue)).is_some())
    }

    fn count(&mut self, properties: &Properties<'_>, name: &str) -> Option<usize> {
        let count = self.number(properties.get(name)?, name, 1..=MAX_COUNT);
        count.and_then(|count| usize::try_from(count).ok())
    }

    fn time(&mut self, properties: &Properties<'_>, name: &str) -> Option<Duration> {
        let value = properties.get(name)?;
        self.parsed(value, name, duration)
    }

    fn surroundings(
        &mut self,
        node: &Node,
        properties: &Properties<'_>,
        section: Section,
    ) -> Surroundings {
        let mut path = |name| {
            properties
                .get(name)
                .and_then(|value| self.path(value, name))
        };
        let mut surroundings = Surroundings {
            dir: path("dir"),
            env_file: path("env-file"),
            ..Surroundings::default()
        };
        let children = self.children(node, section);
        let Some(env) = children.get("env") else {
            return surroundings;
        };
        self.no_block(env);
        if let Some(argument) = env.arguments.first() {
            self.error(
                argument.span,
                "env has properties",
                "write env NAME=\"value\"",
            );
        }
        for (name, value) in &env.properties {
            let is_name = |text: &str| {
                let mut bytes = text.bytes();
                bytes
                    .next()
                    .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
                    && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            let help = match &*name.value {
                text if !is_name(text) => Some("a variable is letters, digits and underscores"),
                text if OWN_VARIABLES.contains(&text) => Some("the node sets it"),
                text if is_secret_name(text) => Some(
                    "put NAME=VALUE into a file that only the node may read, and write env-file=\"FILE\"",
                ),
                _ => None,
            };
            match help {
                Some(help) => self.error(
                    name.span,
                    format!("{} cannot be set here", name.value),
                    help,
                ),
                None => {
                    let text = self.text(value, &name.value).map(str::to_owned);
                    surroundings
                        .env
                        .extend(text.map(|text| (name.value.clone(), text)));
                }
            }
        }
        surroundings
    }
}

fn read_lease(text: &str) -> Result<Duration, &'static str> {
    match duration(text)? {
        lease if lease < 2 * RENEWAL => Err("a lease is at least 2s"),
        lease => Ok(lease),
    }
}

fn json(text: &str) -> Result<String, &'static str> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => {
            Err("a payload is JSON in a text, such as \"{\\\"n\\\": 1}\" or #\"{\"n\": 1}\"#")
        }
    }
}

//! What the tools remember about a learner: language, length of the course, hints shown. A text file in their folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lang::Lang;

/// The contents of `.course`: `name=value` lines.
pub struct State {
    path: PathBuf,
    values: BTreeMap<String, String>,
}

impl State {
    /// The state in a learner's folder; empty if there is none.
    pub fn load(folder: &Path) -> State {
        let path = folder.join(".course");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        State { path, values: pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect() }
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Changes a value and writes the file.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.values.insert(name.to_string(), value.to_string());
        let lines = self.values.iter().map(|(name, value)| format!("{name}={value}\n"));
        fs::write(&self.path, lines.collect::<String>()).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// The learner's language; before `start`, the environment's.
    pub fn lang(&self) -> Lang {
        self.get("lang").and_then(Lang::from_code).unwrap_or_else(Lang::from_environment)
    }

    /// True in the 60-minute course.
    pub fn short(&self) -> bool {
        self.get("minutes") == Some("60")
    }
}

//! A subcommand's words, options and flags.

/// The error that shows the help instead.
pub(super) const USAGE: &str = "usage";

/// What is left of the command line.
pub(super) struct Arguments {
    left: Vec<String>,
}

impl Arguments {
    pub(super) fn new(arguments: &[String]) -> Arguments {
        Arguments { left: arguments.to_vec() }
    }

    /// Takes `name VALUE` out.
    pub(super) fn option(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.left.iter().position(|argument| argument == name) else { return Ok(None) };
        self.left.remove(at);
        if at == self.left.len() {
            return Err(USAGE.to_string());
        }
        Ok(Some(self.left.remove(at)))
    }

    /// Takes `name` out; true if it was there.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let at = self.left.iter().position(|argument| argument == name);
        at.map(|at| self.left.remove(at)).is_some()
    }

    /// Takes the next word.
    pub(super) fn word(&mut self) -> Option<String> {
        (!self.left.is_empty()).then(|| self.left.remove(0))
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), String> {
        if self.left.is_empty() { Ok(()) } else { Err(USAGE.to_string()) }
    }
}

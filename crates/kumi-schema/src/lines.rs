//! Lines of generated code with their indentation.

/// A text that grows by lines. A line that ends with an opening bracket indents those after it.
pub(crate) struct Lines {
    pub(crate) text: String,
    depth: usize,
    indent: &'static str,
}

impl Lines {
    pub(crate) fn new(indent: &'static str) -> Self {
        Self {
            text: String::new(),
            depth: 0,
            indent,
        }
    }

    pub(crate) fn line(&mut self, line: &str) {
        if line.starts_with(['}', ')', ']']) {
            self.depth = self.depth.saturating_sub(1);
        }
        if line.is_empty() {
            self.text.push('\n');
        } else {
            self.raw(line);
        }
        if line.ends_with(['{', '(', '[']) {
            self.depth += 1;
        }
    }

    pub(crate) fn blank(&mut self) {
        self.line("");
    }

    /// A line that leaves the indentation as it is, whatever it ends with.
    pub(crate) fn raw(&mut self, line: &str) {
        (0..self.depth).for_each(|_| self.text.push_str(self.indent));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// `open`, the items and `close`, on one line if it is not longer than `width`, or with a line for each item.
    pub(crate) fn list(&mut self, open: &str, items: &[String], close: &str, width: usize) {
        let space = if open.ends_with('{') && !items.is_empty() {
            " "
        } else {
            ""
        };
        let line = format!("{open}{space}{}{space}{close}", items.join(", "));
        let indented = self.depth * self.indent.len() + line.chars().count();
        if indented <= width {
            // A call may end with what opens a block.
            return self.line(&line);
        }
        self.line(open);
        for item in items {
            self.raw(&format!("{item},"));
        }
        self.line(close);
    }
}

//! Says what is going on: bars on a terminal, plain lines elsewhere. Always on standard error, so that standard output
//! holds the report alone.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// Where progress goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress {
            terminal: io::stderr().is_terminal(),
        }
    }

    /// One line, when no bar is being drawn.
    pub(crate) fn line(&self, text: &str) {
        eprintln!("{text}");
    }

    /// Begins a task of `steps` steps.
    pub(crate) fn task(&self, title: &'static str, steps: usize) -> Task {
        if !self.terminal {
            return Task {
                title,
                steps,
                done: 0,
                bar: None,
            };
        }
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template(
            "{prefix:>10} [{bar:28}] {pos}/{len} {elapsed_precise}  {wide_msg}",
        );
        // The template is constant and has been seen to parse; the default style would do as well.
        bar.set_style(
            style
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        bar.set_prefix(title);
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Task {
            title,
            steps,
            done: 0,
            bar: Some(bar),
        }
    }
}

/// A task in progress; its bar disappears when it is dropped.
pub(crate) struct Task {
    title: &'static str,
    steps: usize,
    done: usize,
    bar: Option<ProgressBar>,
}

impl Task {
    /// Says which step begins now.
    pub(crate) fn begin(&mut self, step: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(step.to_owned()),
            None => eprintln!(
                "{} {}/{}: {step}",
                self.title,
                (self.done + 1).min(self.steps),
                self.steps
            ),
        }
    }

    /// How far the step is: on a terminal only, since a log would fill up with it.
    pub(crate) fn detail(&mut self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
    }

    /// A step has ended.
    pub(crate) fn end(&mut self) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

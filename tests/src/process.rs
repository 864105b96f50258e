//! A program as a child process whose lines can be waited for. Killed, with everything it started, when dropped.
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Longest wait for anything: far more than a busy machine needs.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    lines: Receiver<(bool, String)>,
    /// Lines of standard output so far.
    pub out: Vec<String>,
    /// Lines of standard error so far.
    pub err: Vec<String>,
    waited: Option<ExitStatus>,
}

/// What an ended program had said.
#[derive(Debug)]
pub struct Said {
    /// On standard output.
    pub out: Vec<String>,
    /// On standard error.
    pub err: Vec<String>,
}

impl Process {
    /// Starts `command`, called `name` in messages.
    ///
    /// # Panics
    /// If it can't be started.
    pub fn start(name: &str, command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{name}: {e}"));
        let (sender, lines) = channel();
        read(child.stdout.take(), true, sender.clone());
        read(child.stderr.take(), false, sender);
        Self { name: name.into(), child, lines, out: Vec::new(), err: Vec::new(), waited: None }
    }

    /// The next line of either stream; nothing once both are closed.
    ///
    /// # Panics
    /// If it takes too long.
    pub fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok((out, line)) => {
                if out { &mut self.out } else { &mut self.err }.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{}: silent for too long after {}", self.name, self.said())
            }
        }
    }

    /// Waits for a line, from now on, that holds `text`.
    ///
    /// # Panics
    /// If the program ends before, or takes too long.
    pub fn wait_for(&mut self, text: &str) -> String {
        let begun = Instant::now();
        while let Some(line) = self.line() {
            if line.contains(text) {
                return line;
            }
            assert!(begun.elapsed() < PATIENCE, "{}: no {text:?} in {}", self.name, self.said());
        }
        panic!("{}: ended without {text:?}: {}", self.name, self.said())
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// If it takes too long.
    pub fn finish(&mut self) -> ExitStatus {
        while self.line().is_some() {}
        *self.waited.get_or_insert_with(|| self.child.wait().expect("a child can be waited for"))
    }

    /// Waits for the end, which must be a good one; gives what it said.
    ///
    /// # Panics
    /// If it is not.
    pub fn succeed(mut self) -> Said {
        let status = self.finish();
        assert!(status.success(), "{}: {status}: {}", self.name, self.said());
        Said { out: std::mem::take(&mut self.out), err: std::mem::take(&mut self.err) }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        while self.line().is_some() {}
        self.waited = self.child.wait().ok();
    }

    /// SIGTERM; the end is still to be waited for.
    pub fn terminate(&self) {
        signal("-TERM", &self.child.id().to_string());
    }

    /// Everything it said so far.
    pub fn said(&self) -> String {
        self.out.iter().chain(&self.err).map(|l| format!("\n  {l}")).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.waited.is_none() {
            signal("-KILL", &format!("-{}", self.child.id()));
            let _ = self.child.wait();
        }
    }
}

fn signal(which: &str, to: &str) {
    let _ = Command::new("kill").args([which, "--", to]).stderr(Stdio::null()).status();
}

fn read(stream: Option<impl Read + Send + 'static>, out: bool, to: Sender<(bool, String)>) {
    let Some(stream) = stream else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if to.send((out, line)).is_err() {
                return;
            }
        }
    });
}

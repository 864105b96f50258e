//! Boards as processes: this program runs itself as `edge-client`.
use crate::idx::write_pair;
use anyhow::Context;
use models::data::Samples;
use models::fed::Disclosure;
use models::id::ClientId;
use models::wire::Token;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The hidden command under which this program is `edge-client`.
pub const COMMAND: &str = "edge-client";

/// Processes that end with this value at the latest.
#[derive(Debug, Default)]
pub(super) struct Children(BTreeMap<ClientId, Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in self.0.values_mut() {
            // A process that has ended already can't be killed, and none is left to wait for.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

impl Children {
    /// Starts `edge-client run` on these samples; its words go to `log` in `dir`. `gone` is called when it has ended.
    pub(super) fn run(
        &mut self,
        client: ClientId,
        dir: &Path,
        allow: Disclosure,
        samples: &Samples,
        gone: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<()> {
        let data = dir.join("data");
        std::fs::create_dir_all(&data)?;
        let (images, labels) = write_pair(samples);
        std::fs::write(data.join("train-images-idx3-ubyte.gz"), images)?;
        std::fs::write(data.join("train-labels-idx1-ubyte.gz"), labels)?;
        let mut child = edge_client()?
            .args(["run", "--until-finished", "--threads", "1", "--allow", spelling(allow)])
            .arg("--dir")
            .arg(dir)
            .arg("--data")
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut words = child.stderr.take().context("the board's words are piped")?;
        let mut log = File::create(dir.join("log"))?;
        std::thread::spawn(move || {
            // Whatever breaks this copy, the process has ended or is about to.
            let _ = std::io::copy(&mut words, &mut log);
            gone();
        });
        self.0.insert(client, child);
        Ok(())
    }

    /// The end of a process that is gone.
    pub(super) fn ended(&mut self, client: ClientId, dir: &Path) -> anyhow::Result<()> {
        let mut child = self.0.remove(&client).context("no such process")?;
        let status = child.wait()?;
        anyhow::ensure!(
            status.success(),
            "board {client} ended with {status}; {} says why",
            dir.join("log").display()
        );
        Ok(())
    }
}

/// Runs `edge-client enroll` to its end; the token goes in by standard input.
pub(super) fn enroll(dir: &Path, host: &str, token: &Token) -> anyhow::Result<()> {
    let mut child = edge_client()?
        .args(["enroll", "--host", host, "--token", "-", "--dir"])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("the token is piped")?;
    writeln!(input, "{token}")?;
    drop(input);
    let output = child.wait_with_output()?;
    anyhow::ensure!(
        output.status.success(),
        "enrolment failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

fn edge_client() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("this program's own file")?);
    command.arg(COMMAND);
    Ok(command)
}

fn spelling(allow: Disclosure) -> &'static str {
    match allow {
        Disclosure::Nothing => "nothing",
        Disclosure::Backbone => "backbone",
        Disclosure::FullModel => "full_model",
        Disclosure::ClassMeans => "class_means",
        Disclosure::Statistics | Disclosure::Samples => "statistics",
    }
}

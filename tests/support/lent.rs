//! A server that a script of the stack lends to a test, which may kill it and start it again.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What lends servers.
#[derive(Clone, Copy)]
pub(crate) struct Lender {
    script: &'static str,
    /// Where a server's process id is, in its folder.
    pid_file: &'static str,
}

pub(crate) const KAFKA: Lender =
    Lender { script: concat!(env!("CARGO_MANIFEST_DIR"), "/stack/kafka.sh"), pid_file: "pid" };
pub(crate) const POSTGRES: Lender = Lender {
    script: concat!(env!("CARGO_MANIFEST_DIR"), "/stack/postgres.sh"),
    pid_file: "data/postmaster.pid",
};

pub(crate) struct Lent {
    lender: Lender,
    folder: PathBuf,
    kind: &'static str,
    /// Holds our end of a pipe. It closes with this process, however that ends, and then the server
    /// goes, and its folder.
    holder: Child,
}

impl Lent {
    /// With these variables; `prepare` writes files into its folder first. Returns what the script says of
    /// it, too.
    pub(crate) fn start(
        lender: Lender,
        kind: &'static str,
        variables: &[(&str, String)],
        prepare: impl FnOnce(&Path),
    ) -> (Self, String) {
        let prefix = format!("trestle-{kind}-");
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir().unwrap().keep();
        prepare(&folder);
        let mut holder = Command::new(lender.script)
            .arg("lend")
            .arg(&folder)
            .arg(kind)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // An interrupt at the terminal ends us; what cleans up behind us must survive it.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.ends_with('\n'), "{} did not start a server", lender.script);
        (Self { lender, folder, kind, holder }, said.trim().to_owned())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// As by `kill -9`, with everything that it has started, at once.
    pub(crate) fn kill(&self) {
        let file =
            std::fs::read_to_string(self.folder.join(self.lender.pid_file)).expect("it runs");
        let server = file.lines().next().expect("its process id").to_owned();
        // First it stands still: a child that it made while the others are counted would live on.
        signal("-STOP", &server, &[]);
        while status(&server, "State:").is_some_and(|state| !state.starts_with(['T', 'Z'])) {
            std::thread::yield_now();
        }
        signal("-9", &server, &children(&server));
        while is_alive(&server) {
            std::thread::yield_now();
        }
    }

    /// With the same data, at the same port; where the data is gone, with what the variables say.
    pub(crate) fn start_again(&self, port: u16, variables: &[(&str, String)]) {
        let started = Command::new(self.lender.script)
            .arg("start")
            .arg(&self.folder)
            .args([&port.to_string(), self.kind])
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .status();
        assert!(started.expect("the script runs").success());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn signal(signal: &str, server: &str, children: &[String]) {
    let mut kill = Command::new("kill");
    // One of them may have gone by itself meanwhile.
    kill.arg(signal).arg(server).args(children).stderr(Stdio::null()).status().expect("kill");
}

fn children(parent: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().into_string().ok());
    numbers.filter(|number| status(number, "PPid:").as_deref() == Some(parent)).collect()
}

/// A zombie is dead: nobody has buried it yet.
fn is_alive(process: &str) -> bool {
    status(process, "State:").is_some_and(|state| !state.starts_with('Z'))
}

fn status(process: &str, field: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(value.trim().to_owned())
}

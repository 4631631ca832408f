//! The bridge as a process, and what it used.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Of the times at which is asked whether it has ended.
const LOOK_EVERY: usize = 10;

pub(crate) struct Bridge {
    child: Child,
    _folder: TempDir,
    peak_kib: u64,
    cpu: Duration,
}

impl Bridge {
    /// `trestle COMMAND` on a database and a topic.
    pub(crate) fn start(command: &str, url: &str, topic: &str) -> Self {
        Self::start_with(command, url, topic, "")
    }

    /// With more settings: of the rail, and then whatever follows.
    pub(crate) fn start_with(command: &str, url: &str, topic: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let toml = format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\n[rails.kafka]\nkind = \"kafka\"\ntopic = \"{topic}\"\n{more}"
        );
        std::fs::write(folder.path().join("trestle.toml"), toml).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_trestle"))
            .arg(command)
            .current_dir(folder.path())
            .env("DATABASE_URL", url)
            .env("TRESTLE_LOG", "warn")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, _folder: folder, peak_kib: 0, cpu: Duration::ZERO }
    }

    /// Waits until it ends by itself, looking at what it uses: not all the time, because that takes of the same processors.
    pub(crate) async fn ended(&mut self) {
        loop {
            self.look();
            for _ in 0..LOOK_EVERY {
                if let Some(status) = self.child.try_wait().unwrap() {
                    assert!(status.success(), "the bridge failed");
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// Takes note of its memory and processor time so far.
    pub(crate) fn look(&mut self) {
        let process = format!("/proc/{}", self.child.id());
        let status = std::fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kib) = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()) {
            self.peak_kib = kib;
        }
        let stat = std::fs::read_to_string(format!("{process}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        // Fields 14 and 15 of the line, in hundredths of a second.
        if let (Some(user), Some(system)) = (fields.get(11), fields.get(12)) {
            let ticks: u64 = user.parse::<u64>().unwrap_or(0) + system.parse::<u64>().unwrap_or(0);
            if ticks > 0 {
                self.cpu = Duration::from_millis(ticks * 10);
            }
        }
    }

    pub(crate) fn peak_mb(&self) -> f64 {
        self.peak_kib as f64 / 1_024.0
    }

    pub(crate) fn cpu(&self) -> Duration {
        self.cpu
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A bridge that a test starts, stops, kills and reads the log of.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Database, Topic};

/// Whatever takes longer than this has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a bridge is started with.
#[derive(Clone)]
pub(crate) struct Setup {
    url: String,
    pub(crate) toml: String,
    environment: Vec<(String, String)>,
}

impl Setup {
    /// As a user who is a member of the executor's role and of nothing else.
    pub(crate) async fn new(database: &Database) -> Self {
        let url = database.url_as("symphony_executor").await;
        let toml = "[admin]\nlisten = \"127.0.0.1:0\"\n".to_owned();
        Self { url, toml, environment: Vec::new() }
    }

    /// With a Kafka rail called `kafka` on this topic.
    pub(crate) async fn kafka(database: &Database, topic: &Topic) -> Self {
        Self::new(database).await.and(&format!(
            "[rails.kafka]\nkind = \"kafka\"\ntopic = \"{}\"\nschema = \"any\"\ndelivery_timeout_seconds = 5\n",
            topic.name()
        ))
    }

    pub(crate) fn and(mut self, toml: &str) -> Self {
        self.toml.push_str(toml);
        self
    }

    /// A worker that dies when it reaches this place.
    pub(crate) fn doomed(&self, place: &str) -> Bridge {
        self.clone().env("TRESTLE_FAILPOINT", place).run()
    }

    /// The same, but with another word in its configuration.
    pub(crate) fn instead(mut self, word: &str, other: &str) -> Self {
        assert!(self.toml.contains(word), "no {word} in {}", self.toml);
        self.toml = self.toml.replace(word, other);
        self
    }

    /// The same, but on another database.
    pub(crate) async fn on(mut self, database: &Database) -> Self {
        self.url = database.url_as("symphony_executor").await;
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `trestle run`
    pub(crate) fn run(&self) -> Bridge {
        self.start(&["run"])
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Bridge {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("trestle.toml"), &self.toml).expect("a file");
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("trestle"));
        for (name, _) in std::env::vars_os() {
            if ["TRESTLE_", "PG"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        let child = command
            .args(arguments)
            .current_dir(folder.path())
            .env("DATABASE_URL", &self.url)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the bridge starts");
        Bridge::watch(child, folder)
    }
}

/// Killed when the test ends.
pub(crate) struct Bridge {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    readers: [JoinHandle<()>; 2],
    _folder: TempDir,
}

impl Bridge {
    fn watch(mut child: Child, folder: TempDir) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let readers = [
            keep(child.stdout.take().expect("its stdout"), Arc::clone(&log)),
            keep(child.stderr.take().expect("its stderr"), Arc::clone(&log)),
        ];
        Self { child, log, readers, _folder: folder }
    }

    /// Everything that it has written, to stderr or elsewhere.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Sends a signal by its name: `TERM`, `STOP`, `CONT`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .expect("kill");
        assert!(status.success());
    }

    /// The most memory that it has had, in MB.
    pub(crate) fn peak_mb(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("its status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
        peak.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1_024
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_some()
    }

    /// Waits until it has ended, and its last words have been read.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.child.try_wait().expect("its status");
            if let Some(status) =
                status.filter(|_| self.readers.iter().all(JoinHandle::is_finished))
            {
                return status;
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until it stands still.
    pub(crate) async fn stopped(&self) {
        let until = Instant::now() + PATIENCE;
        let path = format!("/proc/{}/stat", self.child.id());
        while !std::fs::read_to_string(&path).expect("its state").contains(") T ") {
            assert!(Instant::now() < until, "it does not stop:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn logged(&self, words: &str) {
        self.logged_times(words, 1).await;
    }

    /// Waits until it has logged these words so often.
    pub(crate) async fn logged_times(&self, words: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        while self.log().matches(words).count() < times {
            assert!(
                Instant::now() < until,
                "{words:?} was not logged {times} times:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Remembers every line that comes out of this.
fn keep(output: impl Read + Send + 'static, log: Arc<Mutex<Vec<String>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            log.lock().unwrap().push(line);
        }
    })
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the bridge's log:\n{}", self.log());
        }
    }
}

//! The programs of examples/consumers, and what they print.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::process::PATIENCE;
use crate::support::Topic;

/// A record as a consumer prints it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Printed {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) partition: i32,
    pub(super) offset: i64,
}

/// A record as kcat prints it: names and values of headers in turn.
#[derive(Deserialize)]
struct OfKcat {
    key: String,
    payload: String,
    headers: Vec<String>,
    partition: i32,
    offset: i64,
}

/// Where stack/clients.sh has put what the programs need.
pub(super) struct Clients(PathBuf);

impl Clients {
    /// Nothing where they could not be installed; `make test` says so, and does not let CI pass.
    pub(super) fn find() -> Option<Self> {
        let folder = std::env::var_os("CLIENTS_DIR")
            .expect("CLIENTS_DIR is not set: run `make test`, which installs Kafka clients");
        (!folder.is_empty()).then(|| Self(folder.into()))
    }

    /// Every record of a topic.
    pub(super) async fn kcat(&self, topic: &Topic) -> Vec<Printed> {
        let mut command = Command::new(example("kcat.sh"));
        command.args([&brokers(), topic.name()]);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        lines(&output.stdout).into_iter().map(OfKcat::plain).collect()
    }

    /// What each of the two consumers prints until it has committed `all` records of the topic.
    pub(super) async fn consume(&self, topic: &Topic, all: &[Printed]) -> [Vec<Printed>; 2] {
        let mut python = Command::new(self.0.join("python/bin/python"));
        python.arg(example("consumer.py"));
        let mut node = Command::new("node");
        node.arg(example("consumer.js")).env("NODE_PATH", self.0.join("node_modules"));
        let (python, node) =
            tokio::join!(consume(python, "python", topic, all), consume(node, "node", topic, all));
        [python, node]
    }
}

impl OfKcat {
    fn plain(self) -> Printed {
        let pairs = self.headers.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let headers: BTreeMap<String, String> = pairs.collect();
        assert_eq!(headers.len() * 2, self.headers.len(), "a header stands there twice");
        let Self { key, payload: value, partition, offset, .. } = self;
        Printed { key, value, headers, partition, offset }
    }
}

async fn consume(mut program: Command, name: &str, topic: &Topic, all: &[Printed]) -> Vec<Printed> {
    let group = format!("{}-{name}", topic.name());
    program.args([&brokers(), topic.name(), &group]).stdout(Stdio::piped());
    let mut running = Running(program.spawn().expect("the consumer starts"));
    let (ends, until) = (ends(all), Instant::now() + PATIENCE);
    while topic.committed(&group).await != ends {
        assert_eq!(running.0.try_wait().unwrap(), None, "{name} has ended");
        assert!(Instant::now() < until, "{name} does not commit everything");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::task::spawn_blocking(|| running.stop()).await.expect("it stops when it is asked to")
}

/// For each partition, the offset behind its last record.
fn ends(records: &[Printed]) -> HashMap<i32, i64> {
    let mut ends = HashMap::new();
    for record in records {
        let end: &mut i64 = ends.entry(record.partition).or_default();
        *end = (*end).max(record.offset + 1);
    }
    ends
}

/// Killed when the test ends.
struct Running(Child);

impl Running {
    /// Asks it to stop. What it prints fits into a pipe, so it never waits for us.
    fn stop(mut self) -> Vec<Printed> {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let mut printed = Vec::new();
        self.0.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
        lines(&printed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lines<T: DeserializeOwned>(printed: &[u8]) -> Vec<T> {
    let text = std::str::from_utf8(printed).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/consumers").join(name)
}

fn brokers() -> String {
    std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set: run `make test`")
}

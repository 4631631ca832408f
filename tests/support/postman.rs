//! Stands between one bridge and the broker, reads the requests, and delivers some of them late.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::proxy::Names;

const PRODUCE: i16 = 0;
const END_TXN: i16 = 26;
/// How long the broker gets to write the marks of a transaction into its partitions.
const TO_WRITE_MARKS: Duration = Duration::from_millis(50);

/// When a late commit arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the broker has any row of the next transaction.
    BeforeRows,
    /// When it has taken the first of them, and whatever has come with them.
    AmongRows,
}

/// For bridges with one shard: it takes the requests of all producers for those of one.
pub(crate) struct Postman {
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    broker: String,
    /// The topic of the rows, as a request names it: other names begin like it.
    topic: Vec<u8>,
    /// So many commits are still to be delivered late.
    late_commits: usize,
    when: When,
    commit: Commit,
    /// How many were.
    delivered_late: usize,
    /// Requests with rows are kept back, until they are let go.
    keeps_records: bool,
    kept: Vec<Vec<u8>>,
}

/// What happens to a commit that is to be late.
enum Commit {
    None,
    /// Kept back: its connection was cut, so that the client sends it again.
    Kept(Vec<u8>),
    /// The client's second one got through.
    Succeeded(Vec<u8>),
    /// And this request with rows has followed it.
    Followed(Vec<u8>, Letter),
}

/// A request, as its answer names it: by its connection, and its number there.
type Letter = (u16, [u8; 4]);

impl Postman {
    /// Between a bridge and the broker to which it brings rows, in this topic.
    pub(crate) fn new(topic: &str) -> Self {
        let broker =
            std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set: run `make test`");
        let (host, port) = broker.rsplit_once(':').expect("host:port");
        let listener = TcpListener::bind((host, 0)).expect("a free port");
        let own_port = listener.local_addr().unwrap().port();
        let names = Names::new(host, port.parse().unwrap(), own_port);
        let address = format!("{host}:{own_port}");
        let state = Arc::new(Mutex::new(State {
            broker: broker.clone(),
            topic: compact(topic),
            late_commits: 0,
            when: When::AmongRows,
            commit: Commit::None,
            delivered_late: 0,
            keeps_records: false,
            kept: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accept(client, &names, &shared);
            }
        });
        Self { address, state }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The next commits arrive a second time, in the transaction after theirs.
    pub(crate) fn deliver_commits_late(&self, count: usize, when: When) {
        let mut state = self.state.lock().unwrap();
        (state.late_commits, state.when) = (count, when);
    }

    pub(crate) fn delivered_late(&self) -> usize {
        self.state.lock().unwrap().delivered_late
    }

    pub(crate) fn keep_records(&self) {
        self.state.lock().unwrap().keeps_records = true;
    }

    /// How many requests with rows are kept back.
    pub(crate) fn kept(&self) -> usize {
        self.state.lock().unwrap().kept.len()
    }

    /// Delivers what was kept back, to a broker that has long heard from somebody else.
    pub(crate) fn let_go(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        let kept = std::mem::take(&mut state.kept);
        kept.iter().for_each(|request| deliver(&state.broker, request));
        kept.len()
    }
}

/// On a connection of its own, and waits for the answer.
fn deliver(broker: &str, request: &[u8]) {
    let mut connection = TcpStream::connect(broker).expect("the broker");
    connection.write_all(request).expect("the broker takes it");
    let answer = frame(&mut connection);
    assert!(answer.is_some(), "the broker answers");
}

fn accept(client: TcpStream, names: &Names, state: &Arc<Mutex<State>>) {
    let broker = state.lock().unwrap().broker.clone();
    let Ok(server) = TcpStream::connect(broker) else { return };
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    let (mut to_client, mut from_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (names, answers) = (names.clone(), Arc::clone(state));
    let connection = server.local_addr().unwrap().port();
    thread::spawn(move || {
        while let Some(mut answer) = frame(&mut from_server) {
            answers.lock().unwrap().see_answer((connection, number(&answer[4..])));
            names.replace(&mut answer);
            if to_client.write_all(&answer).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let state = Arc::clone(state);
    thread::spawn(move || {
        let (mut from_client, mut to_server) = (client, server);
        while let Some(request) = frame(&mut from_client) {
            let passes = state.lock().unwrap().pass(&request, connection);
            if !passes || to_server.write_all(&request).is_err() {
                break;
            }
        }
        let _ = to_server.shutdown(Shutdown::Both);
        let _ = from_client.shutdown(Shutdown::Both);
    });
}

impl State {
    /// Whether a request goes on to the broker. Otherwise its connection is cut.
    fn pass(&mut self, request: &[u8], connection: u16) -> bool {
        match i16::from_be_bytes([request[4], request[5]]) {
            END_TXN => self.pass_commit(request),
            PRODUCE if self.keeps_records && self.has_rows(request) => {
                self.kept.push(request.to_vec());
                false
            }
            PRODUCE if self.has_rows(request) => {
                self.see_rows((connection, number(&request[8..])));
                true
            }
            _ => true,
        }
    }

    fn pass_commit(&mut self, request: &[u8]) -> bool {
        match std::mem::replace(&mut self.commit, Commit::None) {
            Commit::None if self.late_commits > 0 => {
                self.late_commits -= 1;
                self.commit = Commit::Kept(request.to_vec());
                false
            }
            Commit::Kept(kept) => {
                self.commit = Commit::Succeeded(kept);
                true
            }
            other => {
                self.commit = other;
                true
            }
        }
    }

    /// Not only what the register is told.
    fn has_rows(&self, request: &[u8]) -> bool {
        request.windows(self.topic.len()).any(|bytes| bytes == self.topic)
    }

    /// Rows of the next transaction are about to go on to the broker.
    fn see_rows(&mut self, rows: Letter) {
        self.commit = match std::mem::replace(&mut self.commit, Commit::None) {
            Commit::Succeeded(kept) if self.when == When::BeforeRows => self.deliver_late(&kept),
            Commit::Succeeded(kept) => Commit::Followed(kept, rows),
            other => other,
        };
    }

    /// The broker has taken them, and their sender does not know it yet.
    fn see_answer(&mut self, answered: Letter) {
        self.commit = match std::mem::replace(&mut self.commit, Commit::None) {
            Commit::Followed(kept, rows) if rows == answered => self.deliver_late(&kept),
            other => other,
        };
    }

    fn deliver_late(&mut self, commit: &[u8]) -> Commit {
        deliver(&self.broker, commit);
        thread::sleep(TO_WRITE_MARKS);
        self.delivered_late += 1;
        Commit::None
    }
}

/// A short text in the protocol's present versions: its length and one, in a byte, and then itself.
fn compact(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len() + 1).ok().filter(|length| *length < 128);
    [&[length.expect("a short name")], text.as_bytes()].concat()
}

/// The number of a request, which its answer repeats.
fn number(bytes: &[u8]) -> [u8; 4] {
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

/// A request or an answer, with its length before it.
fn frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame).ok()?;
    let length =
        usize::try_from(i32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]])).ok()?;
    frame.resize(4 + length, 0);
    from.read_exact(&mut frame[4..]).ok()?;
    Some(frame)
}

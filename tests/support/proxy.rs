//! Stands between the bridge and a real server, and gets in the way.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::server;

/// What happens to bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Pass,
    /// The connection stands, but nothing comes through, in either direction.
    Hold,
    /// Requests reach the server; its answers get lost.
    LoseAnswers,
    /// Whoever connects is turned away.
    TurnAway,
}

pub(crate) struct Proxy {
    host: String,
    port: u16,
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    mode: Mode,
    connections: Vec<TcpStream>,
    opened: usize,
    /// The connections up to this one are silent for good.
    stranded: usize,
}

impl Proxy {
    /// In front of the broker that the tests run against.
    pub(crate) fn to_kafka() -> Self {
        let broker =
            std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set: run `make test`");
        Self::to(&broker, |host, port, own_port| Some(Names::new(host, port, own_port)))
    }

    /// In front of the database server that the tests run against.
    pub(crate) fn to_postgres() -> Self {
        Self::to(&server::address(), |_, _, _| None)
    }

    /// In front of a broker that is asked for nothing but a handshake: where it is, it says as it is.
    pub(crate) fn to_address(address: &str) -> Self {
        Self::to(address, |_, _, _| None)
    }

    fn to(target: &str, names: impl Fn(&str, u16, u16) -> Option<Names>) -> Self {
        let (host, port) = target.rsplit_once(':').expect("host:port");
        let listener = TcpListener::bind((host, 0)).expect("a free port");
        let own_port = listener.local_addr().unwrap().port();
        let names = names(host, port.parse().unwrap(), own_port);
        let state = State { mode: Mode::Pass, connections: Vec::new(), opened: 0, stranded: 0 };
        let state = Arc::new(Mutex::new(state));
        let proxy = Self {
            host: host.to_owned(),
            port: own_port,
            address: format!("{host}:{own_port}"),
            state: Arc::clone(&state),
        };
        let target = target.to_owned();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accept(client, &target, &state, names.as_ref());
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A connection string for the same database, by way of here.
    pub(crate) fn instead_in(&self, url: &str) -> String {
        server::elsewhere(url, &self.host, self.port)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.state.lock().unwrap().mode = mode;
    }

    /// Cuts every connection that there is.
    pub(crate) fn cut(&self) {
        for connection in self.state.lock().unwrap().connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Nothing more comes through any connection that there is, and nobody is told; new ones work.
    pub(crate) fn strand(&self) {
        let mut state = self.state.lock().unwrap();
        state.stranded = state.opened;
    }
}

/// A broker tells clients where it is: a host, and a port in four bytes. Here it says that it is
/// where the proxy is.
#[derive(Clone)]
pub(super) struct Names {
    from: Vec<u8>,
    to: Vec<u8>,
}

fn name(host: &str, port: u16) -> Vec<u8> {
    [host.as_bytes(), &i32::from(port).to_be_bytes()].concat()
}

impl Names {
    /// Of a broker at the first port that is to be reached at the second.
    pub(super) fn new(host: &str, from: u16, to: u16) -> Self {
        Self { from: name(host, from), to: name(host, to) }
    }

    pub(super) fn replace(&self, bytes: &mut [u8]) {
        let length = self.from.len();
        for start in 0..bytes.len().saturating_sub(length - 1) {
            if bytes[start..start + length] == *self.from {
                bytes[start..start + length].copy_from_slice(&self.to);
            }
        }
    }
}

fn accept(client: TcpStream, target: &str, state: &Arc<Mutex<State>>, names: Option<&Names>) {
    let mut locked = state.lock().unwrap();
    if locked.mode == Mode::TurnAway {
        return;
    }
    let Ok(server) = TcpStream::connect(target) else { return };
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        locked.connections.push(stream.try_clone().unwrap());
    }
    locked.opened += 1;
    let number = locked.opened;
    let (to_server, from_server) = (server.try_clone().unwrap(), server);
    let (from_client, to_client) = (client.try_clone().unwrap(), client);
    let requests = Way {
        number,
        open_in: &[Mode::Pass, Mode::LoseAnswers],
        names: None,
        state: state.clone(),
    };
    let answers =
        Way { number, open_in: &[Mode::Pass], names: names.cloned(), state: state.clone() };
    thread::spawn(move || requests.pump(from_client, to_server));
    thread::spawn(move || answers.pump(from_server, to_client));
}

/// One direction of a connection.
struct Way {
    number: usize,
    open_in: &'static [Mode],
    names: Option<Names>,
    state: Arc<Mutex<State>>,
}

impl Way {
    fn pump(self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let bytes = &mut buffer[..count];
            if let Some(names) = &self.names {
                names.replace(bytes);
            }
            if self.is_open() && to.write_all(bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Waits while everything is held.
    fn is_open(&self) -> bool {
        loop {
            {
                let state = self.state.lock().unwrap();
                if state.mode != Mode::Hold {
                    return self.number > state.stranded && self.open_in.contains(&state.mode);
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

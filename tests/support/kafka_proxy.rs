//! Stands between a rail and the real broker, and gets in the way.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Pass,
    /// The connection stands, but nothing comes through, in either direction.
    Hold,
    /// Requests reach the broker; its answers get lost.
    LoseAnswers,
    /// Whoever connects is turned away.
    TurnAway,
}

pub(crate) struct Proxy {
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    mode: Mode,
    connections: Vec<TcpStream>,
}

/// The broker that the tests run against.
fn broker() -> String {
    std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set: run `make test`")
}

impl Proxy {
    pub(crate) fn new() -> Self {
        let broker = broker();
        let (host, port) = broker.rsplit_once(':').expect("host:port");
        let listener = TcpListener::bind((host, 0)).expect("a free port");
        let own_port = listener.local_addr().unwrap().port();
        let names = Names { from: name(host, port.parse().unwrap()), to: name(host, own_port) };
        let state = Arc::new(Mutex::new(State { mode: Mode::Pass, connections: Vec::new() }));
        let proxy = Self { address: format!("{host}:{own_port}"), state: Arc::clone(&state) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accept(client, &state, &names);
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
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
}

/// A broker tells clients where it is: a host, and a port in four bytes. Here it says that it is
/// where the proxy is.
#[derive(Clone)]
struct Names {
    from: Vec<u8>,
    to: Vec<u8>,
}

fn name(host: &str, port: u16) -> Vec<u8> {
    [host.as_bytes(), &i32::from(port).to_be_bytes()].concat()
}

impl Names {
    fn replace(&self, bytes: &mut [u8]) {
        let length = self.from.len();
        for start in 0..bytes.len().saturating_sub(length - 1) {
            if bytes[start..start + length] == *self.from {
                bytes[start..start + length].copy_from_slice(&self.to);
            }
        }
    }
}

fn accept(client: TcpStream, state: &Arc<Mutex<State>>, names: &Names) {
    let mut locked = state.lock().unwrap();
    if locked.mode == Mode::TurnAway {
        return;
    }
    let Ok(server) = TcpStream::connect(broker()) else { return };
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        locked.connections.push(stream.try_clone().unwrap());
    }
    let (to_server, from_server) = (server.try_clone().unwrap(), server);
    let (from_client, to_client) = (client.try_clone().unwrap(), client);
    let (requests, answers) = (Arc::clone(state), Arc::clone(state));
    thread::spawn(move || {
        pump(from_client, to_server, &requests, &[Mode::Pass, Mode::LoseAnswers], None)
    });
    let names = names.clone();
    thread::spawn(move || pump(from_server, to_client, &answers, &[Mode::Pass], Some(&names)));
}

fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    state: &Mutex<State>,
    open_in: &[Mode],
    names: Option<&Names>,
) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..count];
        if let Some(names) = names {
            names.replace(bytes);
        }
        let mut mode = state.lock().unwrap().mode;
        while mode == Mode::Hold {
            thread::sleep(Duration::from_millis(5));
            mode = state.lock().unwrap().mode;
        }
        if open_in.contains(&mode) && to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

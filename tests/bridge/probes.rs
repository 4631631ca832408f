//! What a bridge answers when it is asked whether it is ready.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::process::{PATIENCE, Setup};

pub(crate) struct Probes(SocketAddr);

impl Probes {
    /// The same bridge with its probes on a port that the test knows.
    pub(crate) fn of(mut setup: Setup) -> (Setup, Self) {
        let bound = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = bound.local_addr().expect("its address");
        setup.toml = setup.toml.replace("127.0.0.1:0", &address.to_string());
        (setup, Self(address))
    }

    /// Waits until it says that it is ready, or that it is not.
    pub(crate) async fn say(&self, ready: bool) {
        let wanted = if ready { "HTTP/1.1 200 " } else { "HTTP/1.1 503 " };
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("/readyz").await;
            if answer.as_deref().is_ok_and(|answer| answer.starts_with(wanted)) {
                break;
            }
            assert!(Instant::now() < until, "never {wanted}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Whatever else is away, the process is alive.
        let alive = self.ask("/livez").await.expect("an answer");
        assert!(alive.starts_with("HTTP/1.1 200 "), "{alive}");
    }

    async fn ask(&self, path: &'static str) -> std::io::Result<String> {
        let address = self.0;
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address)?;
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: trestle\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        asked.await.expect("an answer or an error")
    }
}

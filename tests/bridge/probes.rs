//! What a bridge answers when it is asked how it is doing.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::process::{PATIENCE, Setup};

pub(crate) struct Probes(SocketAddr);

/// What `/metrics` shows: the type of each metric, and the value of each series as it is spelled.
pub(crate) struct Scrape {
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) series: BTreeMap<String, f64>,
}

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
        self.answer(|answer| answer.starts_with(wanted)).await;
    }

    /// Waits until `/readyz` gives such an answer.
    pub(crate) async fn answer(&self, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("/readyz").await;
            if let Ok(answer) = &answer
                && wanted(answer)
            {
                self.assert_alive().await;
                return answer.clone();
            }
            assert!(Instant::now() < until, "never so: {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whatever else is away, the process is alive.
    async fn assert_alive(&self) {
        let alive = self.ask("/livez").await.expect("an answer");
        assert!(alive.starts_with("HTTP/1.1 200 "), "{alive}");
    }

    /// Waits until a scrape shows what is wanted.
    pub(crate) async fn scrape(&self, wanted: impl Fn(&Scrape) -> bool) -> Scrape {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("/metrics").await.unwrap_or_default();
            let scrape = Scrape::read(&answer);
            if wanted(&scrape) {
                return scrape;
            }
            assert!(Instant::now() < until, "never so: {answer}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
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

impl Scrape {
    fn read(text: &str) -> Self {
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let types = types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
        let series = text.lines().filter(|line| !line.starts_with('#'));
        let series = series.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self { types, series: series.collect() }
    }

    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        self.series.get(series).copied()
    }
}

//! A receiver that answers as it is told, or does not.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Between two bytes of a slow answer: never so long that the connection looks dead.
const PAUSE: Duration = Duration::from_millis(50);

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Request line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// What is done with a request.
pub(crate) enum Reply {
    /// A complete answer; the connection stays open.
    Whole(Vec<u8>),
    /// These bytes, and then the end of the connection.
    Raw(Vec<u8>),
    /// The first bytes at once, the others one by one.
    Drip(&'static str, &'static str),
    /// An answer with a body of so many bytes.
    Flood(usize),
    /// Nothing, until the other side goes away.
    Hang,
    /// A complete answer, when a permit is there.
    When(Arc<Semaphore>),
}

impl Reply {
    pub(crate) fn status(status: u16, body: impl AsRef<str>) -> Self {
        Self::with_header(status, "x-none: none", body)
    }

    pub(crate) fn with_header(status: u16, header: &str, body: impl AsRef<str>) -> Self {
        let body = body.as_ref();
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status} X\r\n{header}\r\ncontent-length: {length}\r\n\r\n{body}");
        Self::Whole(answer.into_bytes())
    }
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

type Script = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

#[derive(Clone)]
struct Shared {
    script: Arc<Mutex<Script>>,
    requests: watch::Sender<Vec<Request>>,
    under_way: Arc<AtomicUsize>,
    most_under_way: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
}

/// The receiver. It is gone when this is dropped.
pub(crate) struct Receiver {
    address: SocketAddr,
    scheme: &'static str,
    shared: Shared,
    task: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(None, Arc::new(script)).await
    }

    pub(crate) async fn start_tls(acceptor: TlsAcceptor) -> Self {
        Self::listen(Some(acceptor), Arc::new(|_: &Request| Reply::status(200, ""))).await
    }

    async fn listen(tls: Option<TlsAcceptor>, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Shared {
            script: Arc::new(Mutex::new(script)),
            requests: watch::Sender::new(Vec::new()),
            under_way: Arc::default(),
            most_under_way: Arc::default(),
            written: Arc::default(),
        };
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let task = tokio::spawn(accept(listener, tls, shared.clone()));
        Self { address, scheme, shared, task }
    }

    pub(crate) fn url(&self) -> String {
        let host = if self.scheme == "https" { "localhost" } else { "127.0.0.1" };
        format!("{}://{host}:{}/payments", self.scheme, self.address.port())
    }

    pub(crate) fn reply_with(&self, script: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.shared.script.lock().unwrap() = Arc::new(script);
    }

    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        assert!((&mut self.task).await.unwrap_err().is_cancelled());
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.borrow().clone()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for(&self, count: usize) {
        let mut requests = self.shared.requests.subscribe();
        requests.wait_for(|requests| requests.len() >= count).await.unwrap();
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.shared.most_under_way.load(Ordering::SeqCst)
    }

    /// How many bytes of a flood went out.
    pub(crate) fn written(&self) -> usize {
        self.shared.written.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Shared) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), shared.clone());
        // A client that goes away in the middle is what some of these tests are about.
        tokio::spawn(async move { serve_connection(stream, tls, shared).await });
    }
}

async fn serve_connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    shared: Shared,
) -> io::Result<()> {
    match tls {
        Some(tls) => match tls.accept(stream).into_fallible().await {
            Ok(stream) => serve(stream, shared).await,
            // Closing with bytes unread would take our alert away from the client.
            Err((error, mut stream)) => {
                stream.shutdown().await?;
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
                Err(error)
            }
        },
        None => serve(stream, shared).await,
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, shared: Shared) -> io::Result<()> {
    while let Some(request) = read_request(&mut stream).await? {
        let script = Arc::clone(&shared.script.lock().unwrap());
        let reply = script(&request);
        let under_way = shared.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_under_way.fetch_max(under_way, Ordering::SeqCst);
        shared.requests.send_modify(|requests| requests.push(request));
        if let Reply::When(permits) = &reply {
            permits.acquire().await.unwrap().forget();
        }
        // Counted as done before the answer leaves, because the next request may follow at once.
        shared.under_way.fetch_sub(1, Ordering::SeqCst);
        if !answer(&mut stream, reply, &shared).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether the connection stays open.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    reply: Reply,
    shared: &Shared,
) -> io::Result<bool> {
    match reply {
        Reply::Whole(bytes) => stream.write_all(&bytes).await?,
        Reply::When(_) => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?,
        Reply::Raw(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await?;
            return Ok(false);
        }
        Reply::Drip(first, others) => {
            stream.write_all(first.as_bytes()).await?;
            for byte in others.bytes() {
                stream.write_all(&[byte]).await?;
                tokio::time::sleep(PAUSE).await;
            }
        }
        Reply::Flood(length) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            for _ in 0..length / 4096 {
                stream.write_all(&[b'x'; 4096]).await?;
                shared.written.fetch_add(4096, Ordering::SeqCst);
            }
        }
        Reply::Hang => {
            tokio::io::copy(stream, &mut tokio::io::sink()).await?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// Nothing when the client has closed the connection.
async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end + 2]).into_owned();
            let mut request = Request { head, body: bytes.split_off(end + 4) };
            let length: usize = request.header("content-length").unwrap().parse().unwrap();
            let have = request.body.len();
            request.body.resize(length, 0);
            stream.read_exact(&mut request.body[have..]).await?;
            return Ok(Some(request));
        }
        let mut more = [0; 4096];
        match stream.read(&mut more).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&more[..count]),
        }
    }
}

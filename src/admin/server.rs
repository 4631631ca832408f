//! `/livez`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::AdminError;
use super::health::{Health, NotReady};
use super::metrics::scraped;

/// How often samples are folded into their histograms. Between two scrapes they would pile up.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
/// A client that does not finish its request holds up a shutdown for no longer.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone)]
struct Watched {
    health: Arc<Health>,
    recorder: PrometheusHandle,
}

/// Takes the address of `admin.listen`, apart from serving there: a taken port is found out before
/// the first claim.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, AdminError> {
    TcpListener::bind(address).await.map_err(|source| AdminError::Listen { address, source })
}

/// Serves until `shutdown` completes, and keeps the recorder in order meanwhile.
pub async fn serve(
    listener: TcpListener,
    recorder: PrometheusHandle,
    health: Arc<Health>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), AdminError> {
    let (stopping, stopped) = oneshot::channel();
    let shutdown = async move {
        shutdown.await;
        // Nobody listens any more if the server has stopped by itself.
        let _ = stopping.send(());
    };
    let upkeep = keep_up(recorder.clone());
    let router = router(Watched { health, recorder });
    let server = axum::serve(listener, router).with_graceful_shutdown(shutdown);
    tokio::select! {
        served = server.into_future() => served.map_err(AdminError::Serve),
        () = overdue(stopped) => Ok(()),
        never = upkeep => match never {},
    }
}

async fn overdue(stopped: oneshot::Receiver<()>) {
    match stopped.await {
        Ok(()) => tokio::time::sleep(SHUTDOWN_PATIENCE).await,
        Err(_) => std::future::pending().await,
    }
}

async fn keep_up(recorder: PrometheusHandle) -> Infallible {
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        interval.tick().await;
        recorder.run_upkeep();
    }
}

fn router(watched: Watched) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(render))
        .with_state(watched)
}

async fn live(State(watched): State<Watched>) -> Response {
    probe(watched.health.live())
}

async fn ready(State(watched): State<Watched>) -> Response {
    probe(watched.health.ready())
}

async fn render(State(watched): State<Watched>) -> Response {
    scraped(watched.health.stalled());
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], watched.recorder.render()).into_response()
}

fn probe(state: Result<(), NotReady>) -> Response {
    match state {
        Ok(()) => "ok\n".into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use metrics_exporter_prometheus::PrometheusBuilder;
    use tokio::task::JoinHandle;

    use super::*;

    struct Running {
        address: SocketAddr,
        health: Arc<Health>,
        stop: oneshot::Sender<()>,
        served: JoinHandle<Result<(), AdminError>>,
    }

    async fn start() -> Running {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || metrics::counter!("seen_total").increment(1));
        let health = Arc::new(Health::new(Duration::from_secs(60)));
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(serve(listener, recorder.handle(), Arc::clone(&health), async {
            let _ = stopped.await;
        }));
        Running { address, health, stop, served }
    }

    /// The whole answer to one request.
    async fn ask(address: SocketAddr, method: &'static str, path: &'static str) -> String {
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: trestle\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        asked.await.unwrap()
    }

    #[tokio::test]
    async fn the_probes_say_what_the_health_is() {
        let running = start().await;
        let answer = ask(running.address, "GET", "/livez").await;
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n"),
            "{answer}"
        );
        let answer = ask(running.address, "GET", "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.ends_with("there is no connection to the database\n"), "{answer}");
        running.health.connected(true);
        assert!(ask(running.address, "GET", "/readyz").await.starts_with("HTTP/1.1 200 "));
    }

    #[tokio::test]
    async fn metrics_are_rendered_for_prometheus() {
        let running = start().await;
        let answer = ask(running.address, "GET", "/metrics").await;
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("\nseen_total 1\n"), "{answer}");
    }

    #[tokio::test]
    async fn only_get_and_head_of_known_paths_are_answered() {
        let running = start().await;
        let answer = ask(running.address, "HEAD", "/livez").await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(ask(running.address, "GET", "/").await.starts_with("HTTP/1.1 404 "));
        for method in ["POST", "PUT", "DELETE"] {
            let answer = ask(running.address, method, "/metrics").await;
            assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_an_error_that_names_the_key() {
        let running = start().await;
        let message = bind(running.address).await.unwrap_err().to_string();
        assert!(message.contains("`admin.listen`"), "{message}");
        assert!(message.contains(&running.address.to_string()), "{message}");
    }

    #[tokio::test]
    async fn it_stops_when_told_and_leaves_the_port() {
        let running = start().await;
        ask(running.address, "GET", "/livez").await;
        running.stop.send(()).unwrap();
        running.served.await.unwrap().unwrap();
        std::net::TcpListener::bind(running.address).unwrap();
    }

    #[tokio::test]
    async fn a_client_that_never_finishes_does_not_hold_up_the_end() {
        let running = start().await;
        let mut slow = TcpStream::connect(running.address).unwrap();
        slow.write_all(b"GET /livez HT").unwrap();
        // The server has taken the slow connection, which came first, once it answers another.
        ask(running.address, "GET", "/livez").await;
        running.stop.send(()).unwrap();
        let limit = SHUTDOWN_PATIENCE * 10;
        tokio::time::timeout(limit, running.served).await.unwrap().unwrap().unwrap();
    }
}

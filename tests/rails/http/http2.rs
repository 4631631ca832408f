//! HTTP/2, where the client could be tempted to send a request again by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::Response;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::authority::Authority;
use super::rail;
use crate::lanes::{self, Terms, deliver, words};

#[derive(Clone, Copy)]
enum Reply {
    Whole,
    /// The stream was not looked at, says the receiver.
    Refused,
    /// The connection ends, and nothing went wrong, says the receiver.
    GoAway,
}

/// What is settled of a lane of two rows, and how many requests came.
async fn carry(reply: Reply) -> (Vec<&'static str>, usize) {
    let authority = Authority::new();
    let acceptor = authority.acceptor("localhost", false, "h2");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let stream = acceptor.accept(stream).await.unwrap();
            tokio::spawn(serve(stream, reply, Arc::clone(&counted)));
        }
    });
    let rail =
        rail(json!({ "url": url, "ca_file": authority.ca_file(), "timeout_seconds": 5 })).unwrap();
    let settled = deliver(&rail, lanes::rows("anna", 2), Terms::default()).settled().await;
    server.abort();
    (words(&settled), requests.load(Ordering::SeqCst))
}

async fn serve(stream: TlsStream<TcpStream>, reply: Reply, requests: Arc<AtomicUsize>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        requests.fetch_add(1, Ordering::SeqCst);
        if matches!(reply, Reply::GoAway) {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        } else {
            tokio::spawn(answer(request.into_body(), respond, reply));
        }
    }
}

async fn answer(mut body: RecvStream, mut respond: SendResponse<axum::body::Bytes>, reply: Reply) {
    while let Some(chunk) = body.data().await {
        assert!(chunk.is_ok());
    }
    match reply {
        Reply::Whole => drop(respond.send_response(Response::new(()), true).unwrap()),
        Reply::Refused | Reply::GoAway => respond.send_reset(Reason::REFUSED_STREAM),
    }
}

#[tokio::test]
async fn rows_are_delivered() {
    assert_eq!(carry(Reply::Whole).await, (vec!["delivered"; 2], 2));
}

/// Whether a row is sent again is the ledger's decision, whatever the protocol allows.
#[tokio::test]
async fn the_client_never_sends_again_by_itself() {
    assert_eq!(carry(Reply::Refused).await, (vec!["in doubt"], 1));
    assert_eq!(carry(Reply::GoAway).await, (vec!["in doubt"], 1));
}

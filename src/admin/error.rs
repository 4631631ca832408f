//! What can go wrong with watching the bridge.

use std::net::SocketAddr;

use metrics_exporter_prometheus::BuildError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum AdminError {
    #[error("cannot listen on {address}: choose another address for `admin.listen`")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("the server of `admin.listen` stopped")]
    Serve(#[source] std::io::Error),
    #[error("cannot record metrics")]
    Recorder(#[from] BuildError),
}

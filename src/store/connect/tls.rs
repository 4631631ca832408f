//! The handshake, and the stream that comes of it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use super::binding;
use super::reason::TlsError;
use super::security::Security;

/// Makes handshakes.
#[derive(Clone)]
pub(in crate::store) struct Tls(Arc<Security>);

impl Tls {
    /// Finds out now what is wrong with the files.
    pub(super) fn new(security: Security) -> Result<Self, String> {
        security.client_config()?;
        Ok(Self(Arc::new(security)))
    }

    pub(super) fn security(&self) -> &Security {
        &self.0
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = TlsError;

    /// Reads the files again: certificates are renewed while the bridge runs.
    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, TlsError> {
        let config = self.0.client_config().map_err(TlsError::Files)?;
        Ok(Handshake { config: Arc::new(config), host: domain.to_owned() })
    }
}

/// One handshake with a server that was reached under this name.
pub(in crate::store) struct Handshake {
    config: Arc<ClientConfig>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = TlsError;
    type Future = Pin<Box<dyn Future<Output = Result<TlsStream, TlsError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Ok(name) = ServerName::try_from(self.host.clone()) else {
                return Err(TlsError::HostName(self.host));
            };
            let connected = TlsConnector::from(self.config).connect(name, socket).await;
            connected.map(TlsStream).map_err(|error| TlsError::Handshake(error, self.host))
        })
    }
}

/// An encrypted connection.
pub(in crate::store) struct TlsStream(tokio_rustls::client::TlsStream<Socket>);

impl tokio_postgres::tls::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        certificate
            .and_then(|certificate| binding::end_point(certificate))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

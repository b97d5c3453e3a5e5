//! TLS to PostgreSQL, which always checks the server's certificate and its name, with the rustls that the rest of
//! Provost uses.
//!
//! An adapter of Provost's own: it is short, and the crate for this needs three more crates to read certificates.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use sha2::Digest as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as ClientStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::StoreError;

/// Makes connections to servers whose certificates these authorities have signed.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts the authorities in a PEM file, or the public ones.
    ///
    /// # Errors
    /// [`StoreError::Setting`] if the file has none.
    pub(super) fn trusting(authorities: Option<&Path>) -> Result<Self, StoreError> {
        let mut roots = RootCertStore::empty();
        match authorities {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(path) => {
                let unfit =
                    |why: String| StoreError::Setting(format!("`ca` ({}): {why}", path.display()).into());
                let all = CertificateDer::pem_file_iter(path).map_err(|err| unfit(err.to_string()))?;
                for certificate in all {
                    let certificate = certificate.map_err(|err| unfit(err.to_string()))?;
                    roots.add(certificate).map_err(|err| unfit(err.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(unfit("there is no certificate in it".into()));
                }
            }
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|err| StoreError::Setting(err.to_string().into()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

/// A handshake that is about to begin.
pub(super) struct Handshake(Arc<ClientConfig>, ServerName<'static>);

/// A connection after its handshake.
pub(super) struct Secured<S>(ClientStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Secured<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake(self.0.clone(), name))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Secured<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secured<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { TlsConnector::from(self.0).connect(self.1, stream).await.map(Secured) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secured<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.0.get_ref().1.peer_certificates().and_then(<[_]>::first);
        match certificate.and_then(|it| binding(it)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

/// Returns the channel binding of RFC 5929: the certificate's hash, by the hash of its signature's algorithm, and
/// by SHA-256 if that is MD5 or SHA-1. `None` for an algorithm without a hash of its own, such as Ed25519, for
/// which PostgreSQL has no binding.
fn binding(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let algorithm = signature_algorithm(certificate)?;
    let bits = match (algorithm.strip_prefix(&RSA), algorithm.strip_prefix(&ECDSA)) {
        (Some([0x04 | 0x05 | 0x0b]), _) | (_, Some([0x02])) => 256,
        (Some([0x0c]), _) | (_, Some([0x03])) => 384,
        (Some([0x0d]), _) | (_, Some([0x04])) => 512,
        _ => return None,
    };
    Some(match bits {
        256 => sha2::Sha256::digest(certificate).to_vec(),
        384 => sha2::Sha384::digest(certificate).to_vec(),
        _ => sha2::Sha512::digest(certificate).to_vec(),
    })
}

/// Returns the object identifier of the algorithm with which a certificate is signed: the first member of the
/// second member of its sequence.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (0x30, whole, _) = element(certificate)? else { return None };
    let (_, _, behind) = element(whole)?;
    let (0x30, algorithm, _) = element(behind)? else { return None };
    match element(algorithm)? {
        (0x06, oid, _) => Some(oid),
        _ => None,
    }
}

/// Returns the tag and content of the first element of some DER, and the bytes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, short], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = if short < 0x80 {
        (usize::from(short), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(short & 0x7f)).filter(|it| it.0.len() <= 4)?;
        (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

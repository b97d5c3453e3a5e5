//! A server that takes notices: it writes down what it hears, and behaves as a test says. Over TLS it has a certificate for
//! `hooks.example` from an authority of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::support::eventually;

/// A request that was heard whole.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// As text, as far as it is one.
    pub(crate) body: String,
    pub(crate) raw: Vec<u8>,
    /// Seconds since the epoch.
    pub(crate) at: u64,
}

impl Heard {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// The fate of a request.
#[derive(Clone)]
pub(crate) enum Mood {
    /// It gets this answer, in full.
    Says(String),
    /// It gets none, and the connection stays open.
    Silent,
    /// The connection ends.
    HangsUp,
    /// The answer comes byte by byte, and never to its end.
    Trickles,
    /// A status of 200 with a body that does not end.
    Endless,
}

pub(crate) fn status(line: &str) -> Mood {
    Mood::Says(format!("HTTP/1.1 {line}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"))
}

#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) port: u16,
    pub(crate) authority: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    mood: Arc<Mutex<Mood>>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
}

impl Receiver {
    pub(crate) fn plain() -> Self {
        Self::start(None)
    }

    pub(crate) fn tls() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["hooks.example".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &authority).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        Self::start(Some((TlsAcceptor::from(Arc::new(config)), authority.pem())))
    }

    fn start(tls: Option<(TlsAcceptor, String)>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (acceptor, authority) = tls.unzip();
        let receiver = Self {
            port: listener.local_addr().unwrap().port(),
            authority: authority.unwrap_or_default(),
            heard: Arc::default(),
            mood: Arc::new(Mutex::new(status("200 OK"))),
            open: Arc::default(),
            most_open: Arc::default(),
        };
        let served = receiver.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (served, acceptor) = (served.clone(), acceptor.clone());
                    tokio::spawn(async move {
                        match acceptor {
                            None => served.serve(stream).await,
                            // A client that does not believe the certificate ends before it is served.
                            Some(acceptor) => {
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    served.serve(stream).await;
                                }
                            }
                        }
                    });
                }
            });
        });
        receiver
    }

    async fn serve(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let now = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(now, Ordering::SeqCst);
        if let Some(heard) = read(&mut stream).await {
            let mood = self.mood.lock().unwrap().clone();
            self.heard.lock().unwrap().push(heard);
            behave(&mut stream, mood).await;
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn be(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until so many requests were heard.
    #[track_caller]
    pub(crate) fn hears(&self, count: usize) -> Vec<Heard> {
        eventually(&format!("{count} notices"), || self.heard().len() >= count);
        self.heard()
    }

    /// The most connections that were open at once.
    pub(crate) fn most_open(&self) -> usize {
        self.most_open.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/in", self.port)
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Heard> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|it| it.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Some(Heard { line, headers, body: String::from_utf8_lossy(&body).into_owned(), raw: body, at })
}

async fn behave(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), mood: Mood) {
    let mut rest = Vec::new();
    match mood {
        Mood::HangsUp => return,
        Mood::Says(text) => {
            let _gone = stream.write_all(text.as_bytes()).await;
        }
        Mood::Silent => {
            // Until the other side gives up.
            let _gone = stream.read_to_end(&mut rest).await;
        }
        Mood::Trickles => {
            let mut pause = tokio::time::interval(std::time::Duration::from_millis(100));
            for byte in b"HTTP/1.1 200 OK\r\n".iter().chain(std::iter::repeat(&b'x')) {
                pause.tick().await;
                if stream.write_all(&[*byte]).await.is_err() || stream.flush().await.is_err() {
                    break;
                }
            }
        }
        Mood::Endless => {
            let _head = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await;
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        }
    }
    let _gone = stream.shutdown().await;
}

//! A proxy for one host that adds a secret: the worker has a base URL and a token of its run, never the secret.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use subtle::ConstantTimeEq as _;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::counted::{OpenCall, RequestCount, SizedRequest};
use super::dial::Dialer;
use super::http::{self, Body, refuses, says, strip};
use super::model_call::{ModelCall, named_in};
use super::token::Token;
use super::{Caller, RunProxy, TIME_MAX};
use provost_base::{Hostname, Secret};
use provost_vault::{ByProxy, Credential, Upstream};

/// A secret that is added to requests, ready for use.
pub(super) struct AuthProxy {
    upstream: Upstream,
    host: HeaderValue,
    header: HeaderName,
    prefix: Box<str>,
    value: HeaderValue,
    /// The further headers for the same requests.
    besides: Vec<(HeaderName, HeaderValue)>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    token: Token,
    dialer: Arc<Dialer>,
}

/// Methods to which a host may answer with the request itself.
const ECHOING: [&str; 2] = ["TRACE", "TRACK"];

impl AuthProxy {
    /// Prepares everything that could fail.
    ///
    /// # Errors
    /// A sentence without the secret.
    pub(super) fn new(
        credential: &Credential,
        by: &ByProxy,
        token: Token,
        dialer: Arc<Dialer>,
    ) -> Result<Self, String> {
        let wrong = |what: &str| format!("the secret `{}`: {what}", credential.name);
        let header = HeaderName::try_from(&by.header).map_err(|_| wrong("its header is no header"))?;
        let upstream = by.upstream.clone();
        let at = upstream.authority();
        let host = host_header(&upstream).map_err(wrong)?;
        let tls = match upstream.tls() {
            true => {
                Some((connector(by.authority.as_deref()).map_err(|why| wrong(&why))?, server_name(&at.host)))
            }
            false => None,
        };
        let value =
            header_value(&by.prefix, &credential.value).ok_or_else(|| wrong("it fits into no header"))?;
        let besides = credential.headers.iter().map(|(name, value)| {
            let name = HeaderName::try_from(name).map_err(|_| wrong("a header beside it is no header"))?;
            let value = header_value("", &Secret::new(value.clone().into_bytes()));
            Ok((name, value.ok_or_else(|| wrong("a value beside it fits into no header"))?))
        });
        let besides = besides.collect::<Result<Vec<_>, String>>()?;
        Ok(Self {
            besides,
            upstream,
            host,
            header,
            prefix: by.prefix.as_str().into(),
            value,
            tls,
            token,
            dialer,
        })
    }

    /// Returns whether a program of the worker asks: it sends the token in place of the secret.
    fn knows(&self, request: &Request<Incoming>) -> bool {
        let expected = format!("{}{}", self.prefix, self.token.text());
        let mut given = request.headers().get_all(&self.header).iter();
        let only = given.next().filter(|_| given.next().is_none());
        only.is_some_and(|only| only.as_bytes().ct_eq(expected.as_bytes()).into())
    }
}

/// Returns the header `host` of requests to an address.
pub(super) fn host_header(upstream: &Upstream) -> Result<HeaderValue, &'static str> {
    let (at, usual) = (upstream.authority(), if upstream.tls() { 443 } else { 80 });
    let host = if at.port == usual { at.host.to_string() } else { at.to_string() };
    HeaderValue::try_from(host).map_err(|_| "its host is no host")
}

fn header_value(prefix: &str, secret: &Secret) -> Option<HeaderValue> {
    let bytes = zeroize::Zeroizing::new([prefix.as_bytes(), secret.expose()].concat());
    let mut value = HeaderValue::from_bytes(&bytes).ok()?;
    // The value is never printed, and not kept in header tables.
    value.set_sensitive(true);
    Some(value)
}

/// Makes a TLS connector that trusts public authorities, or the one that the secret names instead.
pub(super) fn connector(authority: Option<&str>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match authority {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|_| "its authority is no certificate".to_owned())?;
                roots.add(certificate).map_err(|err| format!("its authority: {err}"))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|err| err.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

pub(super) fn server_name(host: &Hostname) -> ServerName<'static> {
    match host {
        Hostname::Address(address) => ServerName::IpAddress((*address).into()),
        Hostname::Name(name) => {
            ServerName::try_from(name.to_string()).expect("a parsed host is a name as TLS knows them")
        }
    }
}

/// Serves a connection of the worker.
pub(super) async fn serve(caller: Caller, keyed: Arc<AuthProxy>) {
    let Caller { stream, place: _held, way } = caller;
    http::serve(stream, move |request| answer(way.clone(), keyed.clone(), request)).await;
}

async fn answer(way: Arc<RunProxy>, keyed: Arc<AuthProxy>, request: Request<Incoming>) -> Response<Body> {
    if !keyed.knows(&request) {
        return says(StatusCode::UNAUTHORIZED, "this address takes the token of its own run only");
    }
    let method = request.method();
    if *method == Method::CONNECT || ECHOING.contains(&method.as_str()) || request.uri().authority().is_some()
    {
        return says(StatusCode::METHOD_NOT_ALLOWED, "only requests for a path are passed on here");
    }
    let call = way.meter.clone().zip(ModelCall::of(method, request.uri().path()));
    if let Some((meter, call)) = &call
        && let Err(why) = meter.may_call(call.is_deferred).await
    {
        return call.refusal(&why);
    }
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
    let Ok(uri) = format!("{}{path}", keyed.upstream.base()).parse::<Uri>() else {
        return says(StatusCode::BAD_REQUEST, "the path cannot be passed on");
    };
    strip(&mut head.headers);
    head.uri = uri;
    head.version = Version::HTTP_11;
    head.headers.insert(HOST, keyed.host.clone());
    head.headers.insert(&keyed.header, keyed.value.clone());
    for (name, value) in &keyed.besides {
        head.headers.insert(name, value.clone());
    }
    let Some((meter, _)) = call else {
        return pass_on(&way, &keyed, Request::from_parts(head, body.boxed())).await;
    };
    // An answer in an unknown encoding could not be counted.
    head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let count = Arc::new(RequestCount::new(named_in(head.uri.path())));
    // From here on the call counts, even if the worker's connection or this task ends.
    let open = OpenCall::new(&way, meter, count.clone());
    let request = Request::from_parts(head, SizedRequest::new(body.boxed(), count).boxed());
    open.answered(pass_on(&way, &keyed, request).await)
}

/// Sends a request to the host of the secret.
async fn pass_on(way: &Arc<RunProxy>, keyed: &AuthProxy, request: Request<Body>) -> Response<Body> {
    let outside = match keyed.dialer.with_key(keyed.upstream.authority()).await {
        Ok(outside) => outside,
        Err(refused) => return refuses(&refused),
    };
    let Some((connector, name)) = &keyed.tls else { return http::ask(way, outside, request).await };
    // The certificate is checked before the first byte of a request is sent.
    match timeout(TIME_MAX, connector.connect(name.clone(), outside)).await {
        Ok(Ok(stream)) => http::ask(way, stream, request).await,
        Ok(Err(err)) => says(StatusCode::BAD_GATEWAY, &format!("the host has not proved who it is: {err}")),
        Err(_) => says(StatusCode::GATEWAY_TIMEOUT, "the host did not answer in time"),
    }
}

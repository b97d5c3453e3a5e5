//! Signed frames: proves their sender, and carries out their requests. DevIt 1.5.

use std::time::Duration;

use serde_json::{Value, json};

use super::map::{self, Message, Notified};
use super::run_door::RunDoor;
use super::wire::{self, Code, DevitError};
use super::{Devit, KeySource, Said, apart};
use provost_auth::frame::Frame;
use provost_auth::keys::{Keys, Role};
use provost_auth::peer::PeerId;
use provost_auth::role::{self, Standing};
use provost_auth::{Rejected, bearer};
use provost_base::{AgentId, Json, Secret, Timestamp, Ttl};
use provost_domain::command::MintToken;
use provost_domain::{Answer, Denial, JudgedVerb, Principal, Verb};

/// The lifetime of a token for the doors over HTTP. A client that registers again gets another.
const HTTP_TOKEN_TTL: Ttl = Ttl::minutes(24 * 60);

impl Devit {
    /// Verifies a frame: a key of the sender must have signed it, and its time and nonce must be fresh.
    ///
    /// The error includes the key if the frame was signed with it, so that the answer can be signed.
    pub(super) fn believe(
        &self,
        frame: &Frame<'_>,
        now: Timestamp,
    ) -> Result<(AgentId, Standing, Secret), (Rejected, Option<Secret>)> {
        let (agent, standing, key) = self.prove(frame, now).map_err(|rejected| (rejected, None))?;
        match self.0.replay.check(&frame.from, frame.ts, &frame.nonce, now) {
            Ok(()) => Ok((agent, standing, key)),
            Err(rejected) => Err((rejected, Some(key))),
        }
    }

    /// Returns the sender, its standing, and the key that has signed a frame.
    fn prove(&self, frame: &Frame<'_>, now: Timestamp) -> Result<(AgentId, Standing, Secret), Rejected> {
        let agent = AgentId::parse(&frame.from).map_err(|_| Rejected::NoKey)?;
        let (standing, key) = match self.lookup(&agent, now) {
            Keys::Shared(_) if role::is_reserved(&agent) => return Err(Rejected::NoKey),
            Keys::Shared(secret) => {
                frame.verify(&secret)?;
                (Standing::Shared, secret)
            }
            Keys::Own { role, secrets } => {
                let standing = if role == Role::Approver { Standing::Approver } else { Standing::Own };
                let found = secrets.into_iter().find(|secret| frame.verify(secret).is_ok());
                (standing, found.ok_or(Rejected::WrongMac)?)
            }
            Keys::None => return Err(Rejected::NoKey),
        };
        Ok((agent, standing, key))
    }

    /// Checks whether an accepted frame still proves its sender.
    ///
    /// # Errors
    /// [`Rejected`], as for a frame that arrives now.
    pub(super) fn still(&self, frame: &Frame<'_>, who: &Principal) -> Result<(), Rejected> {
        self.prove(frame, (self.0.now)())?;
        self.0.names.still(who, None).map(drop)
    }

    /// Returns the keys that are valid for an agent at this door.
    pub(super) fn lookup(&self, agent: &AgentId, now: Timestamp) -> Keys {
        match &self.0.lock {
            KeySource::Ring(ring) => ring.lookup(agent, now),
            KeySource::Run(run) => run.keys_of(agent),
        }
    }

    /// Carries out a verified frame.
    pub(super) async fn handle(&self, frame: &Frame<'_>, who: &Principal, peer: &PeerId) -> Said {
        if let Some(run) = self.inside()
            && let Some(said) = self.said_inside(run, frame, who).await
        {
            return said;
        }
        let done = match &*frame.msg_type {
            "HEARTBEAT" => return self.collect(who, true, Duration::ZERO).await,
            "POLL" => return self.collect(who, false, self.0.options.hold).await,
            "REGISTER" => self.register(frame, who, peer).await,
            "DELEGATE" => self.delegate(frame, who).await,
            "NOTIFY" => self.notify(who, &frame.msg_id, frame.payload).await,
            "STATUS_REQUEST" => {
                self.status(frame.payload).await.map(|it| Message::new("STATUS_RESPONSE", it))
            }
            "TASK_REQUEST" => self.task(frame.payload).await.map(|it| Message::new("TASK_RESPONSE", it)),
            "APPROVAL_DECISION" => self.decide(who, &frame.msg_id, frame.payload).await,
            "SCREENSHOT" => match self.screenshot(who, &frame.msg_id).await {
                Ok((picture, Some(mail))) => return Said::InAdvance(Message::ack(&picture), mail),
                Ok((picture, None)) => Ok(Message::ack(&picture)),
                Err(fault) => Err(fault),
            },
            // A client expects no answer to an answer.
            "ACK" | "ERR" => return Said::Nothing,
            _ => Err(DevitError::invalid("unknown msg_type")),
        };
        Said::Message(done.unwrap_or_else(|fault| Message::fault(&fault)))
    }

    async fn collect(&self, who: &Principal, alive: bool, hold: Duration) -> Said {
        match self.0.provost.collect(who, alive, hold).await {
            Ok(Some(mail)) => Said::Mail(mail),
            Ok(None) => Said::Nothing,
            Err(refusal) => Said::Message(Message::fault(&self.fault(refusal))),
        }
    }

    async fn register(
        &self,
        frame: &Frame<'_>,
        who: &Principal,
        peer: &PeerId,
    ) -> Result<Message, DevitError> {
        let payload: wire::Register = wire::payload(frame.payload)?;
        let announced = payload.version.clone();
        let wants_token = payload.token == Some(true);
        // The kernel names the daemon as the peer of an inherited socket, since the daemon made it.
        let pid = (!self.inside().is_some_and(RunDoor::is_inherited)).then_some(peer.pid);
        let verb = map::register(payload, pid.and_then(|pid| u32::try_from(pid).ok()));
        let expected = match self.submit(who, verb).await? {
            expected if expected.expected.is_empty() => Value::Null,
            expected => json!(expected.expected.join(" or ")),
        };
        let mut ack = json!({
            "daemon_version": self.0.options.advertised_version,
            "expected_worker_version": expected,
            "worker_version": announced,
            "server": concat!("provost/", env!("CARGO_PKG_VERSION")),
        });
        if wants_token {
            (ack["token"], ack["token_expires_at"]) = self.mint_token(who).await?;
        }
        Ok(Message::ack(&ack))
    }

    /// Mints a token for the caller at the doors over HTTP; returns it with its end.
    async fn mint_token(&self, who: &Principal) -> Result<(Value, Value), DevitError> {
        let secret = bearer::fresh()
            .map_err(|_| DevitError::new(Code::Internal, "the system has no randomness to give"))?;
        let (digest, agent) = (bearer::digest(secret.expose()), who.agent().clone());
        let verb = MintToken { digest, agent, scopes: role::usual_token_scopes(), ttl: HTTP_TOKEN_TTL };
        let minted = self.submit_judged(who, verb).await?;
        let text = String::from_utf8_lossy(secret.expose()).into_owned();
        Ok((json!(text), json!(minted.token.expires_at.rfc3339())))
    }

    async fn delegate(&self, frame: &Frame<'_>, who: &Principal) -> Result<Message, DevitError> {
        let payload = frame.payload;
        let verb = apart(payload.len(), || map::delegate(&frame.msg_id, &frame.to, payload))?;
        self.delegated(who, verb).await.map(|it| Message::ack(&it))
    }

    /// Submits a delegation, and returns the answer that both dialects give.
    pub(super) async fn delegated(
        &self,
        who: &Principal,
        verb: provost_domain::Delegate,
    ) -> Result<Value, DevitError> {
        let answer =
            self.0.provost.delegate(who, verb.clone()).await.map_err(|refusal| self.fault(refusal))?;
        match answer {
            Answer::Done(done) => {
                let status = done.state.status().as_str();
                Ok(json!({ "task_id": verb.task.as_str(), "status": status }))
            }
            Answer::Parked(approval) => Ok(json!({
                "task_id": verb.task.as_str(),
                "status": "pending",
                "approval": "required",
                "approval_id": map::approval_id(approval, &self.0.options.salt),
            })),
            Answer::Denied(denial) => Err(map::denied(&denial, &verb)),
        }
    }

    async fn notify(&self, who: &Principal, msg_id: &str, payload: &str) -> Result<Message, DevitError> {
        let notified = apart(payload.len(), || map::notify(msg_id, payload, false))?;
        self.notified(who, notified).await.map(|it| Message::ack(&it))
    }

    pub(super) async fn notified(&self, who: &Principal, notified: Notified) -> Result<Value, DevitError> {
        match notified {
            Notified::Ack(verb) => {
                let task = verb.task.clone();
                let done = self.submit(who, verb).await?;
                Ok(json!({ "ok": true, "task_id": task.as_str(), "released": done.released }))
            }
            Notified::Report(verb) => {
                let task = verb.task.clone();
                self.submit(who, *verb).await?;
                Ok(json!({ "ok": true, "task_id": task.as_str() }))
            }
        }
    }

    pub(super) async fn status(&self, payload: &str) -> Result<Json, DevitError> {
        let request: wire::StatusRequest = wire::payload(payload)?;
        if let Some(id) = request.task_id {
            return self.one_task(&id).await;
        }
        let filter = map::filter(request.filter.as_deref())?;
        let snapshot = self.0.provost.snapshot(filter, request.limit).await.map_err(|it| self.fault(it))?;
        encode(&map::status(&snapshot, &self.0.options.salt))
    }

    pub(super) async fn task(&self, payload: &str) -> Result<Json, DevitError> {
        let request: wire::TaskRequest = wire::payload(payload)?;
        let id = request.task_id.ok_or_else(|| DevitError::invalid("task_id is missing"))?;
        self.one_task(&id).await
    }

    async fn one_task(&self, id: &str) -> Result<Json, DevitError> {
        let task = self.0.provost.task(&map::task_id(id)?).await.map_err(|it| self.fault(it))?;
        encode(&map::task(&task, &self.0.options.salt))
    }

    async fn decide(&self, who: &Principal, msg_id: &str, payload: &str) -> Result<Message, DevitError> {
        let verb = map::decision(msg_id, payload, &self.0.options.salt)?;
        let verdict = verb.verdict;
        let done = self.submit_judged(who, verb).await?;
        Ok(Message::ack(&json!({
            "ok": done.failed.is_none(),
            "status": verdict,
            "task_id": done.task.as_ref().map(|it| it.as_str()),
            "failed": done.failed,
        })))
    }

    async fn submit<V: Verb>(&self, who: &Principal, verb: V) -> Result<V::Reply, DevitError> {
        self.0.provost.submit(who, verb).await.map_err(|refusal| self.fault(refusal))
    }

    /// Submits a verb that makes no task: a denial is an error like any other.
    async fn submit_judged<V: JudgedVerb>(&self, who: &Principal, verb: V) -> Result<V::Reply, DevitError> {
        match self.0.provost.submit_judged(who, verb).await.map_err(|refusal| self.fault(refusal))? {
            Answer::Done(reply) => Ok(reply),
            Answer::Parked(approval) => {
                let approval = map::approval_id(approval, &self.0.options.salt);
                let message = "this needs approval first";
                Err(DevitError::new(Code::PolicyDenied, message).with(json!({ "approval_id": approval })))
            }
            Answer::Denied(Denial { rule, reason, .. }) => {
                Err(DevitError::new(Code::PolicyDenied, reason.to_string())
                    .with(json!({ "details": { "reason": "policy_denied", "rule": rule.as_str() } })))
            }
        }
    }

    pub(super) fn fault(&self, refusal: provost_domain::Refusal) -> DevitError {
        map::fault(refusal, &self.0.options.advertised_version)
    }
}

pub(super) fn encode(value: &impl serde::Serialize) -> Result<Json, DevitError> {
    // A status may have a mebibyte.
    let value = apart(usize::MAX, || serde_json::to_value(value).map(|value| Json::from_value(&value)));
    value.map_err(|_| DevitError::new(Code::Internal, "cannot encode the answer"))
}

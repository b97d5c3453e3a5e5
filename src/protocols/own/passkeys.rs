//! The list of passkeys, with enrolment and revocation.
//!
//! ```text
//!   code at a terminal -> begin (code) -> finish (new key) -> confirm (new key signs; a known one vouches) -> counts
//! ```
//! All daemons of the user share the file. Each records its state: before a daemon uses the list, it records what
//! was added or revoked elsewhere ([`super::list_sync`]).

use std::sync::{Arc, PoisonError};

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::hub::{Asker, HubPages};
use super::list_sync::{Step, steps};
use super::map::{self, OwnError};
use super::pending::{Kind, NoncePurpose, random};
use super::words::{Brought, bytes, refused};
use hyper::StatusCode;
use provost_api::{endpoints, wire};
use provost_auth::passkeys::{ListError, ListedPasskey, PASSKEYS_FILE, PasskeyFiles, PasskeyList};
use provost_base::limits::{
    PASSKEY_CODE_MS_MAX, PASSKEY_LEAP_MS_MIN, PASSKEY_NAME_BYTES_MAX, PASSKEY_TRANSPORT_BYTES_MAX,
    PASSKEY_TRANSPORTS_MAX,
};
use provost_base::{Digest, Json, visible};
use provost_domain::command::{AddPasskey, NotePasskeyList, ResetPasskeys, RevokePasskey};
use provost_domain::view::{AgentsAtWork, AllPasskeys, AllPasskeysOut};
use provost_domain::{KnownPasskey, Passkey, Passkeys, Principal, Proof, Refusal, SOURCE_ROOT};
use provost_passkey::{
    Asserted, EnrolWord, PublicKey, Refused, Registration, Transcript, VerbWord, Word, registered, text_of,
};
use serde::Deserialize as _;

/// The verb of the transcript for making a passkey; no passkey signs it.
const CREATE: &str = "CreatePasskey";

/// The algorithms that the daemon asks browsers for: ES256, Ed25519, RS256.
const ALGORITHMS: [i64; 3] = [-7, -8, -257];

/// A page that may ask for a passkey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// Scheme, host and port, as browsers write them.
    pub origin: String,
    /// The domain, to which the passkeys belong.
    pub host: String,
}

/// The parts of the daemon's places and configuration that passkeys need.
pub struct PasskeySetup {
    /// The files of the lists.
    pub files: PasskeyFiles,
    /// The pages in the configuration. The daemon's own is added when it opens ([`super::InProcessApi::serves_pages`]).
    pub pages: Vec<Page>,
    /// The possible addresses of the page over all repositories.
    pub hub: HubPages,
    /// The folder of the daemon's state, for the sessions of the page.
    pub state: std::path::PathBuf,
}

pub(super) fn allowed(it: &ListedPasskey) -> wire::AllowedPasskey {
    let (id, name, rp_id) = (it.id.clone(), it.name.clone(), it.rp_id.clone());
    wire::AllowedPasskey { id, name, rp_id, transports: it.transports.clone() }
}

pub(super) fn unusable(why: &ListError) -> OwnError {
    OwnError::new(StatusCode::CONFLICT, "passkeys_unusable", why.to_string()).hint("provost passkey list")
}

/// Converts a passkey of the list to the form for the record.
pub(super) fn on_record(it: &ListedPasskey, of_root: bool) -> Passkey {
    let key = serde_json::to_value(&it.key).expect("our own types always encode");
    Passkey {
        id: it.id.as_str().into(),
        name: it.name.as_str().into(),
        rp_id: it.rp_id.as_str().into(),
        key: Json::from_value(&key),
        backup_eligible: it.backup_eligible,
        aaguid: it.aaguid.as_str().into(),
        source: if of_root { SOURCE_ROOT.into() } else { it.source.as_str().into() },
    }
}

pub(super) fn row(it: &KnownPasskey) -> wire::Passkey {
    let passkey = &it.passkey;
    let key = passkey.key.value();
    let algorithm = match key.get("kty").and_then(|it| it.as_str()) {
        Some("EC") => "ES256",
        Some("OKP") => "Ed25519",
        _ => "RS256",
    };
    wire::Passkey {
        id: passkey.id.to_string(),
        name: passkey.name.to_string(),
        rp_id: passkey.rp_id.to_string(),
        algorithm: algorithm.into(),
        fingerprint: PublicKey::deserialize(&key).map(|it| it.fingerprint()).unwrap_or_default(),
        key,
        synced: passkey.backup_eligible,
        aaguid: passkey.aaguid.to_string(),
        source: passkey.source.to_string(),
        added_at: Some(it.added_at.rfc3339()),
        used_at: it.used_at.map(|at| at.rfc3339()),
        revoked_at: it.revoked_at.map(|at| at.rfc3339()),
        counter: it.counter,
    }
}

impl Own {
    /// Returns the pages that may ask for a passkey now.
    pub(super) fn pages(&self) -> Vec<Page> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets these pages ask for a passkey, too.
    pub(super) fn serves_pages(&self, pages: Vec<Page>) {
        let mut known = self.0.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<Page> = pages.into_iter().filter(|it| !known.contains(it)).collect();
        known.extend(new);
    }

    pub(super) async fn known_passkeys(&self) -> Answered<AllPasskeysOut> {
        self.0.provost.view(AllPasskeys).await.map_err(map::fault)
    }

    /// Returns the list in force, after changes from elsewhere were recorded here.
    ///
    /// # Errors
    /// The list cannot be used, so no passkey counts.
    pub(super) async fn synced_list(&self) -> Answered<PasskeyList> {
        // Only a change waits for the permit, so that a process that holds the folder delays no reader.
        let found = match self.compared().await {
            Ok((list, steps)) if steps.is_empty() => Ok(list),
            Ok(_) => {
                let _turn = self.0.listing.acquire().await.ok();
                self.caught_up().await
            }
            Err(why) => Err(why),
        };
        self.note_list(&found).await?;
        found.map_err(|why| unusable(&why))
    }

    /// Returns the list, and the steps that are missing between it and the record.
    async fn compared(&self) -> Result<(PasskeyList, Vec<Step>), ListError> {
        if let Some(known) = self.shared_record().await? {
            let roots = self.listed(|files, _| files.roots_list()).await?;
            return Ok((PasskeyList::of_record(&known, roots.as_ref()), Vec::new()));
        }
        // The record is read first: each change is written to the file before it is recorded, so the file is never behind.
        let known = self.known().await?;
        let list = self.listed(|files, keys| files.read(keys)).await?;
        let Some(list) = list else {
            return match known.unrevoked().next() {
                Some(_) => Err(ListError::Gone(self.0.passkey_files.user.join(PASSKEYS_FILE))),
                None => Ok((PasskeyList::default(), Vec::new())),
            };
        };
        let steps = steps(&list, &known)?;
        Ok((list, steps))
    }

    /// Carries out the missing steps. The caller holds the permit.
    async fn caught_up(&self) -> Result<PasskeyList, ListError> {
        let (mut list, steps) = self.compared().await?;
        let system = self.0.provost.system();
        for step in steps {
            let done = match step {
                Step::Reset(count, waits) => {
                    self.submit(system, ResetPasskeys { count, waits }).await.map(drop)
                }
                Step::Add(it, vouched) => {
                    let passkey = on_record(&it, list.of_root);
                    self.submit(system, AddPasskey { passkey, counter: it.counter, vouched }).await.map(drop)
                }
                Step::Revoke(id, signed) => self.submit(system, RevokePasskey { id, signed }).await.map(drop),
                Step::TakeOut(ids) => {
                    list.passkeys.retain(|it| !ids.contains(&it.id));
                    self.tidy_up(move |list| {
                        ids.iter().for_each(|id| list.revoke(id, None));
                        Ok(())
                    })
                    .await;
                    Ok(())
                }
                Step::Empty => {
                    list = PasskeyList::default();
                    let empty = self.emptying().await?;
                    self.tidy_up(empty).await;
                    Ok(())
                }
            };
            done.map_err(|why| ListError::Disagrees(why.body.message))?;
        }
        self.end_orphans().await;
        Ok(list)
    }

    /// Removes passkeys that were revoked here from the list. If that fails, they count at other daemons until a later try succeeds.
    async fn tidy_up(&self, change: impl FnOnce(&mut PasskeyList) -> Result<(), ListError> + Send + 'static) {
        let Ok(known) = self.known().await else { return };
        let noted = known.standing().number;
        if let Err(why) = self.listed(move |files, keys| files.change_if_free(keys, noted, change)).await {
            tracing::warn!(%why, "a passkey that was revoked here is still in the list");
        }
    }

    /// Returns the change that empties the list according to the last reset here.
    async fn emptying(
        &self,
    ) -> Result<impl FnOnce(&mut PasskeyList) -> Result<(), ListError> + Send + use<>, ListError> {
        let standing = self.known().await?.standing();
        let waits_until = (standing.left_ms > 0).then_some(standing.until);
        Ok(move |list: &mut PasskeyList| {
            list.reset(standing.count, waits_until);
            Ok(())
        })
    }

    /// Records the state of the list if it is new: rules that want a passkey once there is one depend on it.
    async fn note_list(&self, found: &Result<PasskeyList, ListError>) -> Answered<()> {
        let standing = self.known_passkeys().await?.passkeys.standing();
        // A fault in root's list on one machine concerns no other machine.
        if self.known_passkeys().await?.shared {
            return Ok(());
        }
        let number = found.as_ref().ok().filter(|it| !it.of_root).map(|it| it.number);
        let is_unusable = found.is_err();
        if is_unusable != standing.is_unusable || number.is_some_and(|it| it > standing.number) {
            let verb = NotePasskeyList { number, is_unusable, ran_ms: 0 };
            self.submit(self.0.provost.system(), verb).await?;
            self.end_orphans().await;
        }
        Ok(())
    }

    /// Returns the record if several hosts share it: then it is the list, and no file counts.
    async fn shared_record(&self) -> Result<Option<Passkeys>, ListError> {
        let known = self.known_passkeys().await;
        let known = known.map_err(|why| ListError::Disagrees(why.body.message))?;
        Ok(known.shared.then_some(known.passkeys))
    }

    async fn known(&self) -> Result<Passkeys, ListError> {
        let known = self.known_passkeys().await;
        known.map(|it| it.passkeys).map_err(|why| ListError::Disagrees(why.body.message))
    }

    /// Does work with the files, on a thread that may wait for the disk.
    pub(super) async fn listed<T: Send + 'static>(
        &self,
        work: impl FnOnce(&PasskeyFiles, &provost_auth::keys::KeyRing) -> Result<T, ListError> + Send + 'static,
    ) -> Result<T, ListError> {
        let (own, keys) = (self.clone(), Arc::clone(self.0.names.keys()));
        let done = tokio::task::spawn_blocking(move || work(&own.0.passkey_files, &keys)).await;
        done.unwrap_or_else(|_| Err(ListError::Disagrees("it cannot be read".into())))
    }

    /// Changes the list. The caller holds the permit.
    async fn change_list(
        &self,
        change: impl FnOnce(&mut PasskeyList) -> Result<(), ListError> + Send + 'static,
    ) -> Result<(), ListError> {
        if self.shared_record().await?.is_some() {
            return Ok(());
        }
        let standing = self.known().await?.standing();
        let number = self.listed(move |files, keys| files.change(keys, standing.number, change)).await?;
        let noted = NotePasskeyList { number: Some(number), is_unusable: standing.is_unusable, ran_ms: 0 };
        let noted = self.submit(self.0.provost.system(), noted).await;
        noted.map(drop).map_err(|why| ListError::Disagrees(why.body.message))
    }

    /// Records changes of the list while no request is served. Returns whether a reset waits.
    pub async fn look_at_passkeys(&self) -> bool {
        if let Err(why) = self.synced_list().await {
            tracing::warn!(why = why.body.message, "no passkey counts");
        }
        self.known_passkeys().await.is_ok_and(|it| it.waits_until.is_some())
    }

    /// Subtracts the daemon's running time from the wait after a reset. Returns whether the wait goes on; at its
    /// end, the list tells other daemons.
    pub async fn ran_for(&self, time: std::time::Duration) -> bool {
        let ran_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let Ok(before) = self.known_passkeys().await else { return true };
        let is_unusable = before.passkeys.standing().is_unusable;
        let verb = NotePasskeyList { number: None, is_unusable, ran_ms };
        if let Err(why) = self.submit(self.0.provost.system(), verb).await {
            tracing::warn!(why = why.body.message, "the wait after a reset of passkeys does not get shorter");
            return true;
        }
        let waits = self.known_passkeys().await.is_ok_and(|it| it.waits_until.is_some());
        if !waits && before.waits_until.is_some() {
            let _turn = self.0.listing.acquire().await.ok();
            let told = self.change_list(|list| {
                list.waits_until = None;
                Ok(())
            });
            if let Err(why) = told.await {
                tracing::warn!(%why, "the list of passkeys does not say that the wait is over");
            }
        }
        waits
    }

    /// Ends what depends on passkeys that no longer count, as after a change by another host.
    pub async fn passkeys_have_changed(&self) {
        self.0.pending.clear();
        self.end_orphans().await;
    }

    /// Revokes a passkey here and in the list.
    pub(super) async fn revoke(&self, who: &Principal, verb: RevokePasskey) -> Answered<()> {
        let (id, signed) = (verb.id.to_string(), verb.signed.clone());
        let _turn = self.0.listing.acquire().await.ok();
        let before = self.known_passkeys().await?.passkeys.standing().count;
        // The record comes first: even if the file cannot be written, the passkey is invalid in this repository.
        self.submit(who, verb).await?;
        self.0.pending.clear();
        self.end_orphans().await;
        let is_reset = self.known_passkeys().await?.passkeys.standing().count > before;
        let written = if is_reset {
            match self.emptying().await {
                Ok(empty) => self.change_list(empty).await,
                Err(why) => Err(why),
            }
        } else {
            self.change_list(move |list| {
                list.revoke(&id, signed);
                Ok(())
            })
            .await
        };
        written.map_err(|why| {
            let why =
                format!("it is revoked in this repository, but it could not be taken out of the list: {why}");
            OwnError::new(StatusCode::CONFLICT, "passkeys_unusable", why)
                .hint("the daemon takes it out when it looks at the list next: provost passkey list")
        })
    }

    /// Returns the error while root's list is in force.
    pub(super) fn only_root(&self) -> OwnError {
        unusable(&ListError::OfRoot(self.0.passkey_files.system.clone()))
    }

    pub(super) fn check_terminal(call: &Call, what: &str) -> Answered<()> {
        if call.who.proof() == Proof::Terminal {
            return Ok(());
        }
        let why = format!("only a person at a terminal that is not below an agent {what}");
        Err(OwnError::new(StatusCode::FORBIDDEN, "out_of_scope", why).hint("do it in a terminal of your own"))
    }
}

impl Handles<endpoints::Passkeys> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::Passkeys> {
        let list = self.synced_list().await;
        let all = self.known_passkeys().await?;
        let mut passkeys: Vec<_> = all.passkeys.iter().map(|it| row(it)).collect();
        passkeys.sort_by(|a, b| (&a.revoked_at, &a.added_at).cmp(&(&b.revoked_at, &b.added_at)));
        Ok(wire::Passkeys {
            passkeys,
            enrolled: all.enrolled,
            of_root: list.as_ref().is_ok_and(|it| it.of_root),
            waits_until: all.waits_until.map(|it| it.rfc3339()),
            leapt_s: Some(all.leapt_ms).filter(|it| *it >= PASSKEY_LEAP_MS_MIN).map(|it| it / 1_000),
            problem: list.err().map(|why| why.body.message),
            daemon: all.passkeys.daemon().to_owned(),
            origins: self.pages().into_iter().map(|it| it.origin).collect(),
            waiting: self.waiting_passkey(),
        })
    }
}

impl Handles<endpoints::PasskeyCode> for Own {
    async fn handle(&self, call: &Call, body: wire::PasskeyCode) -> Answered<wire::PasskeyCodeMade> {
        Self::check_terminal(call, "has a code for a passkey made")?;
        let list = self.synced_list().await?;
        if list.of_root {
            return Err(self.only_root());
        }
        // This is checked before an enrolment uses the code up and then fails.
        let shared = self.known_passkeys().await?.shared;
        let folder = self.listed(move |files, _| if shared { Ok(()) } else { files.check_folder() }).await;
        folder.map_err(|why| OwnError::new(StatusCode::CONFLICT, "passkeys_unusable", why.to_string()))?;
        let vouch = !list.passkeys.is_empty();
        if !vouch && !body.even_so {
            let at_work = self.0.provost.view(AgentsAtWork).await.map_err(map::fault)?;
            if at_work || !self.0.names.speakers().is_empty() {
                return Err(self.agents_at_work());
            }
        }
        Ok(wire::PasskeyCodeMade {
            code: self.0.pending.new_code()?,
            good_s: PASSKEY_CODE_MS_MAX / 1_000,
            vouch,
            origins: self.addresses(|_| true).await,
        })
    }
}

/// Checks the name of a passkey: not empty, not too long, and without hidden characters.
pub(super) fn check_name(name: &str) -> Answered<()> {
    if name.trim().is_empty() || name.len() > PASSKEY_NAME_BYTES_MAX || visible(name) != name {
        let why = format!("name has 1 to {PASSKEY_NAME_BYTES_MAX} bytes, and none that is invisible");
        return Err(OwnError::invalid(why));
    }
    Ok(())
}

impl Handles<endpoints::BeginPasskey> for Own {
    async fn handle(&self, call: &Call, body: wire::BeginPasskey) -> Answered<wire::NewPasskey> {
        let asker = self.asker(call).await;
        self.0.pending.count(asker.process, Kind::Challenge)?;
        check_name(&body.name)?;
        let page = asker.pages.iter().find(|it| it.origin == body.origin);
        let party = asker.party(&page.ok_or_else(|| refused(Refused::Origin))?.host)?;
        let list = self.synced_list().await?;
        if list.passkeys.iter().any(|it| it.name == body.name) {
            return Err(OwnError::invalid("name: there is a passkey of this name already"));
        }
        self.0.pending.use_code(&body.code)?;
        let daemon = self.known_passkeys().await?.passkeys.daemon().to_owned();
        let nonce = random()?;
        let arguments = Json::from_value(&serde_json::json!({ "name": body.name, "origin": body.origin }));
        let arguments = Digest::of(arguments.as_str().as_bytes());
        let transcript =
            Transcript::new(&daemon, nonce, Word::Verb(VerbWord { verb: CREATE.into(), arguments }));
        let challenge = text_of(transcript.digest().as_bytes());
        // The same person on this daemon is one user for an authenticator.
        let user = Digest::of_fields([daemon.as_bytes(), self.0.user.as_str().as_bytes()]);
        let rp_id = party.rp_id.clone();
        self.0.pending.put(nonce, NoncePurpose::Create(transcript, body.name.into(), party));
        Ok(wire::NewPasskey {
            nonce: text_of(&nonce),
            challenge,
            rp_id,
            user_id: text_of(user.as_bytes()),
            user_name: self.0.user.to_string(),
            algorithms: ALGORITHMS.to_vec(),
            exclude: list.passkeys.iter().map(allowed).collect(),
        })
    }
}

impl Handles<endpoints::FinishPasskey> for Own {
    async fn handle(&self, call: &Call, body: wire::FinishPasskey) -> Answered<wire::Challenge> {
        self.0.pending.count(self.asker(call).await.process, Kind::Word)?;
        let NoncePurpose::Create(transcript, name, party) =
            self.0.pending.take(&bytes(&body.nonce, "nonce")?)?
        else {
            return Err(refused(Refused::Challenge));
        };
        let client_data = bytes(&body.client_data, "client_data")?;
        let attestation_object = bytes(&body.attestation_object, "attestation_object")?;
        let it = Registration { attestation_object: &attestation_object, client_data: &client_data };
        let new = registered(&party, transcript.digest().as_bytes(), &it).map_err(refused)?;
        let list = self.synced_list().await?;
        let id = text_of(&new.id);
        if self.known_passkeys().await?.passkeys.iter().any(|it| *it.passkey.id == *id) {
            return Err(OwnError::new(StatusCode::CONFLICT, "exists", "this passkey is known already"));
        }
        let transports = body.transports.into_iter().filter(|it| it.len() <= PASSKEY_TRANSPORT_BYTES_MAX);
        let listed = ListedPasskey {
            id,
            name: name.into(),
            rp_id: party.rp_id,
            backup_eligible: new.backup_eligible,
            aaguid: new.aaguid.iter().map(|byte| format!("{byte:02x}")).collect(),
            counter: new.counter,
            transports: transports.take(PASSKEY_TRANSPORTS_MAX).collect(),
            added_at: self.now(),
            source: "code".into(),
            number: 0,
            key: new.key,
            vouch: None,
        };
        let word = Word::Enrol(EnrolWord { enrol: listed.digest() });
        let mut challenge = self
            .challenge(word, &list, |transcript| NoncePurpose::Confirm(transcript, Box::new(listed.clone())))
            .await?;
        challenge.allow.insert(0, allowed(&listed));
        Ok(challenge)
    }
}

impl Handles<endpoints::ConfirmPasskey> for Own {
    async fn handle(&self, call: &Call, body: wire::ConfirmPasskey) -> Answered<wire::Passkey> {
        let asker = self.asker(call).await;
        self.0.pending.count(asker.process, Kind::Word)?;
        let (transcript, mut listed) = self.to_confirm(&body.nonce)?;
        let list = self.synced_list().await?;
        let asserted = self.signed_itself(&asker, &mut listed, &transcript, body.own)?;
        match body.vouch {
            Some(vouch) if !list.passkeys.is_empty() => {
                self.vouched(&asker, &list, &mut listed, &transcript, vouch).await?;
            }
            None if !list.passkeys.is_empty() => {
                let why =
                    "a passkey is known already, and a further one counts only if a known one signs for it";
                return Err(OwnError::new(StatusCode::FORBIDDEN, "vouch_missing", why)
                    .hint("sign with a known passkey as well, or give all up: provost passkey reset"));
            }
            _ => {}
        }
        self.take_in(&listed, &asserted).await
    }
}

impl Own {
    /// Checks that a new passkey has signed for itself, which proves that it works.
    pub(super) fn signed_itself(
        &self,
        asker: &Asker,
        listed: &mut ListedPasskey,
        transcript: &Transcript,
        own: wire::Assertion,
    ) -> Answered<Asserted> {
        let own = Brought::read(own)?;
        if own.credential != listed.id {
            return Err(refused(Refused::Signature));
        }
        let known = (&listed.key, listed.backup_eligible, listed.counter);
        let asserted = own.check(&asker.party(&listed.rp_id)?, transcript, known).map_err(refused)?;
        listed.counter = asserted.counter;
        Ok(asserted)
    }

    /// Checks that a known passkey has signed for the new one.
    pub(super) async fn vouched(
        &self,
        asker: &Asker,
        list: &PasskeyList,
        listed: &mut ListedPasskey,
        transcript: &Transcript,
        vouch: wire::Assertion,
    ) -> Answered<()> {
        let vouch = Brought::read(vouch)?;
        let by = self.known_word(asker, list, transcript, &vouch).await?;
        listed.vouch = Some(vouch.for_log(transcript, &by));
        listed.source = "vouched".into();
        Ok(())
    }

    /// Adds a new passkey to the list, and records it.
    pub(super) async fn take_in(
        &self,
        listed: &ListedPasskey,
        asserted: &Asserted,
    ) -> Answered<wire::Passkey> {
        let passkey = on_record(listed, false);
        let verb = AddPasskey { passkey, counter: listed.counter, vouched: listed.vouch.clone() };
        let (id, written) = (listed.id.clone(), listed.clone());
        // The file comes first: a passkey that is recorded and not in the file would count as revoked. The permit
        // keeps others from comparing the two before both are written.
        let turn = self.0.listing.acquire().await.ok();
        self.change_list(move |list| list.add(written)).await.map_err(|why| unusable(&why))?;
        let signer = self.signer(asserted);
        if let Err(why) = self.submit(&signer, verb).await {
            let gone = id.clone();
            let taken_back = self.change_list(move |list| {
                list.passkeys.retain(|it| it.id != gone);
                Ok(())
            });
            taken_back.await.map_err(|why| unusable(&why))?;
            return Err(why);
        }
        drop(turn);
        tracing::warn!(passkey = listed.name, "a passkey was added; not you? provost passkey reset");
        let all = self.known_passkeys().await?.passkeys;
        let added = all.iter().find(|it| *it.passkey.id == *id).map(|it| row(it));
        added.ok_or_else(|| {
            map::fault(Refusal::PasskeyRefused { why: "it was revoked at the same moment".into() })
        })
    }
}

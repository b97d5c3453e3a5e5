//! Translates the configuration of notices to addresses elsewhere: for the core, for the sender, and for lists.

use std::path::Path;
use std::sync::Arc;

use provost_api::wire;
use provost_base::WebAddress;
use provost_config::{Config, NotifyDetail, NotifyKind, NotifyTarget, NotifyType, Places, PushSubject};
use provost_domain::{self as domain, NoticeKind};
use provost_effects::{
    Attempt, NO_SUBJECT, NoticeAddress, NoticeService, NoticeSettings, NoticeUrl, Notices, PushSending,
};
use provost_vault::{Delivery, Vault};

/// Returns the addresses that get notices, in the form for the core's rules.
pub(super) fn for_the_core(config: &Config) -> Vec<domain::NoticeTarget> {
    let usable = config.notify_targets.targets.iter().filter(|(_, it)| it.enabled && address(it).is_ok());
    let target = |(name, it): (&String, &NotifyTarget)| domain::NoticeTarget {
        name: name.as_str().into(),
        kinds: it.kinds.iter().copied().map(kind).collect(),
        words: it.detail == NotifyDetail::Full,
    };
    usable.map(target).collect()
}

/// Returns the settings for browsers' messages, in the form for the core's rules.
pub(super) fn push_for_the_core(config: &Config) -> domain::PushSetting {
    let kinds = config.push.kinds.iter().copied().map(kind).collect();
    domain::PushSetting { kinds, words: config.push.detail == NotifyDetail::Full }
}

/// Returns the settings for sending to browsers. If no setting names a contact for push services, a public page's address is it.
fn push(config: &Config) -> PushSending {
    let page = || {
        let public = config.web.public.iter().map(|it| it.as_str());
        let pages = public.chain(config.passkeys.origins.iter().map(|it| it.as_str()));
        pages.filter_map(|it| PushSubject::parse(it).ok()).next()
    };
    let subject = config.push.subject.clone().or_else(page);
    PushSending {
        subject: subject.map(|it| it.as_str().to_owned()).ok_or_else(|| NO_SUBJECT.to_owned()),
        hosts: config.push.hosts.iter().map(|it| it.0.clone()).collect(),
        authority: config.push.authority.as_deref().map(certificate).transpose(),
    }
}

/// Returns the settings for sending notices.
pub(super) fn settings(config: &Config, places: &Places) -> NoticeSettings {
    let usable = config.notify_targets.targets.iter().filter(|(_, it)| it.enabled);
    let addresses = usable.filter_map(|(name, it)| Some((name.as_str().into(), Arc::new(address(it).ok()?))));
    let repository = places.root.file_name().unwrap_or_default().to_string_lossy();
    NoticeSettings { addresses: addresses.collect(), push: push(config), repository: repository.into() }
}

/// Returns all entries for lists; the notices that are owed, and the outcome of attempts, are added at each request.
pub(super) fn rows(config: &Config, vault: &Vault) -> Vec<wire::NoticeTarget> {
    let known = config.notify_targets.targets.iter().map(|(name, it)| wire::NoticeTarget {
        name: name.clone(),
        kind: it.kind.as_str().into(),
        host: match (&it.url, &it.url_secret) {
            (Some(url), _) => WebAddress::parse(&url.0).map(|it| it.origin()).unwrap_or_default(),
            (None, secret) => format!("the address in the secret {}", secret.as_deref().unwrap_or_default()),
        },
        kinds: it.kinds.iter().map(|it| it.as_str().into()).collect(),
        detail: it.detail.as_str().into(),
        enabled: it.enabled,
        broken: address(it).map(drop).and_then(|()| secrets_are_there(it, vault)).err(),
        ..wire::NoticeTarget::default()
    });
    let refused = config.notify_targets.refused.iter().map(|(name, it)| wire::NoticeTarget {
        name: name.clone(),
        enabled: true,
        broken: Some(format!("{}: {}", it.file, it.reason)),
        ..wire::NoticeTarget::default()
    });
    known.chain(refused).collect()
}

/// Adds the outcome of the last attempts at the addresses.
pub(super) fn with_attempts(rows: &mut [wire::NoticeTarget], notices: &Notices) {
    let last = notices.last();
    for row in rows {
        row.last = last.get(row.name.as_str()).map(attempt);
    }
}

/// Converts one attempt to its wire form.
pub(super) fn attempt(it: &Attempt) -> wire::NoticeAttempt {
    wire::NoticeAttempt { at: it.at.rfc3339(), delivered: it.delivered, says: it.says.clone() }
}

fn kind(kind: NotifyKind) -> NoticeKind {
    match kind {
        NotifyKind::Approval => NoticeKind::Approval,
        NotifyKind::Permission => NoticeKind::Permission,
        NotifyKind::Answered => NoticeKind::Answered,
        NotifyKind::Failed => NoticeKind::Failed,
        NotifyKind::Done => NoticeKind::Done,
        NotifyKind::Tainted => NoticeKind::Tainted,
        NotifyKind::Passkey => NoticeKind::Passkey,
    }
}

/// Returns an entry in the form for sending; a sentence if a file that it names cannot be used.
fn address(it: &NotifyTarget) -> Result<NoticeAddress, String> {
    let url = match (&it.url, &it.url_secret) {
        (Some(url), _) => {
            NoticeUrl::Written(WebAddress::parse(&url.0).map_err(|why| format!("`url` {why}"))?)
        }
        (None, secret) => NoticeUrl::Secret(secret.clone().unwrap_or_default()),
    };
    Ok(NoticeAddress {
        service: match it.kind {
            NotifyType::Webhook => NoticeService::Webhook,
            NotifyType::Ntfy => NoticeService::Ntfy,
            NotifyType::Slack => NoticeService::Slack,
            NotifyType::Discord => NoticeService::Discord,
            NotifyType::Mattermost => NoticeService::Mattermost,
        },
        url,
        at: it.address.map(|it| it.0),
        authority: it.authority.as_deref().map(certificate).transpose()?,
        keys: it.keys.clone(),
        link: it.link.as_ref().map(|it| it.0.trim_end_matches('/').to_owned()),
    })
}

fn certificate(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|err| format!("`authority`: {} cannot be read: {err}", path.display()))
}

/// Checks that the secrets of an entry exist, without reading their values.
fn secrets_are_there(it: &NotifyTarget, vault: &Vault) -> Result<(), String> {
    for name in it.keys.iter().chain(&it.url_secret) {
        let found = vault.look(name).map_err(|why| format!("{why} --daemon"))?;
        if found.delivery != Delivery::Daemon {
            return Err(format!(
                "the secret `{name}` is for workers; store one for notices: provost secret add NAME --daemon"
            ));
        }
    }
    Ok(())
}

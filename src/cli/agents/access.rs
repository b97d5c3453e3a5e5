//! Finds a credential for a program, and puts it into the vault so that the proxy adds it to requests.
//!
//! No credential is printed, put on a command line, or written to any place but the vault's file. The vault stores
//! only the path of a program's own log-in, and does not copy it.

use std::path::PathBuf;

use super::presets::{self, Access, Login, Preset};
use crate::{CliError, RepoContext, secrets};
use provost_base::{Secret, nearest};
use provost_vault::{ByProxy, Delivery, LoginFile, LoginHeader, Renewal, Upstream, VaultError};

/// A credential, and its origin.
#[derive(Debug)]
pub(super) struct Chosen {
    /// The row of the preset that the credential fits.
    pub(super) access: &'static Access,
    /// The secret's name in the vault.
    pub(super) secret: String,
    /// The way in which the proxy adds it to requests.
    pub(super) delivery: ByProxy,
    /// The origin of the credential, for people.
    pub(super) origin: String,
    /// The new content of the vault; `None` if the vault has the secret already.
    pub(super) new: Option<New>,
}

/// A credential that is not in the vault yet. `Debug` does not show it.
pub(super) enum New {
    /// The value itself.
    Value(Secret),
    /// The file in which the program keeps its log-in.
    Login(Box<LoginFile>),
}

impl std::fmt::Debug for New {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Value(_) => "a value",
            Self::Login(_) => "a log-in",
        })
    }
}

/// What was asked for on the command line.
pub(super) struct AccessArgs<'a> {
    pub(super) key_from: Option<&'a str>,
    pub(super) secret: Option<&'a str>,
    pub(super) upstream: Option<&'a Upstream>,
}

/// Chooses a credential: the named one, or else the first that exists.
pub(super) fn choose(
    here: &RepoContext,
    preset: &'static Preset,
    asked: &AccessArgs<'_>,
) -> Result<Chosen, CliError> {
    match (asked.secret, asked.key_from) {
        (Some(name), None) => of_vault(here, preset, asked, name),
        (name, Some("-")) => of_input(here, preset, asked, name),
        (name, Some(variable)) => of_named_variable(here, preset, asked, name, variable),
        (None, None) => find(here, preset, asked),
    }
}

/// The vault first, then variables, then log-ins.
fn find(here: &RepoContext, preset: &'static Preset, asked: &AccessArgs<'_>) -> Result<Chosen, CliError> {
    let vault = here.vault()?;
    for access in preset.access {
        match vault.look(access.secret) {
            Ok(_) => return of_vault(here, preset, asked, access.secret),
            Err(VaultError::Unknown(_)) => {}
            Err(err) => return Err(err.into()),
        }
    }
    for access in preset.access {
        for variable in access.variables {
            if let Some(value) = variable_of(variable) {
                let origin = format!("the variable {variable}");
                return fresh(access, access.secret, asked, New::Value(value), origin);
            }
        }
    }
    for access in preset.access {
        let Some(login) = &access.login else { continue };
        let path = path_of(login);
        if path.as_ref().is_some_and(|it| it.is_file()) {
            let login = login_file(login, path.unwrap_or_default())?;
            let origin = format!("the log-in in {}, which stays there", login.path.display());
            return fresh(access, access.secret, asked, New::Login(Box::new(login)), origin);
        }
    }
    Err(none(preset))
}

fn none(preset: &Preset) -> CliError {
    let variables: Vec<&str> = preset.access.iter().flat_map(|it| it.variables).copied().collect();
    let logins = preset.access.iter().filter_map(|it| it.login.as_ref()).map(|it| it.command);
    let ways = [
        format!("set {}", variables.join(" or ")),
        format!("provost agent add {} --key-from - < key.txt", preset.name),
    ];
    let ways: Vec<String> = ways.into_iter().chain(logins.map(|it| format!("run `{it}`"))).collect();
    CliError::of(format!("no credential for {} was found", preset.title))
        .because("neither the vault, nor the environment, nor a log-in has one")
        .next(ways.join("; or "))
}

/// Chooses a secret that is in the vault already.
fn of_vault(
    here: &RepoContext,
    preset: &'static Preset,
    asked: &AccessArgs<'_>,
    name: &str,
) -> Result<Chosen, CliError> {
    let found = match here.vault()?.look(name) {
        Ok(found) => found,
        Err(VaultError::Unknown(_)) if asked.key_from.is_none() => {
            let first = preset.access[0].variables.first().copied().unwrap_or("-");
            return Err(CliError::of(format!("the vault has no secret `{name}`"))
                .next(format!("provost agent add {} --secret {name} --key-from {first}", preset.name)));
        }
        Err(err) => return Err(err.into()),
    };
    let unfit = |why: &str| {
        CliError::refusal(format!("the secret `{name}` does not fit {}", preset.title))
            .because(why)
            .next("name another one with --secret NAME --key-from VARIABLE; `provost secret list` lists them")
    };
    let Delivery::Proxy(by) = found.delivery else {
        return Err(unfit("it would be given into the jail; only one that the proxy adds is used"));
    };
    let fits = |access: &&Access| {
        let has = |of: &[String], names: &[&str]| names.iter().all(|name| of.iter().any(|it| it == name));
        has(&by.base_url, access.base_url) && has(&by.token, access.token)
    };
    let access = preset.access.iter().find(fits);
    let access = access.ok_or_else(|| unfit("its variables are not those that the program reads"))?;
    if asked.upstream.is_some_and(|it| *it != by.upstream) {
        return Err(unfit(&format!("it is for {}", by.upstream)));
    }
    let origin = "the vault, as it is there".to_owned();
    Ok(Chosen { access, secret: name.into(), delivery: by, origin, new: None })
}

/// Reads a value from standard input.
fn of_input(
    here: &RepoContext,
    preset: &'static Preset,
    asked: &AccessArgs<'_>,
    name: Option<&str>,
) -> Result<Chosen, CliError> {
    let access = &preset.access[0];
    let name = name.unwrap_or(access.secret);
    must_be_new(here, name)?;
    let empty = New::Value(Secret::new(Vec::new()));
    let chosen = fresh(access, name, asked, empty, "standard input".into())?;
    // A value that is typed at a terminal is not shown.
    let value = secrets::value(name, &Delivery::Proxy(chosen.delivery.clone()))?;
    Ok(Chosen { new: Some(New::Value(value)), ..chosen })
}

/// Chooses the value of a named variable. Its row is the row that knows the variable, or else the first.
fn of_named_variable(
    here: &RepoContext,
    preset: &'static Preset,
    asked: &AccessArgs<'_>,
    name: Option<&str>,
    variable: &str,
) -> Result<Chosen, CliError> {
    let value = variable_of(variable).ok_or_else(|| {
        let known = preset.access.iter().flat_map(|it| it.variables).copied();
        let near = nearest(variable, known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        CliError::of(format!("the variable {variable} is not set{near}"))
            .next(format!("provost agent add {} --key-from - < key.txt", preset.name))
    })?;
    let access = preset.access.iter().find(|it| it.variables.contains(&variable));
    let access = access.unwrap_or(&preset.access[0]);
    let name = name.unwrap_or(access.secret);
    must_be_new(here, name)?;
    fresh(access, name, asked, New::Value(value), format!("the variable {variable}"))
}

fn must_be_new(here: &RepoContext, name: &str) -> Result<(), CliError> {
    match here.vault()?.look(name) {
        Ok(_) => Err(CliError::refusal(format!("there is a secret `{name}` already"))
            .because("it is not replaced, since other entries may use it")
            .next(format!("use it: --secret {name}; or name a new one: --key-from … --secret ANOTHER"))),
        Err(VaultError::Unknown(_)) => Ok(()),
        Err(err) => Err(err.into()),
    }
}

fn fresh(
    access: &'static Access,
    name: &str,
    asked: &AccessArgs<'_>,
    new: New,
    origin: String,
) -> Result<Chosen, CliError> {
    let words = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect();
    let usual = || Upstream::parse(access.upstream).map_err(CliError::of);
    let delivery = ByProxy {
        upstream: asked.upstream.cloned().map_or_else(usual, Ok)?,
        header: access.header.into(),
        prefix: access.prefix.into(),
        base_url: words(access.base_url),
        token: words(access.token),
        authority: None,
    };
    Ok(Chosen { access, secret: name.into(), delivery, origin, new: Some(new) })
}

/// Returns the value of a variable that is set and not empty.
fn variable_of(name: &str) -> Option<Secret> {
    let value = std::env::var_os(name)?.into_string().ok()?;
    (!value.trim().is_empty()).then(|| Secret::new(value.into_bytes()))
}

fn path_of(login: &Login) -> Option<PathBuf> {
    let folder = std::env::var_os(login.folder_in).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(login.folder));
    folder.or_else(home).map(|folder| folder.join(login.file))
}

fn login_file(login: &Login, path: PathBuf) -> Result<LoginFile, CliError> {
    let renewal = |it: presets::Renewed| {
        Ok::<_, CliError>(Renewal {
            endpoint: Upstream::parse(it.endpoint).map_err(CliError::of)?,
            client_id: it.client_id.into(),
            tokens: it.tokens.into(),
            renewed_at: it.renewed_at.into(),
        })
    };
    Ok(LoginFile {
        renewal: login.renewal.map(renewal).transpose()?,
        path,
        token: login.token.into(),
        expires: login.expires.map(str::to_owned),
        header: login.header.map(|(name, value)| LoginHeader { name: name.into(), value: value.into() }),
        command: login.command.into(),
    })
}

/// Puts the credential into the vault, if it is not there; returns whether it is new.
pub(super) fn keep(here: &RepoContext, chosen: &Chosen) -> Result<bool, CliError> {
    let delivery = Delivery::Proxy(chosen.delivery.clone());
    let vault = here.vault()?;
    match &chosen.new {
        Some(New::Value(value)) => vault.add(&chosen.secret, delivery, value)?,
        Some(New::Login(login)) => vault.add_login(&chosen.secret, delivery, LoginFile::clone(login))?,
        None => return Ok(false),
    }
    Ok(true)
}

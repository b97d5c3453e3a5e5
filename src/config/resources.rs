//! Values about resources: the number of units of a counted kind, and the needs of a worker.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::load::{Loading, RefusedWorker, Severity, join};
use super::table::Config;
use super::value::{Context, Value, quoted};
use provost_base::limits::{COUNTED_MAX, NEEDS_MAX};
use provost_base::{AgentId, Resource};

/// Kinds whose values are no number of units.
const NOT_COUNTED: [&str; 2] = ["port", "git"];

/// The number of units of each counted kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug, Default)]
pub struct Counted(pub BTreeMap<Box<str>, u32>);

impl Value for Counted {
    const NAME: &'static str = "table of numbers";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        let table =
            value.as_table().ok_or_else(|| format!("expected a table, found {}", value.type_str()))?;
        let mut counted = BTreeMap::new();
        for (key, value) in table {
            let name = key.get_ref();
            let shown = provost_base::visible(name);
            let text = if name.starts_with('@') { name.to_string() } else { format!("@{name}") };
            let resource = Resource::parse(&text).map_err(|why| format!("{shown:?} {why}"))?;
            if resource.value().is_some() {
                return Err(format!("{shown:?} names one resource; a kind is counted, such as gpu = 2"));
            }
            let kind = resource.kind();
            if NOT_COUNTED.contains(&kind) {
                return Err(format!("`{kind}` cannot be counted: what is after its colon is a name"));
            }
            let number = u64::read(value.get_ref(), context).map_err(|why| format!("`{kind}`: {why}"))?;
            let count = u32::try_from(number).ok().filter(|it| (1..=COUNTED_MAX).contains(it));
            let count =
                count.ok_or_else(|| format!("`{kind}`: must be from 1 to {COUNTED_MAX}, not {number}"))?;
            if counted.insert(kind.into(), count).is_some() {
                return Err(format!("`{kind}` is there twice"));
            }
        }
        Ok(Self(counted))
    }
    fn print(&self) -> Option<String> {
        let pairs: Vec<_> =
            self.0.iter().map(|(kind, count)| format!("{} = {count}", quoted(kind))).collect();
        Some(match pairs.is_empty() {
            true => "{}".into(),
            false => format!("{{ {} }}", pairs.join(", ")),
        })
    }
}

/// The resources that a worker needs, each once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug, Default)]
pub struct Needs(pub Vec<Resource>);

impl Value for Needs {
    const NAME: &'static str = "list of resources";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        let names = Vec::<String>::read(value, context)?;
        if names.len() > NEEDS_MAX {
            return Err(format!("lists {}; {NEEDS_MAX} at most", names.len()));
        }
        let mut needs: Vec<Resource> = Vec::new();
        for name in names {
            let shown = provost_base::visible(&name);
            let need = Resource::parse(&name).map_err(|why| format!("{shown:?} {why}"))?;
            if needs.contains(&need) {
                return Err(format!("{need} is there twice"));
            }
            needs.push(need);
        }
        Ok(Self(needs))
    }
    fn print(&self) -> Option<String> {
        Some(format!("[{}]", self.0.iter().map(|it| quoted(&it.to_string())).collect::<Vec<_>>().join(", ")))
    }
}

impl Needs {
    /// Says why no run can ever have all of these needs, given the number of units of each kind.
    fn impossible(&self, counted: &Counted) -> Option<String> {
        let mut seen: BTreeMap<&str, &Resource> = BTreeMap::new();
        for need in &self.0 {
            let kind = need.kind();
            let Some(of) = counted.0.get(kind) else { continue };
            if !need.units().is_some_and(|it| (1..=u64::from(*of)).contains(&it)) {
                return Some(format!("`needs`: there are {of} of @{kind}, so that {need} is never had"));
            }
            if let Some(other) = seen.insert(kind, need) {
                return Some(format!(
                    "`needs`: {other} and {need} are of one kind, which is counted; name it once, with the number that is needed"
                ));
            }
        }
        None
    }
}

impl Loading {
    /// Refuses workers, once everything is read, that need more units of a counted kind than exist, or name a kind twice.
    pub(super) fn refuse_impossible_needs(&mut self) {
        let Config { workers, coordination, .. } = &self.done.config;
        let why = |needs: &Needs| needs.impossible(&coordination.resources);
        let refused: Vec<(AgentId, String)> =
            workers.iter().filter_map(|(id, it)| Some((id.clone(), why(&it.needs)?))).collect();
        for (id, reason) in refused {
            let is_agent = self.done.config.agents.iter().any(|it| it.id == id);
            let (section, what) = if is_agent { ("agent", "agent") } else { ("workers", "worker") };
            let full = join(section, id.as_str());
            let file = self.done.origins.get(&full).cloned().unwrap_or_default();
            self.note_of(&file, &full, format!("{reason}; this {what} is refused"), Severity::Error);
            self.done.config.workers.remove(&id);
            self.done.config.agents.retain(|it| it.id != id);
            let refused = RefusedWorker { file, reason, is_agent };
            self.done.config.refused_workers.insert(id.as_str().into(), refused);
        }
    }
}

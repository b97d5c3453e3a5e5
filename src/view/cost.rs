//! Usage of runs as agents report it: a table by agent and one by day, with a bar beside each number.

use provost_api::wire::{CostRow, Costs};

use super::block::Empty;
use super::{Block, Cell, Row, Rows};

/// Rows of one table: more bars are no help.
const ROWS_SHOWN: usize = 14;

/// Shows the usage of runs of these days, by agent and by day. A number that no run has reported is called unknown.
pub fn costs(by_agent: &Costs, by_day: &Costs) -> Vec<Block> {
    vec![table("Used by agent", "Agent", by_agent), table("Used by day, of UTC", "Day", by_day)]
}

fn table(title: &str, key: &'static str, found: &Costs) -> Block {
    let most = |of: fn(&CostRow) -> Option<f64>| found.rows.iter().filter_map(of).fold(0.0, f64::max);
    let (dearest, longest) = (most(usd), most(tokens));
    let rows = found.rows.iter().take(ROWS_SHOWN).map(|it| Row {
        key: it.key.clone(),
        to: None,
        cells: vec![
            if it.key.is_empty() { Cell::text("not named") } else { Cell::code(&it.key) },
            bar(usd(it), dearest, |usd| format!("{usd:.2} USD")),
            bar(tokens(it), longest, |tokens| format!("{tokens:.0}")),
            Cell::text(&it.runs.to_string()),
            Cell::text(&counted(it)),
        ],
        commands: Vec::new(),
    });
    Block::List(Rows {
        title: title.into(),
        columns: vec![key, "Cost", "Tokens read and written", "Runs", "Counted by the proxy"],
        rows: rows.collect(),
        more: found.rows.len().saturating_sub(ROWS_SHOWN),
        empty: Empty::new("No run has used a model.", Some("provost cost")),
    })
}

/// Says how much the daemon has counted, and whether the reported numbers differ from it.
fn counted(it: &CostRow) -> String {
    let Some(counted) = &it.counted else { return "nothing".into() };
    let mut text = format!("{} tokens in {} calls", counted.tokens(), counted.calls);
    if let Some(usd) = counted.cost_usd.filter(|usd| usd.is_finite()) {
        text += &format!(", {usd:.2} USD");
    }
    if !counted.unpriced.is_empty() {
        text += ", not all with a price";
    }
    if let Some(differs) = counted.difference(&it.used) {
        text += &format!("; {differs}");
    }
    text
}

fn usd(it: &CostRow) -> Option<f64> {
    it.used.cost_usd.filter(|usd| usd.is_finite() && *usd >= 0.0)
}

fn tokens(it: &CostRow) -> Option<f64> {
    let known = [it.used.tokens_input, it.used.tokens_output];
    let sum = known.iter().flatten().fold(0_u64, |sum, it| sum.saturating_add(*it));
    // Sums beyond what a float holds exactly differ in no bar.
    known.iter().any(Option::is_some).then_some(sum as f64)
}

/// Makes a cell of a number with its share of the largest; an unknown number has no bar.
fn bar(value: Option<f64>, largest: f64, text: impl Fn(f64) -> String) -> Cell {
    let Some(value) = value else { return Cell::text("unknown") };
    let share = if largest > 0.0 { (value / largest * 1_000.0).clamp(0.0, 1_000.0) } else { 0.0 };
    Cell::Share { text: text(value), of_thousand: share.round() as u16 }
}

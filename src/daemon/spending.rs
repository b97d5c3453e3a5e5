//! Translates prices and budgets of the configuration for the core.

use provost_config::{self as config, BudgetOf, Config};
use provost_domain::{Budget, BudgetPer, Limit, Price, SpendingSettings};

/// Returns the core's part of the settings.
pub(super) fn settings(config: &Config) -> SpendingSettings {
    let price = |it: &config::PriceEntry| Price {
        model: it.model.as_str().into(),
        input: it.input.0,
        output: it.output.0,
        cache_read: it.cache_read.unwrap_or(it.input).0,
        cache_write: it.cache_write.unwrap_or(it.input).0,
    };
    SpendingSettings {
        prices: config.prices.iter().map(price).collect(),
        budgets: config.budgets.iter().filter_map(budget).collect(),
    }
}

/// Returns a budget; an entry without a limit was refused when it was read.
fn budget(it: &config::BudgetEntry) -> Option<Budget> {
    let limit = it.tokens.map(Limit::Tokens).or(it.usd.map(|usd| Limit::MicroUsd(usd.0)))?;
    let percent = |it: u32| u8::try_from(it.min(100)).unwrap_or(100);
    Some(Budget {
        per: match it.per {
            BudgetOf::Task => BudgetPer::Task,
            BudgetOf::Agent => BudgetPer::Agent,
            BudgetOf::Day => BudgetPer::Day,
            BudgetOf::Repository => BudgetPer::Repository,
        },
        agent: it.agent.clone(),
        limit,
        warn_at: percent(it.warn_at),
        ask_at: percent(it.ask_at),
    })
}

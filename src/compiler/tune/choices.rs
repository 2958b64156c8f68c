//! Choices that were measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A measured choice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Name of the configuration.
    pub config: String,
    /// Median time of one run when it was chosen, in nanoseconds.
    pub ns: u64,
    /// The same of the table's choice.
    pub table_ns: u64,
}

impl Choice {
    /// Whether `configs` holds its configuration.
    pub(super) fn is_among(&self, configs: &[String]) -> bool {
        configs.contains(&self.config)
    }
}

/// Choices by what is tuned as one (see [`HeroChoice::key`](crate::compiler::HeroChoice::key)). A cheap handle on values that do not change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tuning {
    choices: Arc<BTreeMap<String, Choice>>,
}

impl Tuning {
    /// The choice for `key`.
    pub fn get(&self, key: &str) -> Option<&Choice> {
        self.choices.get(key)
    }

    /// Puts a choice into this handle; other handles keep what they have.
    pub fn insert(&mut self, key: impl Into<String>, choice: Choice) {
        Arc::make_mut(&mut self.choices).insert(key.into(), choice);
    }

    /// All choices, by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Choice)> {
        self.choices.iter().map(|(key, choice)| (key.as_str(), choice))
    }

    /// Number of choices.
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }
}

impl FromIterator<(String, Choice)> for Tuning {
    fn from_iter<I: IntoIterator<Item = (String, Choice)>>(choices: I) -> Self {
        Tuning { choices: Arc::new(choices.into_iter().collect()) }
    }
}

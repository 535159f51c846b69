//! The values that were tuned, and their file: `papers/2018-aistats/table-1.toml`.

use super::als::Als;
use super::method::Method;
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::personal::home::Home;

/// Everything that was tuned. [`super::tune::tune`] finds it, and the file says how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Values {
    /// How films' features are made in the paper's setting.
    pub als: Als,
    /// The paper's setting.
    pub paper: SettingValues,
    /// The sound settings.
    pub sound: SettingValues,
}

/// The values of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SettingValues {
    /// How long features are for local models. lambda_i = 1 / m_i, so the longer, the weaker the ridge.
    pub local_feature_length: f64,
    /// How long they are for coordinate descent without privacy.
    pub feature_length: f64,
    /// Its mu.
    pub trade_off: f64,
    /// One entry for each private cell.
    pub private: Vec<PrivateValues>,
}

/// The values of a private cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PrivateValues {
    /// Which method.
    pub method: Method,
    /// The budget.
    pub epsilon: f64,
    /// How long features are; as long as they come when this is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_length: Option<f64>,
    /// mu.
    pub trade_off: f64,
    /// B.
    pub clip: f64,
    /// T_i.
    pub updates: u64,
    /// Of home models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeValues>,
}

/// The values of a home model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HomeValues {
    /// s.
    pub scale: f64,
    /// mu_h.
    pub trade_off: f64,
}

impl From<HomeValues> for Home {
    fn from(HomeValues { scale, trade_off }: HomeValues) -> Home {
        Home::Tuned { scale, trade_off }
    }
}

/// The file, comments and all.
pub const FILE: &str = include_str!("../../../../papers/2018-aistats/table-1.toml");

impl Values {
    /// The values that the table is made with.
    pub fn tuned() -> Self {
        toml::from_str(FILE).expect("the file is part of the program, and a test reads it")
    }

    /// As the file writes them, without its comments.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("plain numbers and names")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_reads_back_as_it_was_written() {
        let values = Values::tuned();
        assert_eq!(toml::from_str::<Values>(&values.text()).expect("own text"), values);
        let wrong = FILE.replacen("trade-off = ", "tradeoff = ", 1);
        assert!(toml::from_str::<Values>(&wrong).is_err(), "an unknown key is a mistake");
    }
}

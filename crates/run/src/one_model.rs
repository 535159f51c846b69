//! One model for all: what a run came to where everybody learns the same.

use sottovoce_core::Rows;

/// The model that agents have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct OneModel {
    /// The mean of the models of its holders.
    pub model: Vec<f64>,
    /// Who holds it: those whose models have been through most steps.
    pub is_holder: Vec<bool>,
    /// How far two holders are apart at most, in any coordinate; zero where all hold the same.
    pub spread: f64,
}

impl OneModel {
    /// From everybody's models, and how many steps each has been through; `None`: the agent has none. Nothing where nobody has one.
    pub fn of(models: &Rows, steps: &[Option<u64>]) -> Option<OneModel> {
        let most = steps.iter().flatten().max()?;
        let is_holder: Vec<bool> = steps.iter().map(|steps| steps.as_ref() == Some(most)).collect();
        let holders = || (0..models.count()).filter(|&agent| is_holder[agent]).map(|agent| models.row(agent));
        let count = holders().count() as f64;
        let dimension = holders().next().map_or(0, <[f64]>::len);
        let (mut model, mut spread) = (Vec::with_capacity(dimension), 0.0f64);
        for k in 0..dimension {
            let all = || holders().map(|row| row[k]);
            let (low, high) =
                all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (x.min(low), x.max(high)));
            spread = spread.max(high - low);
            // Where all hold the same, that is the mean to the bit.
            model.push(if low == high { low } else { all().sum::<f64>() / count });
        }
        Some(OneModel { model, is_holder, spread })
    }

    /// The model for each agent, to be scored with.
    pub fn for_everyone(&self) -> Rows {
        let mut rows = Rows::zeros(self.is_holder.len(), self.model.len());
        (0..self.is_holder.len()).for_each(|agent| rows.row_mut(agent).copy_from_slice(&self.model));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[[f64; 2]]) -> Rows {
        let mut rows = Rows::zeros(all.len(), 2);
        all.iter().enumerate().for_each(|(k, row)| rows.row_mut(k).copy_from_slice(row));
        rows
    }

    #[test]
    fn only_the_models_with_most_steps_count() {
        let models = rows(&[[1.0, 2.0], [3.0, -2.0], [100.0, 100.0], [7.0, 7.0]]);
        let one = OneModel::of(&models, &[Some(5), Some(5), Some(4), None]).expect("somebody has a model");
        assert_eq!(one.model, [2.0, 0.0]);
        assert_eq!(one.is_holder, [true, true, false, false]);
        assert_eq!(one.spread, 4.0);
        assert_eq!(one.for_everyone().row(2), [2.0, 0.0]);
        assert_eq!(OneModel::of(&models, &[None; 4]), None);
    }

    #[test]
    fn where_all_hold_the_same_it_is_that_to_the_bit() {
        let one = OneModel::of(&rows(&[[0.1, 0.3]; 3]), &[Some(0); 3]).expect("a model");
        assert_eq!((one.model, one.spread), (vec![0.1, 0.3], 0.0));
    }
}

//! Whether noise that should be independent is the same twice, or is missing.

use crate::Event;
use crate::noise::Release;

/// Two noises that agree to this relative error in every coordinate are one: rounding of input and output blurs them by less.
const SAME: f64 = 1e-7;

/// Fewer numbers than this can agree by chance.
const NUMBERS_MIN: usize = 2;

/// More numbers need not be compared.
const NUMBERS_MAX: usize = 16;

/// The noise of a release in units of its scale; nothing for signs.
fn noise(release: &Release) -> Option<Vec<f64>> {
    let (Event::Laplace { noise_multiplier }
    | Event::Gaussian { noise_multiplier }
    | Event::GammaNorm { noise_multiplier }) = release.event
    else {
        return None;
    };
    let scale = noise_multiplier * release.sensitivity;
    Some(release.output.iter().zip(&release.input).map(|(o, x)| (o - x) / scale).collect())
}

/// Coordinates of a release that left as they came, without noise: which, if any.
pub fn noiseless(release: &Release) -> Option<usize> {
    if matches!(release.event, Event::RandomizedResponse { .. }) {
        return None;
    }
    release.output.iter().zip(&release.input).position(|(output, input)| output == input)
}

/// Two different (agent, release) whose noise is the same, if there are any. `agents` holds each agent's releases.
pub fn reused<'r>(agents: impl Iterator<Item = &'r [Release]>) -> Option<[(usize, usize); 2]> {
    let mut known: Vec<(Vec<f64>, (usize, usize))> = Vec::new();
    for (agent, releases) in agents.enumerate() {
        let noises: Vec<(usize, Vec<f64>)> =
            releases.iter().enumerate().filter_map(|(k, release)| Some((k, noise(release)?))).collect();
        for (k, noise) in &noises {
            if noise.len() >= NUMBERS_MIN {
                known.push((noise[..noise.len().min(NUMBERS_MAX)].to_vec(), (agent, *k)));
            }
        }
        // Releases of one number each are compared agent by agent.
        let singles: Vec<f64> =
            noises.iter().filter(|(_, noise)| noise.len() == 1).map(|(_, noise)| noise[0]).collect();
        if singles.len() >= NUMBERS_MIN {
            known.push((singles[..singles.len().min(NUMBERS_MAX)].to_vec(), (agent, 0)));
        }
    }
    known.sort_by(|(a, _), (b, _)| a[0].total_cmp(&b[0]));
    let close = |a: f64, b: f64| (a - b).abs() <= SAME * (1.0 + a.abs());
    for (k, (one, place)) in known.iter().enumerate() {
        let near = known[k + 1..].iter().take_while(|(other, _)| close(one[0], other[0]));
        for (other, other_place) in near {
            if one.len().min(other.len()) >= NUMBERS_MIN && one.iter().zip(other).all(|(&a, &b)| close(a, b)) {
                return Some([*place, *other_place]);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Idealized, Noise};

    fn releases(seed: u64, agent: u32, input: f64, sizes: &[usize]) -> Vec<Release> {
        let mut noise = Idealized::new(seed, agent);
        let event = Event::Gaussian { noise_multiplier: 2.0 };
        let release = |&size: &usize| {
            let input = vec![input; size];
            let mut output = input.clone();
            noise.perturb(event, 0.1, &mut output);
            Release { event, sensitivity: 0.1, input, output }
        };
        sizes.iter().map(release).collect()
    }

    #[test]
    fn the_same_noise_is_found_below_any_data() {
        for sizes in [&[3, 3][..], &[1, 1, 1]] {
            let agents: Vec<_> = (0..200).map(|agent| releases(1, agent, f64::from(agent), sizes)).collect();
            assert_eq!(reused(agents.iter().map(|releases| &releases[..])), None);
            let mut agents = agents;
            agents.push(releases(1, 17, -5.0, sizes));
            let [(one, _), (other, _)] =
                reused(agents.iter().map(|releases| &releases[..])).expect("17 is there twice");
            assert_eq!([one.min(other), one.max(other)], [17, 200]);
        }
    }

    #[test]
    fn a_coordinate_without_noise_is_found() {
        let mut release = releases(1, 1, 0.5, &[4]).remove(0);
        assert_eq!(noiseless(&release), None);
        release.output[2] = 0.5;
        assert_eq!(noiseless(&release), Some(2));
    }
}

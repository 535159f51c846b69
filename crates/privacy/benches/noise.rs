//! What noise costs per coordinate, in nanoseconds and against one 64-bit number of the bare generator.
//!
//! `cargo bench -p sottovoce-privacy --bench noise`

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_privacy::{Event, Exact, Idealized, Noise, Secret};
use std::{hint::black_box, time::Instant};

/// The shortest of several runs, in nanoseconds per coordinate.
fn nanoseconds(coordinates: usize, mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e9 / coordinates as f64
    };
    (0..9).map(time).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut generator = ChaCha20Rng::from_seed([7; 32]);
    let mut words = vec![0u64; 100_000];
    let bare = nanoseconds(words.len(), || words.iter_mut().for_each(|word| *word = generator.next_u64()));
    black_box(&words);
    println!("bare ChaCha20: {bare:.2} ns per 64-bit number");

    let noise_multiplier = 10.0;
    let events = [
        ("Laplace", Event::Laplace { noise_multiplier }),
        ("Gaussian", Event::Gaussian { noise_multiplier }),
        ("Gamma-norm", Event::GammaNorm { noise_multiplier }),
        ("randomized response", Event::RandomizedResponse { epsilon: 1.0 }),
    ];
    let mut sources: [(&str, Box<dyn Noise>); 3] = [
        ("secret", Box::new(Secret::from_os().expect("entropy"))),
        ("seeded", Box::new(Exact::seeded(1, 0))),
        ("idealized", Box::new(Idealized::new(1, 0))),
    ];
    for (name, noise) in &mut sources {
        for (law, event) in events {
            for dimension in [20, 2000] {
                let mut values = vec![1.0; dimension];
                let releases = 200_000 / dimension;
                let each = nanoseconds(dimension * releases, || {
                    (0..releases).for_each(|_| noise.perturb(event, 1.0, black_box(&mut values)));
                });
                println!("{name:>10} {law:>20}, p = {dimension:4}: {each:8.1} ns, {:7.1} x bare", each / bare);
            }
        }
    }
}

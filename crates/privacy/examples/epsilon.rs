//! Reads ledgers, one a line, as `{"charges": [..], "delta": ..}`, and prints what the accountants say of each; an
//! infinite epsilon is `null`.
//!
//! ```sh
//! echo '{"charges": [{"mechanism": "laplace", "noise_multiplier": 4.0, "audience": "everyone", "count": 9}], "delta": 1e-6}' |
//!   cargo run --release --package sottovoce-privacy --example epsilon
//! ```

use serde::Deserialize;
use sottovoce_privacy::{Accountant, Charge, Gaussian, Ledger, Optimal, Pld, Rdp, Sum, Theorem1, Tight};
use std::io::BufRead;

#[derive(Deserialize)]
struct Setting {
    charges: Vec<Charge>,
    delta: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let Setting { charges, delta } = serde_json::from_str(&line?)?;
        let ledger = Ledger::from_charges(charges)?;
        let by = |accountant: &dyn Accountant| accountant.epsilon(&ledger, delta);
        let all = serde_json::json!({
            "tight": by(&Tight), "pld": by(&Pld), "gaussian": by(&Gaussian), "optimal": by(&Optimal), "rdp": by(&Rdp),
            "theorem-1": by(&Theorem1), "sum": by(&Sum),
        });
        println!("{all}");
    }
    Ok(())
}

//! Reads ledgers, one a line, as `{"charges": [..], "delta": ..}`, and prints what the closest accountants say of each.
//!
//! ```sh
//! echo '{"charges": [{"mechanism": "laplace", "noise_multiplier": 4.0, "audience": "everyone", "count": 9}], "delta": 1e-6}' |
//!   cargo run --release --package sottovoce-privacy --example epsilon
//! ```

use serde::Deserialize;
use sottovoce_privacy::{Accountant, Charge, Ledger, Pld, Tight};
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
        let (tight, pld) = (Tight.epsilon(&ledger, delta), Pld.epsilon(&ledger, delta));
        println!("{}", serde_json::json!({ "tight": tight, "pld": pld }));
    }
    Ok(())
}

//! Differential privacy, alone and usable by others.
//!
//! Everything that leaves an agent passes one door, the [`Gate`]: it writes a [`Charge`] to the agent's
//! [`Ledger`] first and only then hands out a [`Released`] value. Nothing outside this crate can make a
//! [`Released`], and nothing else can be sent but what cryptography has made unreadable ([`Sealed`]). A run without privacy uses the same door: its ledger says
//! epsilon = infinity.
//!
//! | word | meaning |
//! |---|---|
//! | release | anything data-dependent that leaves an agent |
//! | charge | what a release costs |
//! | ledger | the append-only list of an agent's charges |
//! | accountant | a pure reader of the ledger that returns an epsilon |

mod account;
pub mod audit;
pub mod calibrate;
mod event;
mod gate;
mod ledger;
mod noise;
mod normal;
pub mod odometer;
mod plan;
mod released;
mod round;
mod sealed;
mod secrets;
pub mod sensitivity;

pub use account::{
    Accountant, BadLimit, Filter, Gaussian, Optimal, Pld, Rdp, Sum, Theorem1, Tight, gaussian_delta, gaussian_epsilon,
    gopa, least_limit, network,
    network::{BadRing, Ring, RingBy, Shares, reissue_law},
};
pub use event::{Audience, BadCharge, Event, Track};
pub use gate::{Exhausted, Gate, OtherPlan, Receipt};
pub use ledger::{Charge, Ledger, Sensitivity};
pub use noise::{DEVIATION_LOG2, Exact, Idealized, NoEntropy, NoNoise, Noise, OsRandom, Secret, Simulated};
pub use plan::{BadPlan, Plan};
pub use released::{Public, Released};
pub use sealed::{Leaves, Sealed};
pub use secrets::{Entropy, Secrets, Simulation};

//! Feeds damaged input to everything that reads what a peer or a disk says, and tells how fast and how well it went.

use clap::Parser;
use std::process::ExitCode;
use std::time::Duration;

/// Damaged input for every decoder.
#[derive(Parser)]
struct Arguments {
    /// How many inputs, for all targets together.
    #[arg(long, default_value_t = 1_000_000)]
    inputs: u64,
    /// The same seed makes the same inputs, but for noise from the system.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (mut inputs, mut failures, mut time) = (0, 0, Duration::ZERO);
    println!("{:<28} {:>10} {:>10} {:>12} {:>12}", "target", "inputs", "believed", "inputs/s", "bytes, most");
    sottovoce_fuzz::fuzz_all(arguments.inputs, arguments.seed, |report| {
        let rate = report.inputs as f64 / report.time.as_secs_f64();
        let (name, believed, most) = (&report.name, report.believed, report.allocated_max);
        println!("{name:<28} {:>10} {believed:>10} {rate:>12.0} {most:>12}", report.inputs);
        report.failures.iter().for_each(|failure| println!("  {failure}"));
        inputs += report.inputs;
        failures += report.failures.len();
        time += report.time;
    });
    println!("{inputs} inputs in {:.0} s, {failures} failures", time.as_secs_f64());
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

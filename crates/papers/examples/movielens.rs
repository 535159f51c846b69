//! Table 1 of the 2018 paper, and how its values were tuned:
//! `cargo run --release -p sottovoce-papers --example movielens -- table|quick|tune [FOLDER]`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use sottovoce_papers::movielens::ratings::MovieLens;
use sottovoce_papers::movielens::{FOLDER, Options, table_1, tune::tune};
use sottovoce_run::train::Halt;

fn main() -> Result<(), Halt> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "quick".to_owned());
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| FOLDER.to_owned()));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let mut watch = |done: u64, total: u64| {
        eprint!("\r{done} of {total}   ");
        ControlFlow::Continue(())
    };
    let text = match &*what {
        "tune" => tune(&MovieLens::read(&folder)?, threads, &mut watch)?.text(),
        "table" => table_1(&folder, &Options::full(threads), &mut watch)?.markdown(),
        _ => table_1(&folder, &Options::quick(threads), &mut watch)?.markdown(),
    };
    eprintln!();
    print!("{text}");
    Ok(())
}

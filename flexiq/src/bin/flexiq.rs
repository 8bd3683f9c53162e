//! The command line of a store: `flexiq --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    flexiq::__cli()
}

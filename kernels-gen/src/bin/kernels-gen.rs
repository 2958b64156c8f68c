//! Lists, prints and checks generated kernels for any target, without an adapter and without the rest of Sublane.

use kernels_gen::{KernelSource, Target, catalogue, validate};
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
Lists, prints and checks generated kernels.

Usage: kernels-gen list [TARGET]
       kernels-gen print NAME [TARGET]
       kernels-gen check [TARGET]

TARGET is webgpu (the default of list and print), software or desktop; check takes all three if none is given.
";

/// What ended the program: a wrong command line, or work that failed.
enum Stop {
    Usage(String),
    Failed(String),
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let text = match args[..] {
        ["list"] => list("webgpu"),
        ["list", target] => list(target),
        ["print", name] => print(name, "webgpu"),
        ["print", name, target] => print(name, target),
        ["check"] => check(Target::presets().to_vec()),
        ["check", name] => target(name).and_then(|t| check(vec![t])),
        ["-h" | "--help" | "help"] => Ok(USAGE.into()),
        _ => Err(Stop::Usage("this is no command line of kernels-gen".into())),
    };
    match text {
        Ok(text) => match std::io::stdout().lock().write_all(text.as_bytes()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                eprintln!("error: cannot write to standard output: {error}");
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        Err(Stop::Failed(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
        Err(Stop::Usage(message)) => {
            eprint!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn target(name: &str) -> Result<Target, Stop> {
    Target::preset(name).ok_or_else(|| Stop::Usage(format!("there is no target `{name}`")))
}

fn kernels(target: &Target) -> Result<Vec<(&'static str, KernelSource)>, Stop> {
    catalogue::kernels(target).map_err(|e| Stop::Failed(e.to_string()))
}

fn list(name: &str) -> Result<String, Stop> {
    Ok(kernels(&target(name)?)?.iter().map(|(family, kernel)| format!("{family}\t{}\n", kernel.name)).collect())
}

fn print(name: &str, on: &str) -> Result<String, Stop> {
    let target = target(on)?;
    let found = kernels(&target)?.into_iter().find(|(_, kernel)| kernel.name == name);
    let (_, kernel) = found.ok_or_else(|| Stop::Failed(format!("there is no kernel `{name}` for target `{on}`; `list` shows all")))?;
    Ok(kernel.wgsl)
}

fn check(targets: Vec<Target>) -> Result<String, Stop> {
    let (mut passed, mut faults) = (0, Vec::new());
    for target in &targets {
        for (_, kernel) in kernels(target)? {
            match validate::validate(&kernel, target) {
                Ok(()) => passed += 1,
                Err(error) => faults.push(error.to_string()),
            }
        }
    }
    if faults.is_empty() { Ok(format!("{passed} kernels are valid\n")) } else { Err(Stop::Failed(faults.join("\n"))) }
}

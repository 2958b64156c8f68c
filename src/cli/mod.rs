//! The command line: one file a command, and here what they share.
//!
//! Results go to standard output, progress and logs to standard error. The exit code is 0, 1 if the work failed, or 2 if the command
//! line is wrong. A reader that closes the pipe early is no error.

mod bench;
mod bitset;
mod cache;
mod demo;
mod device;
mod devices;
mod eval;
mod explain;
mod export;
mod first_call;
mod gemm;
mod kernels;
mod model;
mod motifs;
mod options;
mod output;
mod progress;
mod quantize;
mod run;
mod selftest;

use clap::Parser;
use output::Outcome;
use std::process::ExitCode;

/// Runs GPU compute kernels on any adapter.
#[derive(Debug, Parser)]
#[command(name = "sublane", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: options::Options,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the adapters, and limits and features of the chosen one
    Devices,
    /// Run kernels on the adapter and compare them with the processor's answers
    Demo,
    /// Compare every kernel with its reference on the adapter
    Selftest,
    /// Run an ONNX model
    Run(run::Command),
    /// Measure how many images an ONNX classifier gets right
    Eval(eval::Command),
    /// Show what the compiler makes of an ONNX model, and why
    Explain(explain::Command),
    /// Write an ONNX model as a plan, kernels and weights that run without the compiler
    Export(export::Command),
    /// Write the weights of an ONNX model in fewer bits, for `run`, `eval`, `explain` and `export`
    Quantize(quantize::Command),
    /// Measure products of quantised operands: time, bytes, error
    Gemm(gemm::Command),
    /// Measure the adapter, kernels and models
    Bench(bench::Command),
    /// One first call, for `bench start`
    #[command(hide = true)]
    FirstCall(first_call::Command),
    /// List or remove what is remembered: measured tiles, compiled graphs, pipelines
    #[command(subcommand)]
    Cache(cache::Command),
    /// List, print and check kernels, without an adapter
    #[command(subcommand)]
    Kernels(kernels::Command),
    /// List temporal motifs, make and convert temporal graphs
    #[command(subcommand)]
    Motifs(motifs::Command),
    /// Simulate convolutional networks bit by bit, outputs stopped as soon as they are known or predicted to end negative
    #[command(subcommand)]
    Bitset(bitset::Command),
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.options.start_logging();
    let outcome = match &cli.command {
        Command::Devices => devices::run(&cli.options),
        Command::Demo => demo::run(&cli.options),
        Command::Selftest => selftest::run(&cli.options),
        Command::Run(command) => run::run(command, &cli.options),
        Command::Eval(command) => eval::run(command, &cli.options),
        Command::Explain(command) => explain::run(command, &cli.options),
        Command::Export(command) => export::run(command, &cli.options),
        Command::Quantize(command) => quantize::run(command, &cli.options),
        Command::Gemm(command) => gemm::run(command, &cli.options),
        Command::Bench(command) => bench::run(command, &cli.options),
        Command::FirstCall(command) => first_call::run(command, &cli.options),
        Command::Cache(command) => cache::run(command, &cli.options),
        Command::Kernels(command) => kernels::run(command, &cli.options),
        Command::Motifs(command) => motifs::run(command, &cli.options),
        Command::Bitset(command) => bitset::run(command, &cli.options),
    };
    match outcome {
        Ok(Outcome::Passed) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}

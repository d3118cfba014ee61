//! `daytona-standin`: the stand-in as a program, for clients in other languages.
//!
//! It prints the two variables that Daytona's clients read, and runs until its input
//! ends.
#![allow(clippy::print_stdout, reason = "it tells where it listens")]

use std::process::ExitCode;
use std::time::Duration;

use daytona_testkit::{Options, Standin};
use tokio::io::AsyncReadExt as _;

const USAGE: &str = "usage: daytona-standin [--port PORT] [--key KEY] [--latency-ms MILLISECONDS] [--env NAME=VALUE]...";

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    let standin = match Standin::start_with(options).await {
        Ok(standin) => standin,
        Err(error) => {
            println!("cannot listen: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("DAYTONA_API_URL={}", standin.api_url());
    println!("DAYTONA_API_KEY={}", standin.api_key());
    let mut input = [0; 4096];
    while let Ok(1..) = tokio::io::stdin().read(&mut input).await {}
    standin.close().await;
    ExitCode::SUCCESS
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--port" => options.address.set_port(value.parse().ok()?),
            "--key" => options.api_key = value,
            "--latency-ms" => options.latency = Duration::from_millis(value.parse().ok()?),
            "--env" => {
                let (name, value) = value.split_once('=')?;
                options
                    .environment
                    .insert(name.to_owned(), value.to_owned());
            }
            _ => return None,
        }
    }
    Some(options)
}

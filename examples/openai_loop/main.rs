//! An agent with any OpenAI-compatible model: it streams, runs tool calls concurrently,
//! returns their results, and stops when the model makes no more calls. The loop itself
//! is `converse` in `examples/src/chat.rs`.
//!
//! `cargo run --example openai_loop -- [--images] BASE_URL MODEL PROMPT...` talks to a
//! model. The base URL ends before `/chat/completions`, and the key, if one is needed,
//! is read from `OPENAI_API_KEY`. `--images` is for models with vision. Without
//! arguments it talks to a script on loopback, which needs no network.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it does, and reads its key from the environment"
)]

#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use console_tools::{Options, Toolset};
use examples::chat::{
    Endpoint, Error, Event, Server, begin, client, converse, printable, scripted,
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let mut options = Options::default();
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first == "--images" => {
            options.image_support = true;
            rest
        }
        _ => &arguments,
    };
    let (endpoint, prompt, client, _server) = match arguments {
        [] => {
            let server = Server::start(scripted::demo()).await?;
            let prompt = "Write two files and mend one of them.".to_owned();
            let client = client().no_proxy();
            (server.endpoint(), prompt, client.build()?, Some(server))
        }
        [base_url, model, prompt @ ..] if !prompt.is_empty() => {
            let endpoint = Endpoint {
                base_url: base_url.clone(),
                model: model.clone(),
                key: std::env::var("OPENAI_API_KEY").ok(),
            };
            (endpoint, prompt.join(" "), client().build()?, None)
        }
        _ => return Err("usage: openai_loop [--images] BASE_URL MODEL PROMPT...".into()),
    };
    let files = StateBackend::new();
    let toolset = Toolset::builder(Arc::new(files.clone()))
        .options(options)
        .build()?;
    let chat = toolset.conversation("openai_loop");
    let mut messages = begin(&chat, &prompt).await?;
    let mut show = |event: Event<'_>| {
        if let Event::Text(text) = event {
            print!("{}", printable(text));
            let _ = std::io::stdout().flush();
        }
    };
    converse(&client, &endpoint, &chat, &mut messages, &mut show).await?;
    println!("\n\n# What its calls were answered");
    for message in messages.iter().filter(|message| message["role"] == "tool") {
        let content = message["content"].as_str().unwrap_or_default();
        println!("{}", printable(content));
    }
    println!("\n# What it left behind");
    for file in files.find_files("**").await?.files {
        println!("{} ({} bytes)", file.path, file.size.unwrap_or(0));
    }
    Ok(())
}

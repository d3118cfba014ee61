//! Concurrent calls, for cases about races.

use std::fmt;

use backend_core::{ErrorKind, Result};
use futures::future;

use crate::env::Env;
use crate::failure::Failure;

/// Runs all tasks concurrently, on two threads. The results are in the order of the
/// tasks.
pub(crate) async fn at_once<T, F>(tasks: impl IntoIterator<Item = F>) -> Result<Vec<T>, Failure>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut tasks: Vec<_> = tasks.into_iter().collect();
    let others = tokio::spawn(future::join_all(tasks.split_off(tasks.len() / 2)));
    let tasks = tokio::spawn(future::join_all(tasks));
    match future::try_join(tasks, others).await {
        Ok((results, others)) => Ok(results.into_iter().chain(others).collect()),
        Err(error) => Err(Failure::new(format!("a task failed: {error}"))),
    }
}

/// Checks that one task succeeded and all others failed with `kind`. Returns its index.
pub(crate) fn one_winner<T: fmt::Debug>(
    t: &Env,
    kind: ErrorKind,
    results: Vec<Result<T>>,
) -> Result<usize, Failure> {
    let mut winner = None;
    for (at, result) in results.into_iter().enumerate() {
        match result {
            Ok(_) if winner.is_none() => winner = Some(at),
            other => t.fails(kind, other)?,
        }
    }
    winner.ok_or_else(|| Failure::new("no task succeeded"))
}

//! The programs and errors of a kubeconfig's credentials, of which nothing secret is told.

use std::error::Error as StdError;
use std::io::{self, IsTerminal as _};

use backend_core::{Error, ErrorKind, Quoted};
use kube::client::AuthError;
use kube::config::{Config, ExecInteractiveMode, KubeconfigError};

type Source = Box<dyn StdError + Send + Sync>;

/// Keeps a program that gets the credentials from the input of this one, unless that is a
/// terminal: it may be a stream of messages, as that of a server is.
pub(crate) fn keep_input(config: &mut Config) {
    keep_input_if(config, !io::stdin().is_terminal());
}

fn keep_input_if(config: &mut Config, is_kept: bool) {
    if let Some(program) = config.auth_info.exec.as_mut().filter(|_| is_kept) {
        program.interactive_mode = Some(ExecInteractiveMode::Never);
    }
}

/// The error for a kubeconfig that cannot be used. The reason why one is malformed quotes
/// its lines, so only the place is told.
pub(crate) fn unusable(text: String, source: impl Into<Source>) -> Error {
    let source = source.into();
    let mut next: Option<&(dyn StdError + 'static)> = Some(&*source);
    let mut place = None;
    while let Some(error) = next {
        if let Some(KubeconfigError::Parse(error)) = error.downcast_ref() {
            place = Some(error.location().map(|place| place.line()));
        }
        next = error.source();
    }
    let error = Error::new(ErrorKind::Config, text);
    match place {
        None => error.with_source(source),
        Some(None) => error.with_source("it is not the YAML of a kubeconfig"),
        Some(Some(line)) => error.with_source(format!(
            "it is not the YAML of a kubeconfig, in or before line {line}"
        )),
    }
}

/// The error for credentials that cannot be obtained. The client's own words include the
/// variables and the output of the program that should have got them.
pub(crate) fn unobtainable(source: AuthError) -> Error {
    let error = Error::new(
        ErrorKind::Auth,
        "the credentials for the cluster cannot be obtained; log in again, or correct the user in the kubeconfig",
    );
    match source {
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            error.with_source(format!(
                "the program of the user in the kubeconfig ended with {} and said {}",
                out.status,
                Quoted::new(said.trim())
            ))
        }
        AuthError::AuthExecParse(_) | AuthError::AuthExec(_) | AuthError::ParseTokenKey(_) => {
            error.with_source("the program of the user in the kubeconfig printed no credentials")
        }
        source => error.with_source(source),
    }
}

#[cfg(test)]
mod tests {
    use kube::config::ExecConfig;

    use super::*;

    #[test]
    fn a_program_reads_only_from_a_terminal() {
        let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
        keep_input(&mut config);
        let modes = [
            None,
            Some(ExecInteractiveMode::IfAvailable),
            Some(ExecInteractiveMode::Always),
        ];
        for mode in modes {
            config.auth_info.exec = Some(ExecConfig {
                interactive_mode: mode.clone(),
                ..ExecConfig::default()
            });
            keep_input_if(&mut config, false);
            let kept = |config: &Config| config.auth_info.exec.clone().unwrap().interactive_mode;
            assert_eq!(kept(&config), mode);
            keep_input_if(&mut config, true);
            assert_eq!(kept(&config), Some(ExecInteractiveMode::Never));
        }
    }
}

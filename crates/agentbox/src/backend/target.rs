//! The text after the colon of `docker:`, `k8s:` and `daytona:`: an image, a runtime, or a
//! sandbox that exists.

use super::kind::Kind;
use crate::exit::{Failure, usage};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    Image(&'a str),
    Runtime(&'a str),
    Attach(&'a str),
}

impl<'a> Target<'a> {
    /// Returns the target that a specification names, or else the one of the kind's table.
    pub(super) fn choose(
        kind: Kind,
        argument: Option<&'a str>,
        image: Option<&'a str>,
        runtime: Option<&'a str>,
    ) -> Result<Self, Failure> {
        let name = kind.name();
        match (argument, image, runtime) {
            (Some(argument), ..) => Self::parse(kind, argument),
            (None, Some(image), None) => Ok(Self::Image(image)),
            (None, None, Some(runtime)) => Ok(Self::Runtime(runtime)),
            (None, Some(_), Some(_)) => Err(usage!(
                "[{name}] has an image and a runtime; remove one of them"
            )),
            (None, None, None) => Err(usage!(
                "{name} needs an image; write {name}:IMAGE or {name}:runtime=NAME, or set one in [{name}]; \
                 agentbox runtimes list tells which there are"
            )),
        }
    }

    fn parse(kind: Kind, argument: &'a str) -> Result<Self, Failure> {
        // The name of an image never has this character.
        match argument.split_once('=') {
            None if !argument.is_empty() => Ok(Self::Image(argument)),
            Some(("runtime", name)) if !name.is_empty() => Ok(Self::Runtime(name)),
            Some(("attach", id)) if !id.is_empty() => Ok(Self::Attach(id)),
            _ => {
                let name = kind.name();
                let (more, id) = match kind {
                    Kind::Daytona => (" daytona:snapshot=NAME,", "ID"),
                    Kind::K8s => ("", "POD"),
                    _ => ("", "ID"),
                };
                Err(usage!(
                    "{name}:{argument} names nothing; write {name}:IMAGE,{more} {name}:runtime=NAME or {name}:attach={id}"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_the_colon() {
        let parse = |argument| Target::parse(Kind::Docker, argument);
        let image = "mirror.example:5000/python:3.12@sha256:aa";
        assert_eq!(parse(image).unwrap(), Target::Image(image));
        let runtime = parse("runtime=python-web").unwrap();
        assert_eq!(runtime, Target::Runtime("python-web"));
        assert_eq!(parse("attach=box").unwrap(), Target::Attach("box"));
        for bad in ["", "runtime=", "attach=", "image=python"] {
            assert!(parse(bad).unwrap_err().is_usage(), "{bad}");
        }
    }

    #[test]
    fn what_is_missing_is_taken_from_the_table() {
        for kind in [Kind::Docker, Kind::K8s, Kind::Daytona] {
            let target = |argument, image, runtime| Target::choose(kind, argument, image, runtime);
            assert_eq!(target(None, Some("a"), None).unwrap(), Target::Image("a"));
            let runtime = target(None, None, Some("a")).unwrap();
            assert_eq!(runtime, Target::Runtime("a"));
            let given = target(Some("b"), Some("a"), None).unwrap();
            assert_eq!(given, Target::Image("b"));
            assert!(target(None, Some("a"), Some("b")).is_err());
            let error = target(None, None, None).unwrap_err();
            assert!(error.is_usage());
            let form = format!("{}:IMAGE", kind.name());
            assert!(error.to_string().contains(&form), "{error}");
        }
    }
}

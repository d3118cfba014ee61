//! [`Hosts`]: the host names under which clients may reach the server.
//!
//! A web page can point its own host name at this machine (DNS rebinding). Its requests
//! still carry that name.

use hyper::header::HOST;
use hyper::{Request, StatusCode};

use crate::host_name::{HostName, Name};
use crate::settings::HttpSettings;

/// The accepted names. If empty, any name is accepted.
pub(super) struct Hosts(Vec<HostName>);

impl Hosts {
    pub(super) fn new(http: &HttpSettings) -> Self {
        let ip = http.listen.ip();
        if !ip.is_loopback() && http.hosts.is_empty() {
            return Self(Vec::new());
        }
        let usual = ["localhost", "127.0.0.1", "[::1]"];
        let given = http.hosts.iter().map(String::as_str);
        let mut hosts: Vec<HostName> = usual
            .into_iter()
            .chain(given)
            .filter_map(HostName::parse)
            .collect();
        hosts.push(HostName {
            name: Name::Address(ip),
            port: None,
        });
        Self(hosts)
    }

    /// Checks that a request names this server, and only this server.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), (StatusCode, &'static str)> {
        const BAD_HOST: (StatusCode, &str) = (
            StatusCode::BAD_REQUEST,
            "the request needs one header 'Host: NAME' or 'Host: NAME:PORT'\n",
        );
        let mut given = request.headers().get_all(HOST).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return Err(BAD_HOST);
        };
        let given = given
            .to_str()
            .ok()
            .and_then(HostName::parse)
            .ok_or(BAD_HOST)?;
        // A request in proxy form names the host twice.
        let target = request.uri().authority();
        if target.is_some_and(|target| HostName::parse(target.as_str()).as_ref() != Some(&given)) {
            return Err(BAD_HOST);
        }
        let matches = |known: &HostName| {
            known.name == given.name && known.port.is_none_or(|port| given.port == Some(port))
        };
        if self.0.is_empty() || self.0.iter().any(matches) {
            return Ok(());
        }
        Err((
            StatusCode::FORBIDDEN,
            "unknown host name; allow it in `hosts`\n",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(hosts: &[&str], listen: &str, target: &str, given: &[&str]) -> u16 {
        let mut http = HttpSettings::new(listen.parse().unwrap(), "x");
        http.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut request = Request::builder().uri(target);
        for given in given {
            request = request.header(HOST, *given);
        }
        let request = request.body(()).unwrap();
        let judged = Hosts::new(&http).check(&request);
        judged.map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn hosts_are_read_strictly() {
        for (given, status) in [
            ("localhost", 200),
            ("LocalHost:65535", 200),
            ("127.0.0.1", 200),
            ("127.0.0.1:8000", 200),
            ("[::1]", 200),
            ("[0:0::1]:8000", 200),
            ("127.9.9.9:80", 200),
            ("box.example:81", 200),
            ("box.example:82", 403),
            ("box.example", 403),
            ("evil.example", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.2", 403),
            ("127.1", 403),
            ("0x7f000001", 403),
            ("", 400),
            ("localhost.", 400),
            ("evil@localhost", 400),
            ("localhost@evil.example", 400),
            ("localhost:", 400),
            ("localhost:+80", 400),
            ("localhost:80:80", 400),
            ("localhost:65536", 400),
            ("localhost:80@evil.example", 400),
            ("localhost/evil", 400),
            ("localhost evil", 400),
            ("localhost,evil.example", 400),
            ("::1", 400),
            ("[::1", 400),
            ("[::1]80", 400),
            ("[localhost]", 400),
            ("[::1%lo]", 400),
            (".localhost", 400),
            ("loc\u{e4}lhost", 400),
        ] {
            let hosts = ["box.example:81"];
            assert_eq!(
                judge(&hosts, "127.9.9.9:80", "/mcp", &[given]),
                status,
                "{given}"
            );
        }
    }

    #[test]
    fn one_host_is_named_and_only_one() {
        let here = |target: &str, given: &[&str]| judge(&[], "127.0.0.1:80", target, given);
        assert_eq!(here("/mcp", &[]), 400);
        assert_eq!(here("/mcp", &["localhost", "localhost"]), 400);
        assert_eq!(here("http://localhost/mcp", &["localhost"]), 200);
        assert_eq!(here("http://evil.example/mcp", &["localhost"]), 400);
        assert_eq!(here("http://x@localhost/mcp", &["localhost"]), 400);
        // Even where only the token protects, the header must be well-formed.
        let open = |given: &str| judge(&[], "10.0.0.1:80", "/mcp", &[given]);
        assert_eq!((open("any.example"), open("a@b")), (200, 400));
        let named = |given: &str| judge(&["box.example"], "10.0.0.1:80", "/mcp", &[given]);
        assert_eq!(named("box.example:9"), 200);
        assert_eq!((named("10.0.0.1"), named("any.example")), (200, 403));
    }
}

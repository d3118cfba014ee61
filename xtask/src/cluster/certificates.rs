//! The certificates of a cluster and of its clients, made anew for each one.

use std::fs;

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use crate::cluster::layout::{Layout, NODE, NODE_IP, SERVICE_IP};

/// The group whose members may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// The holder of a certificate.
struct Holder {
    /// The name of its files.
    file: &'static str,
    name: String,
    group: Option<&'static str>,
    /// The names and addresses of a server; none for a client.
    addresses: &'static [&'static str],
}

/// Everything that gets a certificate.
fn holders() -> [Holder; 7] {
    let client = |file, name: &str, group: Option<&'static str>| Holder {
        file,
        name: name.to_owned(),
        group,
        addresses: &[],
    };
    let server = |file, name: &str, addresses: &'static [&'static str]| Holder {
        addresses,
        ..client(file, name, None)
    };
    [
        server(
            "apiserver",
            "kube-apiserver",
            &[
                "localhost",
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "127.0.0.1",
                NODE_IP,
                SERVICE_IP,
            ],
        ),
        server("kubelet-server", NODE, &[NODE, NODE_IP]),
        client("admin", "admin", Some(ADMINISTRATORS)),
        client("apiserver-client", "apiserver", Some(ADMINISTRATORS)),
        client("controllers", "system:kube-controller-manager", None),
        client("scheduler", "system:kube-scheduler", None),
        client(
            "kubelet",
            &format!("system:node:{NODE}"),
            Some("system:nodes"),
        ),
    ]
}

/// Makes an authority, a certificate for each holder, and the key that signs the tokens
/// of service accounts.
pub(super) fn make(layout: &Layout) -> Result<()> {
    make_all(layout).context("cannot make the certificates")
}

fn make_all(layout: &Layout) -> Result<()> {
    let key = KeyPair::generate()?;
    let mut authority = named("agentbox-test", None, &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    write(layout, "ca.crt", &authority.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(authority, key);
    for holder in holders() {
        let mut wanted = named(&holder.name, holder.group, holder.addresses)?;
        wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        wanted.extended_key_usages = vec![if holder.addresses.is_empty() {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        let key = KeyPair::generate()?;
        let certificate = wanted.signed_by(&key, &issuer)?;
        write(layout, &format!("{}.crt", holder.file), &certificate.pem())?;
        write(
            layout,
            &format!("{}.key", holder.file),
            &key.serialize_pem(),
        )?;
    }
    let tokens = KeyPair::generate()?;
    write(layout, "tokens.key", &tokens.serialize_pem())?;
    write(layout, "tokens.pub", &tokens.public_key_pem())
}

fn named(name: &str, group: Option<&str>, addresses: &[&str]) -> Result<CertificateParams> {
    let addresses: Vec<_> = addresses.iter().map(|it| (*it).to_owned()).collect();
    let mut wanted = CertificateParams::new(addresses)?;
    wanted.distinguished_name = DistinguishedName::new();
    if let Some(group) = group {
        wanted
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }
    wanted.distinguished_name.push(DnType::CommonName, name);
    Ok(wanted)
}

fn write(layout: &Layout, file: &str, text: &str) -> Result<()> {
    let path = layout.certificate(file);
    fs::write(&path, text).with_context(|| format!("cannot write {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn every_holder_gets_a_key_and_a_certificate() {
        let scratch = Scratch::temporary("certificates").unwrap();
        let layout = Layout::at(&scratch).unwrap();
        fs::create_dir_all(layout.path("certificates")).unwrap();
        make(&layout).unwrap();
        let read = |file: &str| fs::read_to_string(layout.certificate(file)).unwrap();
        for holder in holders() {
            let file = holder.file;
            assert!(read(&format!("{file}.crt")).starts_with("-----BEGIN CERTIFICATE-----"));
            assert!(read(&format!("{file}.key")).starts_with("-----BEGIN PRIVATE KEY-----"));
        }
        assert!(read("tokens.pub").starts_with("-----BEGIN PUBLIC KEY-----"));
        assert!(read("ca.crt").starts_with("-----BEGIN CERTIFICATE-----"));
    }
}

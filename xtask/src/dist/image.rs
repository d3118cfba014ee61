//! The image of an agent, for pods whose own image has no shell: the program and nothing
//! else, as an archive that Docker and containerd load.

use std::io;

use sha2::{Digest as _, Sha256};
use tar::Builder;

use crate::agent;
use crate::dist::archive::header;
use crate::images::{self, LAYER, hex};

/// Returns the name of the image in its archive.
pub(crate) fn name() -> String {
    format!("agentbox/{}:{}", agent::PROGRAM, env!("CARGO_PKG_VERSION"))
}

/// Returns the name of the archive's file.
pub(super) fn file_name(architecture: &str) -> String {
    let (program, version) = (agent::PROGRAM, env!("CARGO_PKG_VERSION"));
    format!("{program}-{version}-linux-{architecture}.tar")
}

/// Packs an agent. The same agent gives the same bytes.
pub(super) fn pack(agent: &[u8], architecture: &str) -> io::Result<Vec<u8>> {
    let layer = archived(&[(agent::PROGRAM, agent)])?;
    let program = format!("/{}", agent::PROGRAM);
    let sum = hex(&Sha256::digest(&layer));
    let files = images::description(&name(), architecture, &[&program], &sum);
    let mut members: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_bytes()))
        .collect();
    members.push((LAYER, &layer[..]));
    archived(&members)
}

fn archived(members: &[(&str, &[u8])]) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = header(0, true);
        header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX));
        tar.append_data(&mut header, name, *content)?;
    }
    tar.into_inner()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use tar::Archive;

    use super::*;

    #[test]
    fn an_image_holds_the_agent_and_starts_it() {
        let packed = pack(b"a program", "arm64").unwrap();
        assert_eq!(packed, pack(b"a program", "arm64").unwrap());
        let mut archive = Archive::new(&packed[..]);
        let mut texts = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut content = Vec::new();
            entry.unwrap().read_to_end(&mut content).unwrap();
            texts.push(content);
        }
        let [config, manifest, layer] = &texts[..] else {
            panic!("{} files", texts.len());
        };
        let config: serde_json::Value = serde_json::from_slice(config).unwrap();
        assert_eq!(config["architecture"], "arm64");
        assert_eq!(config["config"]["Entrypoint"][0], "/sandbox-agent");
        let manifest = String::from_utf8_lossy(manifest);
        assert!(manifest.contains(&name()), "{manifest}");
        let mut layer = Archive::new(&layer[..]);
        let mut entries = layer.entries().unwrap();
        let mut entry = entries.next().unwrap().unwrap();
        assert_eq!(entry.header().mode().unwrap(), 0o755);
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        assert_eq!(content, "a program");
    }
}

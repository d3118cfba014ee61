//! The build context: the Dockerfile and, with a CA bundle, files that are mounted
//! while commands run and are in no layer.

use backend_core::{Error, Result};
use bytes::Bytes;
use sandbox_runtime::dockerfile::{TOOLS_DIR, TOOLS_SOURCE};

use super::ca::CaBundle;

/// Returns the build context as a tar archive.
pub(super) fn tar(dockerfile: &str, bundle: Option<&CaBundle>) -> Result<Bytes> {
    let written = || -> std::io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        add(&mut archive, "Dockerfile", 0o644, dockerfile.as_bytes())?;
        if let Some(bundle) = bundle {
            let apt = format!("Acquire::https::CaInfo \"{TOOLS_DIR}/ca.pem\";\n");
            for (name, mode, content) in [
                ("run", 0o755, run_script().as_bytes()),
                ("apt.conf", 0o644, apt.as_bytes()),
                ("ca.pem", 0o644, bundle.pem()),
            ] {
                let name = format!("{TOOLS_SOURCE}/{name}");
                add(&mut archive, &name, mode, content)?;
            }
        }
        archive.into_inner()
    };
    written().map(Bytes::from).map_err(|source| {
        Error::internal("a build context could not be packed; please report this")
            .with_source(source)
    })
}

fn add(
    archive: &mut tar::Builder<Vec<u8>>,
    name: &str,
    mode: u32,
    content: &[u8],
) -> std::io::Result<()> {
    // No times and no owners, so that the same content gives the same archive.
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    archive.append_data(&mut header, name, content)
}

/// A script that runs its arguments with the bundle in every variable that programs
/// look at. The variables live in the process only: `ENV` and `ARG` would be in the
/// history.
///
/// Most of them replace a program's trust store, so the image's own list is put in
/// front, in a file in `/dev`, which is in memory during a build.
fn run_script() -> String {
    let names = CaBundle::VARIABLES.join(" ");
    format!(
        "#!/bin/sh\n\
         bundle={TOOLS_DIR}-ca.pem\n\
         {{ cat /etc/ssl/certs/ca-certificates.crt {TOOLS_DIR}/ca.pem >\"$bundle\"; }} 2>/dev/null\n\
         [ -s \"$bundle\" ] || bundle={TOOLS_DIR}/ca.pem\n\
         for name in {names}; do export \"$name=$bundle\"; done\n\
         export APT_CONFIG={TOOLS_DIR}/apt.conf\n\
         exec \"$@\"\n"
    )
}

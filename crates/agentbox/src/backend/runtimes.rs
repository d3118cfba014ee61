//! The runtimes of containers and pods: the built-in ones, and those of a file.

use std::collections::BTreeMap;
use std::path::Path;

use sandbox_runtime::Runtimes;

use crate::exit::{Failure, usage};
use crate::files::read_text;

/// Returns the built-in runtimes and those of the file, with the replacements for their
/// images.
pub(super) fn read(
    file: Option<&Path>,
    base_images: &BTreeMap<String, String>,
) -> Result<Runtimes, Failure> {
    let mut runtimes = match file {
        None => Runtimes::new(),
        Some(file) => {
            let text = read_text(file, "file of runtimes")?;
            Runtimes::from_toml(&text)
                .map_err(|error| usage!("{}: {}", file.display(), error.chain()))?
        }
    };
    for (image, instead) in base_images {
        runtimes = runtimes.with_image(image, instead)?;
    }
    Ok(runtimes)
}

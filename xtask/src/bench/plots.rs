//! The plots of `docs/benchmarks.md`, drawn from the figures on that page.
//!
//! So they can be drawn without measuring, and `tidy` can compare them with the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bench::figures::{Figures, figures};
use crate::bench::plot::{self, Axis, Bar, Curve, Point};
use crate::bench::suite::{Row, Suite, describe, suites};

/// The page with the figures.
pub(crate) const PAGE: &str = "docs/benchmarks.md";

/// Directory of the pictures, and the same from the page.
const DIRECTORY: &str = "docs/images/bench";
const FROM_PAGE: &str = "images/bench";

/// The beginning of a section, and of its table.
const SECTION: &str = "\n## ";
const TABLE: &str = "| row ";

/// The page with its pictures, and the pictures by file name.
#[derive(Debug)]
pub(crate) struct Drawn {
    page: String,
    pictures: BTreeMap<String, String>,
}

/// A picture, and the text for readers who do not see it.
struct Picture {
    name: String,
    alt: String,
    svg: String,
}

impl Drawn {
    /// Draws the figures of a page.
    pub(crate) fn of(page: &str) -> Result<Self> {
        let suites = suites()?;
        let mut parts = page.split(SECTION);
        let mut drawn = Self {
            page: parts.next().unwrap_or_default().to_owned(),
            pictures: BTreeMap::new(),
        };
        for section in parts {
            let title = section.lines().next().unwrap_or_default();
            let suite = suites.iter().find(|suite| suite.title == title);
            let pictures = suite.map(|suite| pictures(suite, &figures(section)));
            let pictures = pictures.unwrap_or_default();
            drawn.page += SECTION;
            drawn.page += &illustrated(section, &pictures);
            let named = pictures.into_iter();
            drawn
                .pictures
                .extend(named.map(|picture| (format!("{}.svg", picture.name), picture.svg)));
        }
        Ok(drawn)
    }

    /// Returns what is not as drawn, by its path.
    pub(crate) fn differences(&self, root: &Path) -> Result<Vec<String>> {
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let mut found = Vec::new();
        if read(PAGE) != self.page {
            found.push(PAGE.to_owned());
        }
        for (name, svg) in &self.pictures {
            let path = format!("{DIRECTORY}/{name}");
            if read(&path) != *svg {
                found.push(path);
            }
        }
        found.extend(self.others(root)?);
        Ok(found)
    }

    /// Writes the page and its pictures, and removes others.
    pub(crate) fn write(&self, root: &Path) -> Result<()> {
        let write = |path: &str, text: &str| {
            fs::write(root.join(path), text).with_context(|| format!("cannot write {path}"))
        };
        fs::create_dir_all(root.join(DIRECTORY))?;
        for other in self.others(root)? {
            fs::remove_file(root.join(&other)).with_context(|| format!("cannot remove {other}"))?;
        }
        for (name, svg) in &self.pictures {
            write(&format!("{DIRECTORY}/{name}"), svg)?;
        }
        write(PAGE, &self.page)
    }

    /// Returns the files that are no picture of the page.
    fn others(&self, root: &Path) -> Result<Vec<String>> {
        let directory = root.join(DIRECTORY);
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        let mut others = Vec::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !self.pictures.contains_key(&name) {
                others.push(format!("{DIRECTORY}/{name}"));
            }
        }
        others.sort_unstable();
        Ok(others)
    }
}

/// Puts the pictures above the table of a section, in place of earlier ones.
fn illustrated(section: &str, pictures: &[Picture]) -> String {
    let mut text = String::new();
    let mut lines = section.split_inclusive('\n').peekable();
    let mut is_above = true;
    while let Some(line) = lines.next() {
        if line.starts_with("![") {
            lines.next_if_eq(&"\n");
            continue;
        }
        if is_above && line.starts_with(TABLE) {
            is_above = false;
            for Picture { name, alt, .. } in pictures {
                text += &format!("![{alt}]({FROM_PAGE}/{name}.svg)\n\n");
            }
        }
        text += line;
    }
    text
}

/// Draws the bars and the curves of a suite.
fn pictures(suite: &Suite, figures: &Figures) -> Vec<Picture> {
    let of_growth = suite.plots.iter().filter_map(|wanted| {
        let curves = curves(suite, &wanted.name, figures);
        let is_memory = suite.plotted(&wanted.name).any(|row| row.is_memory());
        (!curves.is_empty()).then(|| {
            let y = match is_memory {
                true => Axis {
                    label: "memory",
                    number: bytes,
                },
                false => Axis {
                    label: "time (median)",
                    number: time,
                },
            };
            let x = Axis {
                label: &wanted.x,
                number: if wanted.x.contains("bytes") {
                    bytes
                } else {
                    plot::number
                },
            };
            let told: Vec<_> = curves
                .iter()
                .filter_map(|curve| told(curve, &x, &y))
                .collect();
            let alt = format!("{}, by {}: {}.", wanted.title, wanted.x, told.join("; "));
            Picture {
                name: format!("{}_{}", suite.name, wanted.name),
                svg: plot::curves(&wanted.title, &alt, &x, &y, &curves),
                alt,
            }
        })
    });
    let mut pictures: Vec<_> = of_growth.collect();
    if suite.plots.is_empty() {
        pictures.extend(bars(suite, figures));
    }
    pictures
}

/// Says where a curve begins and ends.
fn told(curve: &Curve, x: &Axis<'_>, y: &Axis<'_>) -> Option<String> {
    let (first, last) = (curve.points.first()?, curve.points.last()?);
    let at = |point: &Point| format!("{} at {}", (y.number)(point.y), (x.number)(point.x));
    Some(format!("{} {} to {}", curve.name, at(first), at(last)))
}

/// Returns our curve and the peer's, through the figures that there are.
fn curves(suite: &Suite, plot: &str, figures: &Figures) -> Vec<Curve> {
    let rows = || {
        let measured = |row: &'_ Row| Some((row.x?, figures.get(&row.id)?));
        suite.plotted(plot).filter_map(measured)
    };
    // A logarithmic axis has no place for 0.
    let point = |x, y, is_missed| (y > 0.0).then_some(Point { x, y, is_missed });
    let ours = rows().filter_map(|(x, figure)| point(x, figure.ours, figure.is_missed));
    let theirs = rows().filter_map(|(x, figure)| point(x, figure.theirs?, false));
    let peer = suite.plotted(plot).find_map(|row| row.peer.as_deref());
    let sides = [
        ("ours", ours.collect::<Vec<_>>()),
        (peer.map_or("", describe), theirs.collect()),
    ];
    let sides = sides.into_iter().map(|(name, points)| Curve {
        name: name.to_owned(),
        points,
    });
    sides.filter(|curve| !curve.points.is_empty()).collect()
}

fn bars(suite: &Suite, figures: &Figures) -> Option<Picture> {
    let bar = |row: &Row| {
        let figure = figures.get(&row.id)?;
        let what = row.what.replace('`', "").replace("\\|", "|");
        Some(Bar {
            label: format!("{what} · {}", row.peer.as_deref()?),
            ratio: figure.ratio?,
            shown: figure.shown_ratio.clone(),
            asked: row.ratio,
            is_missed: figure.is_missed,
        })
    };
    let bars: Vec<_> = suite.rows.iter().filter_map(bar).collect();
    let by_ratio = |a: &&Bar, b: &&Bar| a.ratio.total_cmp(&b.ratio);
    let (least, most) = (bars.iter().min_by(by_ratio)?, bars.iter().max_by(by_ratio)?);
    let missed = bars.iter().filter(|bar| bar.is_missed).count();
    let alt = format!(
        "{}: the peer's time or memory divided by ours in {} rows, from {} to {}; {missed} of them \
         miss what is asked.",
        suite.title,
        bars.len(),
        least.shown,
        most.shown,
    );
    let title = format!("{}: ours against the peer", suite.title);
    Some(Picture {
        name: suite.name.clone(),
        svg: plot::bars(&title, &alt, &bars),
        alt,
    })
}

/// Writes nanoseconds without digits that a plot does not need.
fn time(nanos: f64) -> String {
    scaled(nanos, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

fn bytes(bytes: f64) -> String {
    scaled(bytes, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // A power of ten may have been rounded down.
    let found = units.iter().find(|(size, _)| value >= size * 0.9999);
    let (size, unit) = found.or(units.last()).copied().unwrap_or((1.0, ""));
    let value = value / size;
    let decimals = if (value - value.round()).abs() < 0.01 || value >= 100.0 {
        0
    } else {
        1
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "# B\n\n## Line hashes\n\n- Date\n\n![old](images/bench/x.svg)\n\n\
        | row             | workload | peer   | ours    | theirs  | ratio | asked | met |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- |\n\
        | hashline_render | render `x\\|y` | python | 7.83 ms | 73.0 ms | 9.32x | 5.00x | NO |\n\
        | hashline_edit | replace | python | 18.6 µs (p90 19 µs) | 157 µs | 8.44x | | |\n";

    #[test]
    fn a_page_is_drawn_once_and_then_current() {
        let drawn = Drawn::of(PART).unwrap();
        assert_eq!(drawn.page.matches("![").count(), 1);
        assert!(drawn.page.contains("](images/bench/hashline.svg)\n\n| row"));
        assert!(
            drawn
                .page
                .contains("in 2 rows, from 8.44x to 9.32x; 1 of them")
        );
        let again = Drawn::of(&drawn.page).unwrap();
        assert_eq!(again.page, drawn.page);
        assert_eq!(again.pictures, drawn.pictures);
    }

    #[test]
    fn rows_that_differ_in_one_number_are_points_of_curves() {
        let row = |files, ours| {
            format!(
                "| growth_walk_{files}_rg | list | rg | {ours} | 4.00 ms | 2.00x | 0.77x | yes |\n"
            )
        };
        let rows = row("1k", "1.00 ms (p90 2.00 ms)") + &row("10k", "2.00 ms");
        let drawn = Drawn::of(&format!("# B\n\n## How it grows\n\n| row |\n{rows}")).unwrap();
        assert_eq!(
            drawn.pictures.keys().collect::<Vec<_>>(),
            ["growth_walk.svg"]
        );
        let told = "![List all files, by files: ours 1 ms at 1k to 2 ms at 10k; \
                    ripgrep 15.2.0 4 ms at 1k to 4 ms at 10k.](images/bench/growth_walk.svg)";
        assert!(drawn.page.contains(told), "{}", drawn.page);
        let circles = drawn.pictures["growth_walk.svg"].matches("<circle").count();
        assert_eq!(circles, 4);
    }

    #[test]
    fn what_differs_is_told_and_written() {
        let root = crate::scratch::Scratch::temporary("plots").unwrap();
        fs::create_dir_all(root.join(DIRECTORY)).unwrap();
        fs::write(root.join(DIRECTORY).join("old.svg"), "").unwrap();
        fs::write(root.join(PAGE), PART).unwrap();
        let drawn = Drawn::of(PART).unwrap();
        let picture = format!("{DIRECTORY}/hashline.svg");
        let other = format!("{DIRECTORY}/old.svg");
        assert_eq!(
            drawn.differences(&root).unwrap(),
            [PAGE.to_owned(), picture, other]
        );
        drawn.write(&root).unwrap();
        assert_eq!(drawn.differences(&root).unwrap(), [""; 0]);
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!([1e3, 1.25e6, 2.5e11].map(time), ["1 µs", "1.2 ms", "250 s"]);
        assert_eq!([1.0, 1e9].map(bytes), ["1 B", "1 GB"]);
    }
}

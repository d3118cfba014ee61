//! The data set: three years of three shops, made up, and the same in every run.

use std::fmt::Write as _;

/// The shops: their names, first revenue, growth in a year, and how much of it the season is.
const SHOPS: [(&str, f64, f64, f64); 3] = [
    ("Harbour", 42_000.0, 5_200.0, 0.22),
    ("Market", 61_000.0, -1_500.0, 0.08),
    ("Station", 28_000.0, 7_900.0, 0.15),
];

const FIRST_YEAR: u32 = 2023;
const MONTHS: u32 = 36;

/// Returns the data set as CSV.
pub(crate) fn sales() -> String {
    let mut csv = String::from("month,shop,revenue\n");
    // A linear congruential generator: the noise must be the same everywhere.
    let mut noise: u32 = 7;
    for month in 0..MONTHS {
        let years = f64::from(month) / 12.0;
        let name = format!("{}-{:02}", FIRST_YEAR + month / 12, month % 12 + 1);
        for (shop, first, growth, season) in SHOPS {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from(noise >> 16) / 65_536.0 - 0.5;
            let wave = (std::f64::consts::TAU * (years - 0.55)).cos();
            let revenue = (first + growth * years) * (1.0 + season * wave + 0.06 * noise);
            let _ = writeln!(csv, "{name},{shop},{revenue:.2}");
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_whole_and_always_the_same() {
        let csv = sales();
        assert_eq!(csv.lines().count(), 1 + 36 * 3);
        assert!(csv.contains("\n2025-12,Station,"), "{csv}");
        assert_eq!(csv, sales());
    }
}

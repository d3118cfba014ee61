//! Checks numbers from a model against their bounds.

use std::ops::RangeInclusive;

use crate::reply::{ToolError, fixable};

/// Checks that the argument `field` is at least `least`.
pub(crate) fn at_least(field: &str, number: i64, least: i64) -> Result<u64, ToolError> {
    u64::try_from(number)
        .ok()
        .filter(|_| number >= least)
        .ok_or_else(|| fixable!("{field} must be {least} or more, not {number}"))
}

/// Checks that the argument `field` is in a range.
pub(crate) fn within(
    field: &str,
    number: i64,
    range: RangeInclusive<usize>,
) -> Result<usize, ToolError> {
    let count = usize::try_from(number).ok();
    let count = count.filter(|count| range.contains(count));
    count.ok_or_else(|| {
        let (from, to) = range.into_inner();
        fixable!("{field} must be from {from} to {to}, not {number}")
    })
}

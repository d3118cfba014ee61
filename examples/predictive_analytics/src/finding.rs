//! [`Finding`]: a result of the analyst, checked.

mod chart;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use chart::{Chart, Shape};

/// Bytes of a result.
pub(crate) const RESULT_BYTES: u64 = 128 * 1024;

/// Characters of a name.
const LABEL_CHARS: usize = 80;

/// Sums and differences of numbers up to this size are exact enough to draw.
const LARGEST: f64 = 1e15;

const COLUMNS: usize = 12;
const ROWS: usize = 100;
const MONTHS: usize = 60;

/// A kind of result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Table,
    Prediction,
    Chart,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Finding {
    Table(Table),
    Prediction(Prediction),
    Chart(Chart),
}

/// The libraries that computed a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engine {
    /// pandas and scikit-learn.
    ScikitLearn,
    /// Python without packages.
    StandardLibrary,
}

/// Rows of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    engine: Engine,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a cell must be a number, a text or null")]
enum Cell {
    Number(f64),
    Text(String),
    Nothing(()),
}

/// Values to come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prediction {
    engine: Engine,
    model: String,
    /// The mean error on known months that the model was not given: 0.05 is 5 %.
    mean_error: f64,
    points: Vec<Month>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Month {
    month: String,
    value: f64,
    low: f64,
    high: f64,
}

/// Why a result is refused, for the model that made it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0}; Python writes NaN and Infinity, which JSON does not have: leave such values out")]
    NotJson(String),
    #[error("{0}")]
    OtherShape(String),
    #[error("{place}: {value:e} is no number from -1e15 to 1e15; leave it out")]
    NoNumber { place: String, value: f64 },
    #[error("there are no {what}; a result needs some")]
    None { what: &'static str },
    #[error(
        "there are {count} {what}, and at most {limit} are allowed; leave some out or sum them up"
    )]
    TooMany {
        what: &'static str,
        count: usize,
        limit: usize,
    },
    #[error("{place} has {chars} characters, and at most {LABEL_CHARS} are allowed; shorten it")]
    TooLong { place: String, chars: usize },
    #[error("{place} is empty; name it")]
    Empty { place: String },
    #[error("{place} has a control character; write it in one line of plain text")]
    Control { place: String },
    #[error("{place}: x is a number in some points and a text in others; use one of them")]
    Mixed { place: String },
    #[error("bars stand on names; write each x as a text")]
    NumberedBars,
    #[error("rows[{row}] has {cells} cells, and there are {columns} columns; make them the same")]
    Ragged {
        row: usize,
        cells: usize,
        columns: usize,
    },
}

impl Refusal {
    pub(crate) fn unless_few(what: &'static str, count: usize, limit: usize) -> Result<(), Self> {
        match count {
            0 => Err(Self::None { what }),
            _ if count > limit => Err(Self::TooMany { what, count, limit }),
            _ => Ok(()),
        }
    }
}

/// Checks a name.
pub(crate) fn label(place: &str, text: &str) -> Result<(), Refusal> {
    let place = || place.to_owned();
    let chars = text.chars().count();
    if text.trim().is_empty() {
        Err(Refusal::Empty { place: place() })
    } else if chars > LABEL_CHARS {
        let place = place();
        Err(Refusal::TooLong { place, chars })
    } else if text.chars().any(char::is_control) {
        Err(Refusal::Control { place: place() })
    } else {
        Ok(())
    }
}

/// Checks a number.
pub(crate) fn is_number(place: &str, value: f64) -> Result<(), Refusal> {
    if value.is_finite() && value.abs() <= LARGEST {
        return Ok(());
    }
    let place = place.to_owned();
    Err(Refusal::NoNumber { place, value })
}

impl Finding {
    /// Reads a result of this kind.
    pub(crate) fn read(kind: Kind, json: &[u8]) -> Result<Self, Refusal> {
        let finding = match kind {
            Kind::Table => Self::Table(parsed(json)?),
            Kind::Prediction => Self::Prediction(parsed(json)?),
            Kind::Chart => Self::Chart(parsed(json)?),
        };
        match &finding {
            Self::Table(table) => table.check()?,
            Self::Prediction(prediction) => prediction.check()?,
            Self::Chart(chart) => chart.check()?,
        }
        Ok(finding)
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Table(_) => Kind::Table,
            Self::Prediction(_) => Kind::Prediction,
            Self::Chart(_) => Kind::Chart,
        }
    }
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, Refusal> {
    let mut json = serde_json::Deserializer::from_slice(json);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let said = error.to_string();
        match error.inner().classify() {
            serde_json::error::Category::Data => Refusal::OtherShape(said),
            _ => Refusal::NotJson(said),
        }
    })
}

impl Table {
    fn check(&self) -> Result<(), Refusal> {
        let columns = self.columns.len();
        Refusal::unless_few("columns", columns, COLUMNS)?;
        Refusal::unless_few("rows", self.rows.len(), ROWS)?;
        for (at, column) in self.columns.iter().enumerate() {
            label(&format!("columns[{at}]"), column)?;
        }
        for (row, cells) in self.rows.iter().enumerate() {
            if cells.len() != columns {
                let cells = cells.len();
                return Err(Refusal::Ragged {
                    row,
                    cells,
                    columns,
                });
            }
            for (column, cell) in cells.iter().enumerate() {
                let place = format!("rows[{row}][{column}]");
                match cell {
                    Cell::Number(value) => is_number(&place, *value)?,
                    Cell::Text(text) => label(&place, text)?,
                    Cell::Nothing(()) => {}
                }
            }
        }
        Ok(())
    }
}

impl Prediction {
    fn check(&self) -> Result<(), Refusal> {
        label("model", &self.model)?;
        is_number("mean_error", self.mean_error)?;
        Refusal::unless_few("points", self.points.len(), MONTHS)?;
        for (at, point) in self.points.iter().enumerate() {
            let place = format!("points[{at}]");
            label(&place, &point.month)?;
            for value in [point.value, point.low, point.high] {
                is_number(&place, value)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(kind: Kind, value: &Value) -> Result<Finding, String> {
        let read = Finding::read(kind, value.to_string().as_bytes());
        read.map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_table_has_a_shape() {
        let engine = "standard-library";
        let table = |rows: Value| json!({"engine": engine, "columns": ["a", "b"], "rows": rows});
        let whole = read(Kind::Table, &table(json!([["x", 1.5], [null, 2]]))).unwrap();
        assert_eq!(whole.kind(), Kind::Table);
        let again: Finding = serde_json::from_value(serde_json::to_value(&whole).unwrap()).unwrap();
        assert_eq!(again, whole);
        let ragged = read(Kind::Table, &table(json!([["x", 1], ["y"]])));
        let said = "rows[1] has 1 cells, and there are 2 columns; make them the same";
        assert_eq!(ragged.unwrap_err(), said);
        let many = vec![json!(["x", 1]); ROWS + 1];
        let said = read(Kind::Table, &table(json!(many))).unwrap_err();
        assert!(said.starts_with("there are 101 rows"), "{said}");
        let nested = read(Kind::Table, &table(json!([["x", {"y": 1}]])));
        assert!(nested.unwrap_err().contains("a cell must be"));
    }

    #[test]
    fn a_prediction_names_its_engine_and_its_error() {
        let point = json!({"month": "2026-01", "value": 3, "low": 2, "high": 4});
        let whole = json!({
            "engine": "scikit-learn", "model": "line", "mean_error": 0.1, "points": [point],
        });
        assert!(read(Kind::Prediction, &whole).is_ok());
        for (field, value, expected) in [
            ("engine", json!("magic"), "unknown variant `magic`"),
            ("mean_error", json!(null), "mean_error"),
            ("points", json!([]), "there are no points"),
            ("model", json!(" "), "model is empty"),
        ] {
            let mut wrong = whole.clone();
            wrong[field] = value;
            let said = read(Kind::Prediction, &wrong).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}

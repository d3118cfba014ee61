//! [`Chart`]: the data that the page draws.
//!
//! It comes from a program that a model has chosen, so it is checked: what is not a chart
//! of reasonable size never gets to the page, and the model reads why.

use serde::{Deserialize, Serialize};

use super::{Engine, Refusal, is_number, label};

/// Series of a chart.
const SERIES: usize = 12;

/// Points of all series together.
const POINTS: usize = 1_000;

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chart {
    pub(crate) engine: Engine,
    pub(crate) shape: Shape,
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) series: Vec<Series>,
}

/// The way points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    Line,
    Bar,
    Scatter,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Dashed, in the colour of the series before it: what is predicted for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dashed: bool,
    pub(crate) points: Vec<(X, f64)>,
}

/// The place of a point: a number, or the name of a category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "the x of a point must be a number or a text")]
pub(crate) enum X {
    Number(f64),
    Name(String),
}

impl Chart {
    /// Checks everything that the page relies on.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        label("title", &self.title)?;
        label("x_label", &self.x_label)?;
        label("y_label", &self.y_label)?;
        Refusal::unless_few("series", self.series.len(), SERIES)?;
        let points = self.series.iter().map(|series| series.points.len()).sum();
        Refusal::unless_few("points of all series", points, POINTS)?;
        let mut has_numbers = None;
        for (at, series) in self.series.iter().enumerate() {
            label(&format!("series[{at}].name"), &series.name)?;
            for (point, (x, y)) in series.points.iter().enumerate() {
                let place = format!("series[{at}].points[{point}]");
                is_number(&place, *y)?;
                let is_x_number = match x {
                    X::Number(x) => is_number(&place, *x).map(|()| true)?,
                    X::Name(name) => label(&place, name).map(|()| false)?,
                };
                if *has_numbers.get_or_insert(is_x_number) != is_x_number {
                    return Err(Refusal::Mixed { place });
                }
            }
        }
        if self.shape == Shape::Bar && has_numbers == Some(true) {
            return Err(Refusal::NumberedBars);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::finding::{Finding, Kind};

    fn chart(points: Vec<(X, f64)>) -> Chart {
        let name = "<b>North</b>".to_owned();
        Chart {
            engine: Engine::StandardLibrary,
            shape: Shape::Line,
            title: "Sales".to_owned(),
            x_label: "month".to_owned(),
            y_label: "revenue".to_owned(),
            series: vec![Series {
                name,
                dashed: false,
                points,
            }],
        }
    }

    fn refused(chart: &Chart) -> String {
        chart.check().unwrap_err().to_string()
    }

    #[test]
    fn only_numbers_that_can_be_drawn_are_drawn() {
        assert_eq!(chart(vec![(X::Number(1.0), 2.0)]).check(), Ok(()));
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            let said = refused(&chart(vec![(X::Number(0.0), 1.0), (X::Number(1.0), wrong)]));
            assert!(said.starts_with("series[0].points[1]: "), "{said}");
            let said = refused(&chart(vec![(X::Number(wrong), 1.0)]));
            assert!(said.starts_with("series[0].points[0]: "), "{said}");
        }
    }

    #[test]
    fn the_size_is_limited() {
        let many = (0..=POINTS).map(|at| (X::Name(at.to_string()), 1.0));
        let said = refused(&chart(many.collect()));
        assert_eq!(
            said,
            "there are 1001 points of all series, and at most 1000 are allowed; leave some out or sum them up"
        );
        let said = refused(&chart(Vec::new()));
        assert!(said.starts_with("there are no points"), "{said}");
        let point = || vec![(X::Name("a".repeat(81)), 1.0)];
        assert!(refused(&chart(point())).contains("has 81 characters"));
        let mut long = chart(vec![(X::Number(0.0), 1.0)]);
        long.title = "\u{fc}".repeat(81);
        assert!(refused(&long).starts_with("title has 81 characters"));
        long.title = "two\nlines".to_owned();
        assert!(refused(&long).starts_with("title has a control character"));
        let series = long.series.remove(0);
        long.title = String::new();
        long.series = vec![series; SERIES + 1];
        assert!(refused(&long).starts_with("title is empty"));
        long.title = "Sales".to_owned();
        assert!(refused(&long).starts_with("there are 13 series"));
    }

    #[test]
    fn names_and_numbers_do_not_mix() {
        let mixed = vec![(X::Name("a".to_owned()), 1.0), (X::Number(1.0), 1.0)];
        assert!(refused(&chart(mixed)).starts_with("series[0].points[1]: "));
        let mut bars = chart(vec![(X::Number(1.0), 1.0)]);
        bars.shape = Shape::Bar;
        assert_eq!(bars.check(), Err(Refusal::NumberedBars));
    }

    #[test]
    fn the_model_reads_which_part_is_wrong() {
        let whole = serde_json::to_value(chart(vec![(X::Number(1.0), 2.0)])).unwrap();
        let read = |text: &str| Finding::read(Kind::Chart, text.as_bytes());
        assert!(read(&whole.to_string()).is_ok());
        let said = |text: &str| read(text).unwrap_err().to_string();
        let nan = whole.to_string().replace("2.0", "NaN");
        assert!(said(&nan).contains("NaN and Infinity"), "{}", said(&nan));
        let large = whole.to_string().replace("2.0", "1e999");
        assert!(said(&large).contains("out of range"), "{}", said(&large));
        let mut wrong = whole.clone();
        wrong["series"][0]["points"][0][1] = json!("2.0");
        let wrong = said(&wrong.to_string());
        assert!(wrong.starts_with("series[0].points[0]"), "{wrong}");
        let mut more = whole;
        more["onload"] = json!("alert(1)");
        assert!(said(&more.to_string()).contains("unknown field `onload`"));
    }
}

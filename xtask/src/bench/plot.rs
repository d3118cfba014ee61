//! Small plots as SVG: bars of ratios, and curves. Equal figures give equal text.
//!
//! All axes are logarithmic, because the figures differ by orders of magnitude. The
//! background is painted, so that the text can be read on a page of any colour.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;

/// The space at the left and the right of the plotted area.
const MARGIN: f64 = 24.0;

/// Height of the title and of what explains the colours.
const HEAD: f64 = 64.0;

/// Height of the numbers and the label of the lower axis.
const FOOT: f64 = 44.0;

/// Height of a bar with its label.
const ROW: f64 = 34.0;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}\
.end{text-anchor:end}.mid{text-anchor:middle}.back{fill:#fff}.grid{stroke:#d0d7de}\
.one{stroke:#1f2328}.asked{stroke:#9a6700;stroke-width:2}.bar,.c0{fill:#0969da}.miss{fill:#cf222e}\
.c1{fill:#1a7f37}.c2{fill:#8250df}.c3{fill:#9a6700}.l{fill:none;stroke-width:2}\
.l0{stroke:#0969da}.l1{stroke:#1a7f37}.l2{stroke:#8250df}.l3{stroke:#9a6700}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117}.grid{stroke:#3d444d}\
.one{stroke:#e6edf3}.asked{stroke:#d29922}.bar,.c0{fill:#4493f8}.miss{fill:#ff7b72}\
.c1{fill:#3fb950}.c2{fill:#ab7df8}.c3{fill:#d29922}\
.l0{stroke:#4493f8}.l1{stroke:#3fb950}.l2{stroke:#ab7df8}.l3{stroke:#d29922}}";

/// The number of colours of curves.
const COLOURS: usize = 4;

/// How often faster than a peer we are in one row.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) ratio: f64,
    /// The ratio as text.
    pub(super) shown: String,
    /// The least ratio that is accepted.
    pub(super) asked: Option<f64>,
    pub(super) is_missed: bool,
}

/// A curve.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Whether it misses its target.
    pub(super) is_missed: bool,
}

/// An axis: its label, and how a number on it is written.
#[derive(Debug)]
pub(super) struct Axis<'a> {
    pub(super) label: &'a str,
    pub(super) number: fn(f64) -> String,
}

/// Draws bars that start where we are as fast as the peer.
pub(super) fn bars(title: &str, alt: &str, bars: &[Bar]) -> String {
    let values = bars.iter().flat_map(|bar| [Some(bar.ratio), bar.asked]);
    let values = values.flatten().chain([1.0]);
    let scale = Scale::covering(values, MARGIN + 16.0, WIDTH - MARGIN - 16.0);
    let rows: f64 = bars.iter().map(|_| ROW).sum();
    let bottom = HEAD + rows;
    let mut svg = Svg::new(title, alt, bottom + FOOT);
    let mut at = MARGIN;
    svg.square("bar", &mut at, "as asked, or nothing is asked");
    svg.square("miss", &mut at, "not as asked");
    svg.mark(at + 4.0, 34.0);
    svg.text("", at + 14.0, 45.0, "asked");
    for decade in scale.decades() {
        svg.vertical("grid", scale.at(decade), HEAD, bottom);
        svg.text("mid", scale.at(decade), bottom + 16.0, &ratio(decade));
    }
    let one = scale.at(1.0);
    svg.vertical("one", one, HEAD, bottom);
    let label = "the peer's time, or memory, divided by ours";
    svg.text("mid", WIDTH / 2.0, bottom + 36.0, label);
    let mut top = HEAD;
    for bar in bars {
        let end = scale.at(bar.ratio);
        let class = if bar.is_missed { "miss" } else { "bar" };
        svg.rectangle(class, one.min(end), top + 18.0, (end - one).abs().max(1.0));
        if let Some(asked) = bar.asked {
            svg.mark(scale.at(asked), top + 16.0);
        }
        svg.text("", MARGIN, top + 13.0, &bar.label);
        svg.text("end", WIDTH - MARGIN, top + 13.0, &bar.shown);
        top += ROW;
    }
    svg.end()
}

/// Draws curves through the points that were measured.
pub(super) fn curves(
    title: &str,
    alt: &str,
    x: &Axis<'_>,
    y: &Axis<'_>,
    curves: &[Curve],
) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (left, right, bottom) = (MARGIN + 56.0, WIDTH - MARGIN - 16.0, 360.0);
    let across = Scale::covering(points().map(|point| point.x), left, right);
    let up = Scale::covering(points().map(|point| point.y), bottom, HEAD + 8.0);
    let mut svg = Svg::new(title, alt, bottom + FOOT);
    for decade in across.decades() {
        svg.vertical("grid", across.at(decade), HEAD + 8.0, bottom);
        let number = (x.number)(decade);
        svg.text("mid", across.at(decade), bottom + 16.0, &number);
    }
    for decade in up.decades() {
        svg.horizontal("grid", left, right, up.at(decade));
        let number = (y.number)(decade);
        svg.text("end", left - 6.0, up.at(decade) + 4.0, &number);
    }
    svg.text("mid", (left + right) / 2.0, bottom + 36.0, x.label);
    svg.text("", MARGIN, HEAD - 2.0, y.label);
    let mut at = MARGIN;
    for (index, curve) in curves.iter().enumerate() {
        let colour = index % COLOURS;
        svg.square(&format!("c{colour}"), &mut at, &curve.name);
        let place = |point: &Point| (across.at(point.x), up.at(point.y));
        let places: Vec<_> = curve.points.iter().map(place).collect();
        svg.line(&format!("l l{colour}"), &places);
        for (point, (x, y)) in curve.points.iter().zip(places) {
            let class = match point.is_missed {
                true => "miss".to_owned(),
                false => format!("c{colour}"),
            };
            svg.circle(&class, x, y, if point.is_missed { 6.0 } else { 3.5 });
        }
    }
    if points().any(|point| point.is_missed) {
        svg.square("miss", &mut at, "beyond what is asked");
    }
    svg.end()
}

/// Writes a power of ten as a ratio.
fn ratio(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{:.*}x", decimals(value), value),
        value if value < 1e3 => format!("{value:.0}x"),
        value => format!("{}x", number(value)),
    }
}

/// Writes a large number briefly.
pub(super) fn number(value: f64) -> String {
    match value {
        value if value < 1e3 => format!("{value:.0}"),
        value if value < 1e6 => format!("{:.0}k", value / 1e3),
        value => format!("{:.0}M", value / 1e6),
    }
}

/// Returns the number of decimals that a power of ten below 1 needs.
fn decimals(value: f64) -> usize {
    let mut decimals = 0;
    let mut value = value;
    while value < 0.99 && decimals < 9 {
        value *= 10.0;
        decimals += 1;
    }
    decimals
}

/// A logarithmic scale from one decade to another, which may lead to the left or up.
#[derive(Debug)]
struct Scale {
    first: f64,
    last: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// Returns the scale of the decades around these values between two places.
    fn covering(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let logarithms = values.filter(|value| *value > 0.0).map(f64::log10);
        let around = |(least, most): (f64, f64), one: f64| (least.min(one), most.max(one));
        let (least, most) = logarithms.fold((f64::INFINITY, f64::NEG_INFINITY), around);
        let first = if least.is_finite() {
            least.floor()
        } else {
            0.0
        };
        let last = most.max(first).ceil().max(first + 1.0);
        Self {
            first,
            last,
            start,
            end,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.log10() - self.first) / (self.last - self.first);
        self.start + part * (self.end - self.start)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        let next = |exponent: &f64| Some(exponent + 1.0);
        let exponents = std::iter::successors(Some(self.first), next);
        let last = self.last + 0.5;
        exponents
            .take_while(move |exponent| *exponent < last)
            .map(|exponent| 10_f64.powf(exponent))
    }
}

/// The text of a picture.
struct Svg(String);

impl Svg {
    fn new(title: &str, alt: &str, height: f64) -> Self {
        let mut svg = Self(String::new());
        svg.push(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"t d\">"
        ));
        svg.push(format_args!("<title id=\"t\">{}</title>", escaped(title)));
        svg.push(format_args!("<desc id=\"d\">{}</desc>", escaped(alt)));
        svg.push(format_args!("<style>{STYLE}</style>"));
        svg.push(format_args!(
            "<rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>"
        ));
        svg.text("title", MARGIN, 22.0, title);
        svg
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{element}");
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    fn vertical(&mut self, class: &str, x: f64, from: f64, to: f64) {
        self.push(format_args!(
            "<path class=\"{class}\" d=\"M{x:.1} {from:.1}V{to:.1}\"/>"
        ));
    }

    fn horizontal(&mut self, class: &str, from: f64, to: f64, y: f64) {
        self.push(format_args!(
            "<path class=\"{class}\" d=\"M{from:.1} {y:.1}H{to:.1}\"/>"
        ));
    }

    /// Draws the mark of what is asked.
    fn mark(&mut self, x: f64, top: f64) {
        self.vertical("asked", x, top, top + 14.0);
    }

    fn rectangle(&mut self, class: &str, x: f64, y: f64, width: f64) {
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"10\"/>"
        ));
    }

    /// Explains a colour, and moves to the place of the next.
    fn square(&mut self, class: &str, at: &mut f64, text: &str) {
        self.rectangle(class, *at, 36.0, 10.0);
        self.text("", *at + 14.0, 45.0, text);
        *at += text.chars().fold(34.0, |width, _| width + 6.4);
    }

    fn line(&mut self, class: &str, places: &[(f64, f64)]) {
        let places = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
        let places: Vec<_> = places.collect();
        let places = places.join(" ");
        self.push(format_args!(
            "<polyline class=\"{class}\" points=\"{places}\"/>"
        ));
    }

    fn circle(&mut self, class: &str, x: f64, y: f64, radius: f64) {
        self.push(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
        ));
    }

    fn end(self) -> String {
        self.0 + "</svg>\n"
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_of_whole_decades() {
        let scale = Scale::covering([3.0, 250.0].into_iter(), 0.0, 300.0);
        let decades: Vec<_> = scale.decades().map(ratio).collect();
        assert_eq!(decades, ["1x", "10x", "100x", "1kx"]);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        let one = Scale::covering([1.0].into_iter(), 0.0, 1.0);
        assert_eq!(one.decades().map(ratio).collect::<Vec<_>>(), ["1x", "10x"]);
        let less = Scale::covering([0.05].into_iter(), 0.0, 1.0);
        assert_eq!(
            less.decades().map(ratio).collect::<Vec<_>>(),
            ["0.01x", "0.1x"]
        );
    }

    #[test]
    fn what_misses_its_target_is_drawn_otherwise() {
        let bar = |ratio, is_missed| Bar {
            label: "a < b".to_owned(),
            ratio,
            shown: format!("{ratio:.2}x"),
            asked: Some(2.0),
            is_missed,
        };
        let drawn = bars("Title", "Alt", &[bar(3.0, false), bar(0.5, true)]);
        assert_eq!(drawn.matches(">a &lt; b<").count(), 2);
        assert_eq!(drawn.matches("class=\"bar\"").count(), 2, "and its colour");
        assert_eq!(drawn.matches("class=\"miss\"").count(), 2);
        assert!(drawn.contains("<title id=\"t\">Title</title>"));
        let point = |x, y, is_missed| Point { x, y, is_missed };
        let curve = Curve {
            name: "ours".to_owned(),
            points: vec![point(1e3, 1.0, false), point(1e6, 1e3, true)],
        };
        let axis = |label| Axis { label, number };
        let drawn = curves("T", "A", &axis("files"), &axis("time"), &[curve]);
        assert!(drawn.contains(">1M<") && drawn.contains(">files<"));
        assert_eq!(drawn.matches("<circle class=\"miss\"").count(), 1);
        assert!(drawn.contains("beyond what is asked"));
    }
}

//! The tools of the agent that talks to the user: each has the analyst do the work, and has
//! no other way to the data.

use std::sync::Arc;

use backend_state::StateBackend;
use console_tools::{Chat, Context, CustomTool, Options, Reply, ToolError, ToolResult, Toolset};
use examples::web::Error;
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Action, Op, Preset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::analyst::Analyst;
use crate::finding::{Chart, Finding, Kind, Shape};

/// Bytes of a question.
const QUESTION_BYTES: usize = 1_000;

/// Returns the conversation of a session: three tools, and nothing else.
pub(crate) fn conversation(analyst: &Analyst, session: &str) -> Result<Chat, Error> {
    let task = || Tasks {
        analyst: analyst.clone(),
        session: session.to_owned(),
    };
    let mut settings = ToolSettings::default();
    for tool in Tool::ALL {
        settings = settings.with(*tool, ToolSetting::action(Action::Deny));
    }
    let mut options = Options::default();
    options.include_execute = false;
    options.include_background = false;
    let toolset = Toolset::builder(Arc::new(StateBackend::new()))
        .options(options)
        .ruleset(Preset::Permissive.ruleset())
        .tool_settings(settings)
        .tool(QueryData(task()))
        .tool(Predict(task()))
        .tool(GenerateChart(task()));
    Ok(toolset.build()?.conversation(session))
}

/// Returns the chart in a reply of `generate_chart`, for the page.
pub(crate) fn drawn(tool: &str, reply: &str) -> Option<Value> {
    if tool != GenerateChart::NAME {
        return None;
    }
    let chart: Chart = serde_json::from_str(reply).ok()?;
    chart.check().ok()?;
    serde_json::to_value(chart).ok()
}

/// The way of a session's tasks to the analyst.
struct Tasks {
    analyst: Analyst,
    session: String,
}

impl Tasks {
    async fn give(&self, context: &Context, kind: Kind, what: &str, request: &Value) -> ToolResult {
        let task = format!("{what}\nReturn a {}.\nrequest: {request}", name(kind));
        let observer = context.observer.as_ref();
        let found = self.analyst.ask(&self.session, kind, &task, observer);
        let json = match found.await? {
            Finding::Table(table) => serde_json::to_string(&table),
            Finding::Prediction(prediction) => serde_json::to_string(&prediction),
            Finding::Chart(chart) => serde_json::to_string(&chart),
        };
        let json = json.map_err(|error| ToolError::environment(error.to_string()))?;
        Ok(Reply::text(json))
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Table => "table",
        Kind::Prediction => "prediction",
        Kind::Chart => "chart",
    }
}

/// Asks for a table.
struct QueryData(Tasks);

/// The arguments of `query_data`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryArgs {
    /// The question to answer, such as the revenue by shop.
    question: String,
}

impl CustomTool for QueryData {
    type Args = QueryArgs;
    const NAME: &'static str = "query_data";
    const DESCRIPTION: &'static str =
        "Has an analyst answer a question about the sales data. Returns a table.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    async fn run(&self, context: &Context, args: QueryArgs) -> ToolResult {
        if args.question.len() > QUESTION_BYTES {
            let why = format!("the question is longer than {QUESTION_BYTES} bytes; shorten it");
            return Err(ToolError::fixable(why));
        }
        let request = json!({"kind": "table", "question": args.question});
        let what = "Answer the question from the data.";
        self.0.give(context, Kind::Table, what, &request).await
    }
}

/// Asks for a prediction.
struct Predict(Tasks);

/// The arguments of `predict`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PredictArgs {
    /// The months to predict.
    #[schemars(range(min = 1, max = 24))]
    months: u8,
    /// The shop. Default: all of them together.
    #[serde(default)]
    shop: Option<String>,
}

impl CustomTool for Predict {
    type Args = PredictArgs;
    const NAME: &'static str = "predict";
    const DESCRIPTION: &'static str = "Has an analyst fit a model to the monthly revenue and predict the next months. \
         Returns the values with a range, the model and its error on known months.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    async fn run(&self, context: &Context, args: PredictArgs) -> ToolResult {
        let request = json!({"kind": "prediction", "months": args.months, "shop": args.shop});
        let what = "Fit a model to the monthly revenue and predict the next months.";
        self.0.give(context, Kind::Prediction, what, &request).await
    }
}

/// Asks for a chart.
struct GenerateChart(Tasks);

/// The arguments of `generate_chart`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChartArgs {
    /// The title, in at most 80 characters.
    title: String,
    /// Lines show the months, bars the years.
    shape: Shape,
    /// The months to predict in a chart of lines.
    #[schemars(range(min = 0, max = 24))]
    months: u8,
}

impl CustomTool for GenerateChart {
    type Args = ChartArgs;
    const NAME: &'static str = "generate_chart";
    const DESCRIPTION: &'static str = "Has an analyst make a chart of the revenue of each shop, with predicted months. \
         The user sees it. Returns its data.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    async fn run(&self, context: &Context, args: ChartArgs) -> ToolResult {
        let request = json!({
            "kind": "chart", "shape": args.shape, "title": args.title, "months": args.months,
        });
        let what = "Make a chart of the revenue of each shop, with the predicted months.";
        self.0.give(context, Kind::Chart, what, &request).await
    }
}

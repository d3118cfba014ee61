//! [`Server`]: a toolset as an MCP server for one client.

#![expect(
    deprecated,
    reason = "logging and roots are what every client of today has"
)]

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use console_tools::{FailureClass, Reply};
use futures::FutureExt as _;
use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    ErrorCode, Implementation, InitializeRequestParams, InitializeResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::ask::ClientApprover;
use crate::call_slot::CallSlot;
use crate::client::Client;
use crate::connect::Connect;
use crate::connection::Connection;
use crate::live_output::LiveOutput;
use crate::session::{Session, Workspace};
use crate::settings::Settings;
use crate::{call, resources, roots, structured};

/// The newest protocol version with sessions, which separate backends need.
pub(crate) const NEWEST_VERSION: ProtocolVersion = ProtocolVersion::LATEST_WITH_INITIALIZE;

#[derive(Debug)]
pub(crate) struct Server {
    connect: Arc<dyn Connect>,
    settings: Arc<Settings>,
    session: OnceLock<Session>,
    calls: Arc<Semaphore>,
    /// The lowest level that is logged.
    level: AtomicU8,
}

impl Server {
    pub(crate) fn new(connect: Arc<dyn Connect>, settings: Arc<Settings>) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(settings.concurrent_calls.clamp(1, 4_096))),
            connect,
            settings,
            session: OnceLock::new(),
            level: AtomicU8::new(LoggingLevel::Info as u8),
        }
    }

    fn session(&self) -> Result<&Session, ErrorData> {
        self.session.get().ok_or_else(|| {
            ErrorData::invalid_request("there is no session; send initialize first", None)
        })
    }

    /// Returns the client's workspace, or a protocol error.
    async fn workspace(&self) -> Result<Arc<Workspace>, ErrorData> {
        let workspace = self.session()?.workspace().await;
        workspace.map_err(|text| ErrorData::invalid_request(text, None))
    }

    async fn begin(
        &self,
        request: &InitializeRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let begun = || {
            let text = "the session has begun already; open another connection";
            ErrorData::invalid_request(text, None)
        };
        if self.session.get().is_some() {
            return Err(begun());
        }
        let connection = connection_of(context);
        let failed =
            |error: backend_core::Error| ErrorData::internal_error(error.to_string(), None);
        let client = client_of(context);
        let toolset = self.connect.connect(&client).await.map_err(failed)?;
        let mut chat = toolset.conversation_of(client.caller());
        if self.settings.ask_client {
            chat = chat.approver(ClientApprover {
                peer: context.peer.clone(),
                timeout: self.settings.answer_timeout,
            });
        }
        let mut instructions = chat.prompt().await.map_err(failed)?;
        if let Some(more) = &self.settings.instructions {
            let gap = if instructions.is_empty() { "" } else { "\n\n" };
            instructions = format!("{instructions}{gap}{more}");
        }
        let roots = request.capabilities.roots.as_ref();
        let host_root = roots.and_then(|_| self.settings.host_root.clone());
        let session = Session::new(chat, context.peer.clone(), connection, host_root);
        self.session.set(session).map_err(|_| begun())?;
        Ok(instructions)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let session = self.session()?;
        let workspace = match session.workspace().await {
            Ok(workspace) => workspace,
            Err(text) => return Ok(self.failed(text, FailureClass::Environment)),
        };
        if let Some(why) = &workspace.denied {
            return Ok(self.failed(why.clone(), FailureClass::Refused));
        }
        let name = request.name;
        if workspace.narrowed && roots::removes_tool(&name) {
            let text = roots::NO_COMMANDS.to_owned();
            return Ok(self.failed(text, FailureClass::Refused));
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let path = arguments.get("path").and_then(Value::as_str);
        let path = path.map(str::to_owned);
        let output = LiveOutput::new(
            context.peer.clone(),
            context.meta.get_progress_token(),
            LoggingLevel::Info as u8 >= self.level.load(Ordering::Relaxed),
            &name,
        );
        let reply: Reply = match &output {
            None => workspace.chat.call(&name, arguments).await,
            Some(output) => {
                let observer = Arc::clone(&output.buffer);
                let call = workspace.chat.call_observed(&name, arguments, observer);
                output.run(call).await
            }
        };
        let promised = workspace
            .tools
            .get(&name)
            .is_some_and(structured::has_schema);
        let path = path.as_deref();
        Ok(call::result(reply, path, promised, &self.settings))
    }

    fn failed(&self, text: String, class: FailureClass) -> CallToolResult {
        let mut reply = Reply::text(text);
        reply.failure = Some(class);
        call::result(reply, None, false, &self.settings)
    }

    /// Runs work that takes time or memory, at most `concurrent_calls` at once.
    async fn in_slot<T>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl Future<Output = Result<T, ErrorData>>,
    ) -> Result<T, ErrorData> {
        until_cancelled(context, async {
            let (done, slot) = CallSlot::run(&self.calls, work).await;
            connection_of(context).hold_slot(&context.id, slot);
            done
        })
        .await
    }
}

/// Returns the connection a request came from.
fn connection_of(context: &RequestContext<RoleServer>) -> Arc<Connection> {
    let connection = context.extensions.get::<Arc<Connection>>();
    connection.cloned().unwrap_or_default()
}

/// Returns the client that a request came from.
fn client_of(context: &RequestContext<RoleServer>) -> Client {
    let head = context.extensions.get::<Parts>();
    let client = head.and_then(|head| head.extensions.get::<Client>());
    client.cloned().unwrap_or_default()
}

/// Runs `work` until the client cancels it or disconnects.
async fn until_cancelled<T>(
    context: &RequestContext<RoleServer>,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let connection = connection_of(context);
    // Without this, a request whose handler panics would never be answered.
    let work = AssertUnwindSafe(work).catch_unwind().map(|done| {
        done.unwrap_or_else(|_| {
            let text = "the call crashed; try a different approach";
            Err(ErrorData::internal_error(text, None))
        })
    });
    tokio::select! {
        biased;
        () = context.ct.cancelled() => Err(ErrorData::invalid_request("cancelled", None)),
        () = connection.gone() => Err(ErrorData::invalid_request("the client is gone", None)),
        done = work => done,
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_logging()
            .build();
        let name = Implementation::new(self.settings.name.clone(), self.settings.version.clone());
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_protocol_version(NEWEST_VERSION)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&NEWEST_VERSION))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let info = self.negotiate_initialize(&request)?;
        let instructions = until_cancelled(&context, self.begin(&request, &context)).await?;
        Ok(info.with_instructions(instructions))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let workspace = until_cancelled(&context, self.workspace()).await?;
        let tools = workspace.tools.iter();
        let tools = tools.map(|tool| call::tool(tool, &self.settings)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Boxed, as below: by value, the states of a call fill half a megabyte of stack.
        let call = Box::pin(self.call(request, &context));
        let result = self.in_slot(&context, call).await?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let list = Box::pin(async {
            let workspace = self.workspace().await?;
            resources::list(&workspace, cursor.as_deref()).await
        });
        self.in_slot(&context, list).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(
            resources::templates(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = Box::pin(async {
            let workspace = self.workspace().await?;
            let read = resources::read(&workspace, &request.uri, self.settings.resource_bytes);
            Ok(read.await?.into())
        });
        self.in_slot(&context, read).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.level.store(request.level as u8, Ordering::Relaxed);
        Ok(())
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        if let Some(session) = self.session.get() {
            session.roots_changed();
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method arrives here only if its parameters could not be parsed.
        const KNOWN: [&str; 7] = [
            "initialize",
            "tools/call",
            "tools/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "logging/setLevel",
        ];
        let method = request.method;
        if KNOWN.contains(&method.as_str()) {
            let text = format!("the parameters of {method} are wrong; see the protocol");
            return Err(ErrorData::invalid_params(text, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}

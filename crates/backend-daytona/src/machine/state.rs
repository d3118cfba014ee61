//! [`State`]: the last known state of a sandbox.

use sandbox_wire::Process;
use sandbox_wire::websocket::Token;

use crate::options::Connection;
use crate::toolbox::Toolbox;

pub(super) type State = sandbox_shell::State<Facts>;

/// The facts about a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Its id.
    pub(super) id: Option<String>,
    /// Its toolbox, which may have another address after each start.
    pub(super) toolbox: Option<Toolbox>,
    /// Number of times this object has seen it start.
    pub(super) starts: u64,
    /// Its processor. Empty if it is not known.
    pub(super) architecture: String,
    /// The way into it, once one has worked.
    pub(super) connection: Option<Connection>,
    /// The agent that listens in it.
    pub(super) listener: Option<Listener>,
    /// A connected agent that is not used yet, and the start that it belongs to.
    pub(super) connected: Option<(u64, Process)>,
}

/// An agent that listens.
#[derive(Debug)]
pub(super) struct Listener {
    /// The session that it runs in.
    pub(super) session: String,
    pub(super) port: u16,
    pub(super) token: Token,
}

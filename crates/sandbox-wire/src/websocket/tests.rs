//! Tests of both ends of a websocket.

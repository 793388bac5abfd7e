//! What both HTTP servers of ack-memory share, `serve --http` and the review page: [`peers`] accepts
//! connections within limits, [`gate`] decides which requests are accepted.

pub mod gate;
pub mod peers;

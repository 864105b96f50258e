//! The protocol as one table.

/// HTTP method of an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// Reads.
    Get,
    /// Asks or tells.
    Post,
    /// Stores.
    Put,
}

/// One row of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Endpoint {
    /// HTTP method.
    pub method: Method,
    /// Path; `{hash}` is 64 hexadecimal digits.
    pub path: &'static str,
    /// Whether a client certificate is needed.
    pub certificate: bool,
    /// What goes in.
    pub request: &'static str,
    /// What comes back with status 200.
    pub response: &'static str,
}

impl Endpoint {
    /// A board becomes known.
    pub const ENROLL: Self =
        row(Method::Post, "/v1/enroll", false, "Envelope<EnrollRequest>", "Envelope<Enrolled>");
    /// What shall I do?
    pub const POLL: Self = row(Method::Post, "/v1/poll", true, "Envelope<Poll>", "Envelope<Answer>");
    /// What the network is: its card.
    pub const MODEL: Self = row(Method::Get, "/v1/model", true, "", "Envelope<ModelCard>");
    /// A shared part that the board's current task names, or the network's file, if the model's card names one.
    pub const BLOB: Self = row(Method::Get, "/v1/blob/{hash}", true, "", "raw little-endian f32, or ONNX");
    /// The result of a task.
    pub const UPDATE: Self = row(
        Method::Put,
        "/v1/update",
        true,
        "session (2 × u32), header length u32, Envelope<UpdateHeader>, payload",
        "Envelope<Receipt>",
    );
    /// A task refused.
    pub const DECLINE: Self =
        row(Method::Post, "/v1/decline", true, "Envelope<Decline>", "Envelope<Receipt>");
    /// How it goes, if the owner opted in.
    pub const HEALTH: Self = row(Method::Post, "/v1/health", true, "Envelope<Health>", "Envelope<Receipt>");
}

const fn row(
    method: Method,
    path: &'static str,
    certificate: bool,
    request: &'static str,
    response: &'static str,
) -> Endpoint {
    Endpoint { method, path, certificate, request, response }
}

/// Every endpoint. Any refusal is an `Envelope<Reject>` with the status that the host maps it to.
pub const ENDPOINTS: [Endpoint; 7] = [
    Endpoint::ENROLL,
    Endpoint::POLL,
    Endpoint::MODEL,
    Endpoint::BLOB,
    Endpoint::UPDATE,
    Endpoint::DECLINE,
    Endpoint::HEALTH,
];

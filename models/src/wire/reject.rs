//! The protocol's vocabulary of refusals.
use crate::id::{Hash, RoundId};
use crate::params::UpdateMode;
use serde::{Deserialize, Serialize};

/// Why the host refuses. Crosses the wire, is counted per device, and maps to a status in one function of the host.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// Another version of the protocol.
    #[error("the host speaks version {ours} of the protocol; install the matching edge-client")]
    Version {
        /// The host's.
        ours: u16,
    },
    /// The bytes are no message.
    #[error("the message can't be decoded")]
    Malformed,
    /// More bytes than allowed.
    #[error("more than {limit} bytes")]
    TooLarge {
        /// The cap.
        limit: u64,
    },
    /// The payload has another length than the specification says.
    #[error("the payload has {got} bytes, the model's specification asks for {expected}")]
    WrongLength {
        /// By the specification.
        expected: u64,
        /// What came.
        got: u64,
    },
    /// A value is NaN or infinite.
    #[error("the payload holds a number that is not finite")]
    NotFinite,
    /// The weight of an update is zero or absurd.
    #[error("an update can't weigh {samples} samples")]
    BadWeight {
        /// What it said.
        samples: u32,
    },
    /// An update of another part of the model, or in another coding, than the task asked for.
    #[error("the update is not what the task asked for")]
    NotAsked,
    /// The one-time token is unknown.
    #[error("the token is not one of this host's; make one with `aggregator token`")]
    TokenUnknown,
    /// The one-time token was used by another key.
    #[error("the token has been used; make another with `aggregator token`")]
    TokenUsed,
    /// The one-time token has expired.
    #[error("the token has expired; make another with `aggregator token`")]
    TokenExpired,
    /// The certificate request is not valid.
    #[error("the certificate request is not valid")]
    BadRequest,
    /// No client certificate, or one the host doesn't know.
    #[error("the host doesn't know this device; enrol it again")]
    UnknownDevice,
    /// The operator revoked the device.
    #[error("the operator has revoked this device")]
    Revoked,
    /// Another process with the same key is alive.
    #[error("another process with this device's key took over (session {epoch}); stop one of them")]
    Superseded {
        /// Its epoch.
        epoch: u32,
    },
    /// The round is long over.
    #[error("the round is over, round {current} is open; ask again")]
    Stale {
        /// What is open now.
        current: RoundId,
    },
    /// The round closed before the update came.
    #[error("the round closed before the update came, round {current} is next; ask again")]
    Late {
        /// What is open now.
        current: RoundId,
    },
    /// The board is not in the round's cohort.
    #[error("the board was not picked for round {round}; ask again")]
    NotSelected {
        /// The round.
        round: RoundId,
    },
    /// The round has not been opened: the host was set back to an older state.
    #[error("the host is at round {current}: it was set back; ask again")]
    Resync {
        /// What is open now.
        current: RoundId,
    },
    /// Another update of this board counts in this round.
    #[error("another update of this board counts in this round ({accepted}); ask again")]
    Duplicate {
        /// It.
        accepted: Hash,
    },
    /// The blob is not one that the board's current task names.
    #[error("the current task doesn't name this blob; ask again")]
    NotYours,
    /// The host is busy.
    #[error("the host is busy; try again in {retry_ms} ms")]
    Busy {
        /// When.
        retry_ms: u32,
    },
    /// Nothing is at this path.
    #[error("no such endpoint")]
    NoSuchEndpoint,
    /// The host failed; its log says why.
    #[error("the host failed; its log says why")]
    Internal,
    /// A change that no training makes.
    #[error(
        "the update changes a weight by {steps} times what is believed: training went astray on this board, or the update is not one"
    )]
    Absurd {
        /// Its size against the cap, rounded up.
        steps: u32,
    },
    /// The board's process was started too often.
    #[error("this board's program was started too often within the hour; find out why it ends. Try again in {} minutes", .retry_ms.div_ceil(60_000))]
    TooManySessions {
        /// When.
        retry_ms: u32,
    },
    /// An update of a mode that the model can't be trained in, or that sends nothing of what the task shares.
    #[error("no update of this model can be of mode {mode}; set another `[train] update`")]
    BadCoverage {
        /// What it said.
        mode: UpdateMode,
    },
}

/// What a board does about a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Advice {
    /// Poll again at once: the state moved on.
    AskAgain,
    /// The same request again, later.
    Retry,
    /// Nothing a program can do: tell the owner and stop.
    Stop,
}

impl Reject {
    /// What to do about it.
    pub fn advice(&self) -> Advice {
        match self {
            Self::Stale { .. }
            | Self::Late { .. }
            | Self::NotSelected { .. }
            | Self::Resync { .. }
            | Self::Duplicate { .. } => Advice::AskAgain,
            Self::NotYours
            | Self::NotAsked
            | Self::BadWeight { .. }
            | Self::BadCoverage { .. }
            | Self::WrongLength { .. }
            | Self::NotFinite
            | Self::Absurd { .. } => Advice::AskAgain,
            Self::Busy { .. } | Self::TooManySessions { .. } | Self::Internal => Advice::Retry,
            _ => Advice::Stop,
        }
    }
}

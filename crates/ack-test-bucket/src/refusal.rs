//! Why a request is refused: the codes and statuses of S3.

use hyper::StatusCode;

/// An S3 error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    AccessDenied,
    ConditionalRequestConflict,
    EntityTooSmall,
    InternalError(StatusCode),
    InvalidAccessKeyId,
    InvalidArgument,
    InvalidPart,
    InvalidPartOrder,
    InvalidRange { size: usize },
    MalformedXml,
    NoSuchBucket,
    NoSuchKey,
    NoSuchUpload,
    NotImplemented,
    NotModified,
    PreconditionFailed,
    SlowDown,
}

impl Refusal {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::AccessDenied | Self::InvalidAccessKeyId => StatusCode::FORBIDDEN,
            Self::ConditionalRequestConflict => StatusCode::CONFLICT,
            Self::EntityTooSmall
            | Self::InvalidArgument
            | Self::InvalidPart
            | Self::InvalidPartOrder
            | Self::MalformedXml => StatusCode::BAD_REQUEST,
            Self::InternalError(status) => status,
            Self::InvalidRange { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::NoSuchBucket | Self::NoSuchKey | Self::NoSuchUpload => StatusCode::NOT_FOUND,
            Self::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Self::NotModified => StatusCode::NOT_MODIFIED,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::SlowDown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(crate) const fn code(self) -> &'static str {
        self.texts().0
    }

    pub(crate) const fn message(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::AccessDenied => ("AccessDenied", "Access Denied"),
            Self::ConditionalRequestConflict => (
                "ConditionalRequestConflict",
                "The conditional request cannot succeed due to a conflicting operation against this resource.",
            ),
            Self::EntityTooSmall => (
                "EntityTooSmall",
                "Your proposed upload is smaller than the minimum allowed size",
            ),
            Self::InternalError(_) => (
                "InternalError",
                "We encountered an internal error. Please try again.",
            ),
            Self::InvalidAccessKeyId => (
                "InvalidAccessKeyId",
                "The AWS Access Key Id you provided does not exist in our records.",
            ),
            Self::InvalidArgument => ("InvalidArgument", "Invalid Argument"),
            Self::InvalidPart => (
                "InvalidPart",
                "One or more of the specified parts could not be found.",
            ),
            Self::InvalidPartOrder => (
                "InvalidPartOrder",
                "The list of parts was not in ascending order.",
            ),
            Self::InvalidRange { .. } => ("InvalidRange", "The requested range is not satisfiable"),
            Self::MalformedXml => (
                "MalformedXML",
                "The XML you provided was not well-formed or did not validate against our published schema",
            ),
            Self::NoSuchBucket => ("NoSuchBucket", "The specified bucket does not exist"),
            Self::NoSuchKey => ("NoSuchKey", "The specified key does not exist."),
            Self::NoSuchUpload => (
                "NoSuchUpload",
                "The specified multipart upload does not exist.",
            ),
            Self::NotImplemented => (
                "NotImplemented",
                "A header or query you provided implies functionality that is not implemented.",
            ),
            Self::NotModified => ("NotModified", "Not Modified"),
            Self::PreconditionFailed => (
                "PreconditionFailed",
                "At least one of the pre-conditions you specified did not hold",
            ),
            Self::SlowDown => ("SlowDown", "Please reduce your request rate."),
        }
    }
}

//! Placeholder of approvals.

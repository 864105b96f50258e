//! One binary for all integration tests.
mod hash;
mod tidy;

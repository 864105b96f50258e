//! One binary for all integration tests.
mod hash;
mod kill;
mod refusals;
mod tidy;

//! One binary for all integration tests.
mod enrolment;
mod federate;
mod frozen;
mod hash;
mod kill;
mod late;
mod memory;
mod modes;
mod own;
mod refusals;
mod sentinels;
mod tidy;

//! The host over real TLS on loopback: enrolment, hostile clients, whole runs, and power cuts.
mod board;
mod enrolment;
mod examples;
mod hostile;
mod operator;
mod power_cuts;
mod rounds;

//! Typed methods as bytes: the only glue between methods and the machines that run them.

//! Every command says how it is used, and what it says can be typed.
use clap::{Command, CommandFactory, Parser};
use edge_client::cli::Cli;

/// Every command that does something, with its help.
fn leaves(command: &Command, path: &str, found: &mut Vec<(String, String)>) {
    let children: Vec<_> = command.get_subcommands().filter(|c| c.get_name() != "help").collect();
    for child in &children {
        leaves(child, &format!("{path} {}", child.get_name()), found);
    }
    if children.is_empty() {
        found.push((path.into(), command.clone().render_long_help().to_string()));
    }
}

#[test]
fn every_help_has_an_example_that_parses() {
    let mut found = Vec::new();
    leaves(&Cli::command(), "edge-client", &mut found);
    assert!(found.len() >= 10, "{found:?}");
    for (path, help) in found {
        let examples: Vec<_> =
            help.lines().map(str::trim).filter(|l| l.starts_with("edge-client ")).collect();
        assert!(!examples.is_empty(), "{path} has no example");
        for example in examples {
            assert!(example.starts_with(&path), "{path} shows {example}");
            Cli::try_parse_from(example.split_whitespace()).unwrap_or_else(|e| panic!("{example}: {e}"));
        }
    }
}

//! The tables for people.
use super::{Column, Report, Way};
use crate::evaluate::{DualReport, Duties};
use crate::measure::{mean, standard_error};
use crate::table::{Table, percent};
use std::fmt::Write;

/// The tables of one seed.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing into a String can't fail.
    let _ = write!(
        out,
        "Accuracy on each board's own test images, in percent (world {}, seed {})\n\n",
        report.world, report.seed
    );
    let _ = writeln!(out, "{}", own(report));
    let _ = write!(out, "The two duties of cpct, means over boards, in percent\n\n");
    let _ = writeln!(out, "{}", duties(report));
    let _ = writeln!(out, "{}", late(report));
    let _ = writeln!(out, "{}", facts(report));
    out
}

fn own(report: &Report) -> Table {
    let mut table = Table::headed(["board"].into_iter().chain(Column::ALL.map(Column::heading)));
    let cell =
        |column, board: usize| report.accuracy.get(&column).and_then(|a| a.get(board).copied().flatten());
    for (index, board) in report.boards.iter().enumerate() {
        table.row(row(board, |c| cell(c, index)));
    }
    table.rule();
    table.row(row("mean", |c| report.mean(c)));
    table.row(row("worst 10 %", |c| report.worst(c)));
    table
}

fn row(name: &str, of: impl Fn(Column) -> Option<f64>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(Column::ALL.map(|c| percent(of(c)))).collect()
}

fn duties(report: &Report) -> Table {
    let mut table = Table::headed([""].into_iter().chain(Way::ALL.map(Way::heading)));
    type Row = (&'static str, fn(Duties) -> Option<f64>);
    let rows: [Row; 3] = [
        ("own test images", |d| d.own),
        ("classes never seen", |d| d.unseen),
        ("all classes, balanced", |d| d.balanced),
    ];
    for (name, of) in rows {
        let cells = Way::ALL.map(|way| percent(mean(report.dual.iter().filter_map(|d| of(way.of(d))))));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    table
}

fn late(report: &Report) -> Table {
    let mut table = Table::headed([
        "joined after training",
        "fedper\n+EA",
        "specialist",
        "routed",
        "classes never\nseen, routed",
    ]);
    for (index, board) in report.late.iter().enumerate() {
        let dual = report.late_dual.get(index).copied().unwrap_or_default();
        let fedper = report.late_fedper_ea.get(index).copied().flatten();
        let cells = [fedper, dual.specialist.own, dual.routed.own, dual.routed.unseen].map(percent);
        table.row(std::iter::once(board.clone()).chain(cells));
    }
    table
}

fn facts(report: &Report) -> String {
    let over = |of: fn(&DualReport) -> Option<f64>| mean(report.dual.iter().filter_map(of));
    let shown = |figure: Option<f64>| figure.map_or("–".into(), |f| format!("{f:.3}"));
    format!(
        "router: AUROC {} (own test images against classes never seen)\n\
         route share: the specialist decides {} % of own test images, {} % of images of classes never seen\n\
         traffic per board and round it takes part in: {:.0} kB up, {:.0} kB down\n",
        shown(report.auroc()),
        percent(over(|d| d.route_share)),
        percent(over(|d| d.route_share_unseen)),
        report.bytes_up / 1e3,
        report.bytes_down / 1e3,
    )
}

/// The table over seeds: means, and what the specialist is above each column with the standard error of that difference.
pub fn over_seeds(reports: &[Report]) -> String {
    let seeds: Vec<String> = reports.iter().map(|r| r.seed.to_string()).collect();
    let mut table = Table::headed(["seed"].into_iter().chain(Column::ALL.map(Column::heading)));
    for report in reports {
        table.row(row(&report.seed.to_string(), |c| report.mean(c)));
    }
    table.rule();
    table.row(row("mean", |c| mean(reports.iter().filter_map(|r| r.mean(c)))));
    let ahead =
        |c| reports.iter().filter_map(|r| Some(r.mean(Column::Specialist)? - r.mean(c)?)).collect::<Vec<_>>();
    table.row(row("specialist − column", |c| mean(ahead(c)).filter(|_| c != Column::Specialist)));
    table.row(row("± paired se", |c| standard_error(&ahead(c)).filter(|_| c != Column::Specialist)));
    table.rule();
    table.row(row("worst 10 %", |c| mean(reports.iter().filter_map(|r| r.worst(c)))));
    let mut unseen = Table::headed(["classes never seen"].into_iter().chain(Way::ALL.map(Way::heading)));
    let ways = |of: &dyn Fn(Way) -> Option<f64>| Way::ALL.map(|w| percent(of(w)));
    for report in reports {
        unseen.row(std::iter::once(report.seed.to_string()).chain(ways(&|w| report.unseen(w))));
    }
    unseen.rule();
    unseen.row(
        std::iter::once("mean".into()).chain(ways(&|w| mean(reports.iter().filter_map(|r| r.unseen(w))))),
    );
    let kept = |w| {
        Some(
            mean(reports.iter().filter_map(|r| r.unseen(w)))?
                / mean(reports.iter().filter_map(|r| r.unseen(Way::Generalist)))?,
        )
    };
    unseen.row(std::iter::once("share of the generalist's".into()).chain(ways(&kept)));
    format!("Means over boards, in percent, over seeds {}\n\n{table}\n{unseen}", seeds.join(", "))
}

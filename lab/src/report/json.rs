//! One line per seed, one over seeds.
use super::{Column, Report, Way};
use crate::measure::{mean, standard_error};
use serde_json::{Map, Value, json};

/// The figures that are averaged over seeds: group, key, value.
type Figures = Vec<(&'static str, &'static str, Option<f64>)>;

impl Report {
    fn figures(&self) -> Figures {
        let mut figures: Figures = Vec::new();
        figures.extend(Column::ALL.map(|c| ("accuracy", c.key(), self.mean(c))));
        figures.extend(Column::ALL.map(|c| ("worst10", c.key(), self.worst(c))));
        let late = mean(self.late_dual.iter().filter_map(|d| d.routed.own));
        figures.push(("late", "routed", late));
        figures.push(("late", "fedper_ea", mean(self.late_fedper_ea.iter().filter_map(|a| *a))));
        figures.extend(Way::ALL.map(|w| ("unseen", w.key(), self.unseen(w))));
        figures.push(("", "router_auroc", self.auroc()));
        figures.push(("", "bytes_up_per_client_round", Some(self.bytes_up.round())));
        figures.push(("", "bytes_down_per_client_round", Some(self.bytes_down.round())));
        figures.push(("", "wall_s", Some((self.wall_s * 10.0).round() / 10.0)));
        figures
    }

    fn head(&self) -> Map<String, Value> {
        let head = json!({ "method": "cpct", "world": self.world, "clients": self.boards.len(), "rounds": self.rounds });
        head.as_object().cloned().unwrap_or_default()
    }

    /// The line of one seed.
    pub fn json(&self) -> Value {
        let mut line = self.head();
        line.insert("seed".into(), self.seed.into());
        nest(&mut line, self.figures());
        line.insert("engines".into(), self.engines.clone().into());
        line.into()
    }
}

/// The line over seeds: means, and under `se` the standard errors of the paired differences of each group: against
/// `specialist` for columns and ways, against `routed` for late boards; plain standard errors of everything else.
pub fn summary(reports: &[Report]) -> Value {
    let Some(first) = reports.first() else { return Value::Null };
    let rows: Vec<Figures> = reports.iter().map(Report::figures).collect();
    let over = |how: &dyn Fn(usize) -> Option<f64>| -> Figures {
        (0..rows[0].len()).map(|i| (rows[0][i].0, rows[0][i].1, how(i))).collect()
    };
    let mut line = first.head();
    line.insert("seeds".into(), reports.iter().map(|r| r.seed).collect::<Vec<_>>().into());
    nest(&mut line, over(&|i| mean(rows.iter().filter_map(|row| row[i].2))));
    line.insert("engines".into(), first.engines.clone().into());
    let mut errors = Map::new();
    nest(&mut errors, over(&|i| standard_error(&differences(&rows, i))));
    line.insert("se".into(), errors.into());
    line.into()
}

/// What a figure differs by from its group's reference, seed by seed; the figure itself where it has none.
fn differences(rows: &[Figures], at: usize) -> Vec<f64> {
    let (group, key, _) = rows[0][at];
    let reference = match group {
        "" => None,
        "late" => Some("routed"),
        _ => Some("specialist"),
    };
    let paired = reference.filter(|r| *r != key);
    let of = |row: &Figures| {
        let base = match paired {
            Some(r) => row.iter().find(|f| (f.0, f.1) == (group, r))?.2?,
            None => 0.0,
        };
        Some(row[at].2? - base)
    };
    rows.iter().filter_map(of).collect()
}

fn nest(into: &mut Map<String, Value>, figures: Figures) {
    for (group, key, figure) in figures {
        let value = figure.map_or(Value::Null, Value::from);
        match group {
            "" => into.insert(key.into(), value),
            _ => {
                let group = into.entry(group).or_insert_with(|| Map::new().into());
                group.as_object_mut().and_then(|g| g.insert(key.into(), value))
            }
        };
    }
}

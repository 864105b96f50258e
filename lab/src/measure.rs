//! Figures over samples, clients and seeds.

/// Arithmetic mean; nothing of nothing.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.into_iter().fold((0.0, 0_u32), |(sum, n), x| (sum + x, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// Standard error of the mean, `s/√n` with the sample standard deviation `s`; nothing below two values.
///
/// ```
/// // s² = ((1−3)² + (3−3)² + (5−3)²) / 2 = 4, so the standard error is 2/√3.
/// let se = lab::measure::standard_error(&[1.0, 3.0, 5.0]).unwrap();
/// assert!((se - 2.0 / 3.0_f64.sqrt()).abs() < 1e-12);
/// ```
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = mean(values.iter().copied()).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    Some((squares / (n - 1.0) / n).sqrt())
}

/// Mean of the lowest tenth of the values: of N the N/10 smallest, rounded to the nearest whole number, at least one.
///
/// ```
/// assert_eq!(lab::measure::worst_tenth(&[0.9, 0.4, 0.8]), Some(0.4));
/// ```
pub fn worst_tenth(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let lowest = (values.len() as f64 / 10.0).round().max(1.0) as usize;
    mean(sorted.into_iter().take(lowest))
}

/// Area under the ROC curve: the probability that a `positive` scores higher than a `negative`, ties counting half
/// (Mann and Whitney). Nothing if either side is empty.
///
/// ```
/// // Of the six pairs four are in order and one is tied.
/// assert_eq!(lab::measure::auroc(&[0.9, 0.5], &[0.5, 0.6, 0.1]), Some(4.5 / 6.0));
/// ```
pub fn auroc(positive: &[f32], negative: &[f32]) -> Option<f64> {
    let mut all: Vec<(f32, bool)> =
        positive.iter().map(|&s| (s, true)).chain(negative.iter().map(|&s| (s, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut twice) = (0_u64, 0_u64);
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        let positives = tied.iter().filter(|(_, is)| *is).count() as u64;
        let negatives = tied.len() as u64 - positives;
        twice += positives * (2 * below + negatives);
        below += negatives;
    }
    let pairs = positive.len() * negative.len();
    (pairs > 0).then(|| twice as f64 / (2 * pairs) as f64)
}

/// Share of the samples `of` that are answered rightly; nothing if there is none.
pub fn accuracy(answers: &[usize], labels: &[u16], of: &[usize]) -> Option<f64> {
    mean(of.iter().map(|&i| f64::from(answers[i] == usize::from(labels[i]))))
}

/// Mean over the classes present of the share answered rightly.
///
/// ```
/// // Class 0: one of two; class 1: one of one.
/// assert_eq!(lab::measure::balanced(&[0, 1, 1], &[0, 0, 1], 2), Some(0.75));
/// ```
pub fn balanced(answers: &[usize], labels: &[u16], classes: usize) -> Option<f64> {
    let of = |class| (0..labels.len()).filter(|&i| usize::from(labels[i]) == class).collect::<Vec<_>>();
    mean((0..classes).filter_map(|class| accuracy(answers, labels, &of(class))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auroc_knows_its_extremes() {
        assert_eq!(auroc(&[0.9, 0.8], &[0.1, 0.2]), Some(1.0));
        assert_eq!(auroc(&[0.1, 0.2], &[0.9, 0.8]), Some(0.0));
        assert_eq!(auroc(&[0.5; 7], &[0.5; 3]), Some(0.5));
        assert_eq!(auroc(&[], &[0.5]), None);
    }

    #[test]
    fn the_worst_tenth_is_rounded_and_never_empty() {
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        assert_eq!(worst_tenth(&values), Some(0.5));
        assert_eq!(worst_tenth(&values[3..15]), Some(3.0));
        assert_eq!(worst_tenth(&[]), None);
    }

    #[test]
    fn one_value_has_no_standard_error() {
        assert_eq!(standard_error(&[0.7]), None);
        assert_eq!(standard_error(&[0.7, 0.7]), Some(0.0));
    }
}

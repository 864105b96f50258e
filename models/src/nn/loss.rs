//! What training minimises: each loss with its value and its gradient. All logarithms are natural; `exp` and `log` have
//! the same bits on every target.
//!
//! Values are of one sample (or one set of weights); the mean over a batch is the caller's.

/// `log Σ exp z`, without overflow.
///
/// ```
/// let z = [0.0_f32, 0.0];
/// assert!((models::nn::loss::log_sum_exp(&z) - 2.0_f64.ln()).abs() < 1e-12);
/// ```
pub fn log_sum_exp(logits: &[f32]) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !max.is_finite() {
        return f64::from(max);
    }
    let sum: f64 = logits.iter().map(|&z| libm::exp(f64::from(z) - f64::from(max))).sum();
    f64::from(max) + libm::log(sum)
}

/// Turns logits into probabilities in place.
///
/// ```
/// let mut z = [0.0_f32, 3.0_f32.ln()];
/// models::nn::loss::softmax(&mut z);
/// assert!((z[0] - 0.25).abs() < 1e-6 && (z[1] - 0.75).abs() < 1e-6);
/// ```
pub fn softmax(logits: &mut [f32]) {
    let total = log_sum_exp(logits);
    logits.iter_mut().for_each(|z| *z = libm::exp(f64::from(*z) - total) as f32);
}

/// Turns logits into log-probabilities in place.
pub fn log_softmax(logits: &mut [f32]) {
    let total = log_sum_exp(logits);
    logits.iter_mut().for_each(|z| *z = (f64::from(*z) - total) as f32);
}

/// Cross-entropy `−log softmax(z)_y` of one sample. *Adds* `weight · (softmax(z) − onehot(y))` to `grad` and returns the
/// value (without the weight).
///
/// A log prior r (balanced softmax) is added to the logits by the caller: the gradient with respect to z is the same.
///
/// Two classes with logits 0 and ln 3 and the first one right: `−log ¼ = ln 4`, gradient (¼ − 1, ¾):
/// ```
/// let mut grad = [0.0_f32; 2];
/// let value = models::nn::loss::cross_entropy(&[0.0, 3.0_f32.ln()], 0, 1.0, &mut grad);
/// assert!((value - 4.0_f64.ln()).abs() < 1e-6);
/// assert!((grad[0] + 0.75).abs() < 1e-6 && (grad[1] - 0.75).abs() < 1e-6);
/// ```
pub fn cross_entropy(logits: &[f32], label: usize, weight: f64, grad: &mut [f32]) -> f64 {
    let total = log_sum_exp(logits);
    for (class, (g, &z)) in grad.iter_mut().zip(logits).enumerate() {
        let p = libm::exp(f64::from(z) - total);
        *g += (weight * (p - f64::from(u8::from(class == label)))) as f32;
    }
    total - f64::from(logits[label])
}

/// Distillation `T² · KL(q_t ‖ q_s)` with `q = softmax(z / T)` of one sample. *Adds* `weight · T · (q_s − q_t)`, the gradient
/// with respect to the student's logits, to `grad` and returns the value (without the weight).
///
/// At T = 1, a teacher of (½, ½) and a student of (¼, ¾): `½ ln 2 + ½ ln ⅔ = ½ ln 4⁄3`, gradient (−¼, ¼):
/// ```
/// let mut grad = [0.0_f32; 2];
/// let value = models::nn::loss::distillation(&[0.0, 3.0_f32.ln()], &[0.0, 0.0], 1.0, 1.0, &mut grad);
/// assert!((value - 0.5 * (4.0_f64 / 3.0).ln()).abs() < 1e-6);
/// assert!((grad[0] + 0.25).abs() < 1e-6 && (grad[1] - 0.25).abs() < 1e-6);
/// ```
pub fn distillation(
    student: &[f32],
    teacher: &[f32],
    temperature: f32,
    weight: f64,
    grad: &mut [f32],
) -> f64 {
    let t = f64::from(temperature);
    let (total_s, total_t) = (tempered_total(student, t), tempered_total(teacher, t));
    let mut value = 0.0;
    for ((g, &s), &z) in grad.iter_mut().zip(student).zip(teacher) {
        let (log_s, log_t) = (f64::from(s) / t - total_s, f64::from(z) / t - total_t);
        let (q_s, q_t) = (libm::exp(log_s), libm::exp(log_t));
        value += q_t * (log_t - log_s);
        *g += (weight * t * (q_s - q_t)) as f32;
    }
    t * t * value
}

/// `log Σ exp(z / t)`.
fn tempered_total(logits: &[f32], t: f64) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&z| libm::exp((f64::from(z) - f64::from(max)) / t)).sum();
    f64::from(max) / t + libm::log(sum)
}

/// Proximal term `μ/2 · ‖w − anchor‖²`. *Adds* `μ (w − anchor)` to `grad`.
///
/// ```
/// let mut grad = [0.0_f32; 2];
/// let value = models::nn::loss::proximal(&[1.0, 3.0], &[1.0, 1.0], 0.5, &mut grad);
/// assert_eq!((value, grad), (1.0, [0.0, 1.0]));
/// ```
pub fn proximal(weights: &[f32], anchor: &[f32], mu: f32, grad: &mut [f32]) -> f64 {
    let mut square = 0.0;
    for ((g, w), a) in grad.iter_mut().zip(weights).zip(anchor) {
        let away = w - a;
        square += f64::from(away) * f64::from(away);
        *g += mu * away;
    }
    0.5 * f64::from(mu) * square
}

/// L2 term `d/2 · ‖w‖²` (weight decay d). *Adds* `d · w` to `grad`.
///
/// ```
/// let mut grad = [0.0_f32; 2];
/// let value = models::nn::loss::l2(&[2.0, -1.0], 0.5, &mut grad);
/// assert_eq!((value, grad), (1.25, [1.0, -0.5]));
/// ```
pub fn l2(weights: &[f32], decay: f32, grad: &mut [f32]) -> f64 {
    let square: f64 = weights.iter().map(|&w| f64::from(w) * f64::from(w)).sum();
    grad.iter_mut().zip(weights).for_each(|(g, w)| *g += decay * w);
    0.5 * f64::from(decay) * square
}

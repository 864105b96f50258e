//! Every layer's backward pass against central differences of its forward pass.
use super::*;
use crate::nn::graph::{Conv2d, Curve, Window};
use crate::params::Role;

const CLASSES: usize = 3;

/// Compares each entry's gradient along a random direction with the difference quotient of the loss.
fn check(what: &str, graph: &Graph, training: bool) {
    let samples = Samples::random(graph, CLASSES, 10);
    let mut draw = stream(2);
    let mut params = normal(&mut draw, graph.len(), 0.4);
    for entry in graph.entries().iter().filter(|e| e.role == Role::Statistic && e.name.ends_with("var")) {
        params[entry.range.clone()].iter_mut().for_each(|v| *v = 0.5 + v.abs());
    }
    let trains: Vec<bool> = graph.entries().iter().map(|e| e.role == Role::Trainable).collect();
    let run = |params: &[f32]| {
        let mut training = Training::new(graph, params, Setup::new(&trains, training, 10), SGD, Fan::Inline);
        let mut gradient = vec![0.0; params.len()];
        let loss = training.accumulate(&samples.batch(), &mut gradient);
        (loss, training.natural(gradient))
    };
    let (_, gradient) = run(&params);
    for entry in graph.entries().iter().filter(|e| e.role == Role::Trainable) {
        let mut direction = normal(&mut draw, entry.range.len(), 1.0);
        let norm = direction.iter().map(|d| d * d).sum::<f32>().sqrt();
        direction.iter_mut().for_each(|d| *d /= norm);
        let moved = |by: f32| {
            let mut params = params.clone();
            params[entry.range.clone()].iter_mut().zip(&direction).for_each(|(p, d)| *p += by * d);
            run(&params).0
        };
        let step = 5e-4_f32;
        let quotient = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
        let slope: f64 = gradient[entry.range.clone()]
            .iter()
            .zip(&direction)
            .map(|(g, d)| f64::from(*g) * f64::from(*d))
            .sum();
        let size: f64 =
            gradient[entry.range.clone()].iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        let close = (quotient - slope).abs() <= 0.01 * slope.abs() + 0.01 * size + 1e-3;
        assert!(close, "{what}, {}: slope {slope}, difference quotient {quotient}, norm {size}", entry.name);
        let biased_out = what.contains("norm") && matches!(&entry.name[..], "a.bias" | "b.bias");
        assert!(size > 1e-4 || biased_out, "{what}, {}: no gradient arrives", entry.name);
    }
}

/// A network of a first convolution, the operations to be tested, and a linear head.
fn net(input: [usize; 3], statistics: usize, ops: &[(&str, Op)]) -> Graph {
    let mut g = GraphBuilder::new(input, statistics);
    let mut last = g.input();
    for (name, op) in ops {
        last = g.add(name, *op, &[last]).unwrap();
    }
    finish(g, last)
}

fn finish(mut g: GraphBuilder, last: NodeId) -> Graph {
    let flat = g.add("flatten", Op::Flatten, &[last]).unwrap();
    let joined = match g.conditioning() {
        Some(s) => g.add("concat", Op::Concat, &[flat, s]).unwrap(),
        None => flat,
    };
    let head = g.add("head", Op::Linear { out: CLASSES, bias: true }, &[joined]).unwrap();
    g.finish(&[head])
}

fn conv(out: usize) -> Op {
    Op::Conv2d(Conv2d::same(out, [3, 3]))
}

const POOL: Op = Op::MaxPool(Window::new([2, 2], [2, 2]));

#[test]
fn convolutions_of_every_kind() {
    let first = ("a", conv(4));
    let cases = [
        ("same", Conv2d::same(5, [3, 3])),
        ("valid", Conv2d { padding: [0, 0], ..Conv2d::same(5, [3, 3]) }),
        ("wide", Conv2d::same(3, [5, 5])),
        ("pointwise", Conv2d::same(7, [1, 1])),
        ("pointwise with padding", Conv2d { padding: [1, 1], ..Conv2d::same(3, [1, 1]) }),
        ("stride", Conv2d { stride: [2, 2], ..Conv2d::same(6, [3, 3]) }),
        ("groups", Conv2d { groups: 2, ..Conv2d::same(6, [3, 3]) }),
        ("groups and stride", Conv2d { groups: 4, stride: [2, 1], ..Conv2d::same(4, [3, 3]) }),
        ("depthwise", Conv2d { groups: 4, ..Conv2d::same(4, [3, 3]) }),
        ("depthwise and stride", Conv2d { groups: 4, stride: [2, 2], ..Conv2d::same(4, [3, 5]) }),
        ("depthwise, valid", Conv2d { groups: 4, padding: [0, 0], ..Conv2d::same(4, [2, 4]) }),
        ("uneven", Conv2d { padding: [1, 0], ..Conv2d::same(4, [3, 2]) }),
        ("no bias", Conv2d { bias: false, ..Conv2d::same(4, [3, 3]) }),
        ("dilation", Conv2d { dilation: [2, 3], padding: [2, 3], ..Conv2d::same(4, [3, 2]) }),
        (
            "dilation, groups and stride",
            Conv2d { dilation: [2, 1], stride: [2, 2], groups: 2, ..Conv2d::same(6, [3, 3]) },
        ),
    ];
    for (what, case) in cases {
        check(what, &net([2, 7, 6], 0, &[first, ("b", Op::Conv2d(case))]), true);
        check(
            &format!("{what}, relu"),
            &net([2, 7, 6], 0, &[first, ("b", Op::Conv2d(case)), ("", Op::Relu)]),
            true,
        );
        let pooled = [first, ("", Op::Relu), ("b", Op::Conv2d(case)), ("", Op::Relu), ("", POOL)];
        check(&format!("{what}, relu and pool"), &net([2, 9, 7], 0, &pooled), true);
    }
}

#[test]
fn convolutions_in_quads_of_columns() {
    let same = Conv2d::same(9, [3, 3]);
    let cases = [
        ("same", same),
        ("valid", Conv2d { padding: [0, 0], ..same }),
        ("flat", Conv2d::same(8, [1, 3])),
        ("wide padding", Conv2d { padding: [0, 2], ..same }),
    ];
    for (what, case) in cases {
        let ops = [("a", conv(8)), ("b", Op::Conv2d(case)), ("", Op::Relu)];
        check(&format!("quads, {what}"), &net([2, 7, 6], 0, &ops), true);
        let pooled = [("a", conv(8)), ("b", Op::Conv2d(case)), ("", Op::Relu), ("", POOL), ("c", conv(8))];
        check(&format!("quads, {what} and pool"), &net([2, 9, 8], 0, &pooled), true);
    }
    // So wide that a sample takes several bands, the last one smaller.
    let wide = [("a", conv(64)), ("b", conv(64)), ("", Op::Relu), ("", POOL)];
    check("quads in bands", &net([1, 20, 36], 0, &wide), true);
}

#[test]
fn poolings_of_every_kind() {
    let overlapping = Window::new([3, 3], [2, 2]);
    let padded = Window { padding: [1, 0, 1, 2], ..overlapping };
    let pools = [overlapping, padded, Window { counted: true, ..padded }, Window::new([9, 8], [1, 1])];
    let pools = pools.into_iter().flat_map(|w| [Op::MaxPool(w), Op::AvgPool(w)]);
    for op in pools.chain([POOL, Op::AvgPool(Window::tiles([2, 2]))]) {
        check(&format!("{op:?}"), &net([1, 9, 8], 0, &[("a", conv(4)), ("", op)]), true);
    }
    let signal = |out| Op::Conv2d(Conv2d::same(out, [1, 5]));
    let pool = Op::MaxPool(Window::tiles([1, 2]));
    check(
        "in time",
        &net([3, 1, 16], 0, &[("a", signal(4)), ("", Op::Relu), ("", pool), ("b", signal(5)), ("", pool)]),
        true,
    );
}

#[test]
fn norms_of_every_kind() {
    let batch = Op::batch_norm(1e-3);
    for norm in [batch, Op::GroupNorm { groups: 2, epsilon: 1e-3 }] {
        for tail in [&[][..], &[("", Op::Relu)], &[("", Op::Relu), ("", POOL)]] {
            for training in [true, false] {
                let mut ops = vec![("a", conv(4)), ("n", norm)];
                ops.extend_from_slice(tail);
                ops.extend([("b", conv(4)), ("m", norm)]);
                ops.extend_from_slice(tail);
                let what = format!("norm {norm:?} then {tail:?}, training {training}");
                check(&what, &net([1, 9, 7], 0, &ops), training);
            }
        }
    }
}

#[test]
fn running_statistics_move_by_the_momentum() {
    for momentum in [0.1, 0.01, 0.0, 1.0] {
        let graph = net([2, 3, 4], 0, &[("n", Op::BatchNorm { epsilon: 1e-5, momentum })]);
        let samples = Samples::random(&graph, CLASSES, 10);
        let place = |name: &str| graph.entries().iter().find(|e| e.name == name).unwrap().range.clone();
        let mut start = normal(&mut stream(3), graph.len(), 0.4);
        start[place("n.running_var")].fill(0.7);
        let trains: Vec<bool> = graph.entries().iter().map(|e| e.role == Role::Trainable).collect();
        let mut training = Training::new(&graph, &start, Setup::new(&trains, true, 10), SGD, Fan::Inline);
        training.step(&samples.batch());
        let after = training.into_params();
        for channel in 0..2 {
            let of_channel = samples.inputs.chunks_exact(24).flat_map(|x| &x[12 * channel..][..12]);
            let values: Vec<f64> = of_channel.map(|x| f64::from(*x)).collect();
            let mean = values.iter().sum::<f64>() / 120.0;
            let unbiased = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 119.0;
            for (name, new) in [("n.running_mean", mean), ("n.running_var", unbiased)] {
                let at = place(name).start + channel;
                let want = (1.0 - momentum) * f64::from(start[at]) + momentum * new;
                assert!((f64::from(after[at]) - want).abs() < 1e-6, "{name}: {} and not {want}", after[at]);
            }
        }
    }
}

#[test]
fn the_rest_of_the_operations() {
    let rest = [("a", conv(4)), ("", Op::Dropout { p: 0.3 }), ("", Op::Relu), ("", Op::Scale(1.7))];
    check("dropout and scale", &net([1, 6, 6], 0, &rest), true);
    check("statistics", &net([1, 6, 6], 5, &[("a", conv(4)), ("", Op::Relu)]), true);
    let mut g = GraphBuilder::new([2, 6, 6], 0);
    let a = g.add("a", conv(4), &[g.input()]).unwrap();
    let b = g.add("b", conv(4), &[a]).unwrap();
    let sum = g.add("sum", Op::Add, &[a, b]).unwrap();
    let norm = g.add("norm", Op::batch_norm(1e-3), &[sum]).unwrap();
    let both = g.add("both", Op::Add, &[norm, sum]).unwrap();
    let twice = g.add("twice", Op::Add, &[both, both]).unwrap();
    check("norm in residuals", &finish(g, twice), true);
    let mut g = GraphBuilder::new([5, 1, 1], 0);
    let linear = g.add("a", Op::Linear { out: 6, bias: false }, &[g.input()]).unwrap();
    let softmax = g.add("softmax", Op::Softmax, &[linear]).unwrap();
    let log = g.add("log", Op::Log, &[softmax]).unwrap();
    let relu = g.add("relu", Op::Relu, &[linear]).unwrap();
    let joined = g.add("joined", Op::Concat, &[log, relu]).unwrap();
    check("softmax and log", &finish(g, joined), true);
}

#[test]
fn curves_of_every_kind() {
    let curves = [
        Curve::Clip { low: -0.5, high: 0.8 },
        Curve::Clip { low: 0.0, high: 6.0 },
        Curve::Clip { low: f32::NEG_INFINITY, high: 0.3 },
        Curve::LeakyRelu { slope: 0.1 },
        Curve::Sigmoid,
        Curve::HardSigmoid { slope: 0.7, offset: 0.4 },
        Curve::HardSwish,
    ];
    for curve in curves {
        let ops = [("a", conv(4)), ("", Op::Curve(curve)), ("b", conv(3)), ("", Op::Curve(curve))];
        check(&format!("{curve:?}"), &net([2, 5, 6], 0, &ops), true);
    }
}

#[test]
fn gates_pads_and_joined_planes() {
    let pads = [("a", conv(4)), ("", Op::Pad([0, 1, 2, 3])), ("b", conv(3)), ("", Op::Pad([1, 0, 0, 0]))];
    check("pads", &net([2, 5, 6], 0, &pads), true);
    for gate_first in [false, true] {
        let mut g = GraphBuilder::new([2, 6, 5], 0);
        let a = g.add("a", conv(4), &[g.input()]).unwrap();
        let mean = g.add("mean", Op::AvgPool(Window::whole(g.dims(a))), &[a]).unwrap();
        let squeeze = g.add("b", Op::Conv2d(Conv2d::same(4, [1, 1])), &[mean]).unwrap();
        let gate = g.add("gate", Op::Curve(Curve::Sigmoid), &[squeeze]).unwrap();
        let inputs = if gate_first { [gate, a] } else { [a, gate] };
        let gated = g.add("gated", Op::Mul, &inputs).unwrap();
        let c = g.add("c", conv(3), &[gated]).unwrap();
        let silu = g.add("sigmoid", Op::Curve(Curve::Sigmoid), &[c]).unwrap();
        let silu = g.add("silu", Op::Mul, &[c, silu]).unwrap();
        let square = g.add("square", Op::Mul, &[silu, silu]).unwrap();
        let joined = g.add("joined", Op::Concat, &[square, a, square]).unwrap();
        let d = g.add("d", conv(4), &[joined]).unwrap();
        check(&format!("gates, {gate_first}"), &finish(g, d), true);
    }
}

#[test]
fn graphs_that_cannot_be_meant_are_refused() {
    let mut g = GraphBuilder::new([4, 1, 1], 0);
    let input = g.input();
    g.add("a", Op::Linear { out: 3, bias: true }, &[input]).unwrap();
    let clash = g.add("b", conv(3), &[input]);
    assert!(matches!(clash, Err(GraphError::Shape { .. })), "{clash:?}");
    let huge = g.add("c", Op::Linear { out: usize::MAX / 2, bias: true }, &[input]);
    assert!(matches!(huge, Err(GraphError::TooLarge { .. })), "{huge:?}");
    let padded = Conv2d { padding: [usize::MAX, 0], ..Conv2d::same(3, [1, 1]) };
    assert!(g.add("d", Op::Conv2d(padded), &[input]).is_err());
    assert!(g.add("e", Op::Add, &[input]).is_err());
    assert!(g.add("f", Op::Relu, &[NodeId(99)]).is_err());
    assert!(g.add("g", Op::MaxPool(Window::new([1, 1], [0, 1])), &[input]).is_err());
}

#[test]
fn what_is_frozen_keeps_its_bits_and_what_is_below_is_evaluated() {
    let (graph, spec) = arch::build(&card("cc32", [3, 8, 8], CLASSES, 0)).unwrap();
    let start = init(&graph, &spec, 1);
    let samples = Samples::random(&graph, CLASSES, 12);
    for from in ["conv3", "fc1", "head"] {
        let first = spec.entries().iter().position(|e| e.name.starts_with(from)).unwrap();
        let trains: Vec<bool> = (0..spec.entries().len()).map(|i| i >= first).collect();
        let mut training =
            Training::new(&graph, start.values(), Setup::new(&trains, true, 12), SGD, Fan::Inline);
        training.step(&samples.batch());
        let end = training.into_params();
        for (i, entry) in spec.entries().iter().enumerate() {
            let same = start.values()[entry.range.clone()] == end[entry.range.clone()];
            // A bias before a norm has no gradient but for rounding.
            let idle = entry.name.starts_with("conv") && entry.name.ends_with("bias");
            assert!(same == (i < first) || idle, "{} when training from {from}", entry.name);
        }
    }
}

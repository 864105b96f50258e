//! From a node, with what is fused into it, to its layer.
use super::survey::Planner;
use crate::nn::graph::{NodeId, Op};
use crate::nn::layer::{self, After, Layer, Slot};

impl Planner<'_> {
    /// The layer that starts at a node.
    pub(super) fn place(&self, id: usize, n: usize) -> Box<dyn Layer> {
        let (node, output) = (self.node(n), self.at(NodeId(self.last[n])));
        let inputs: Vec<Slot> = node.inputs.iter().map(|&i| self.at(i)).collect();
        let input_grads: Vec<bool> = node.inputs.iter().map(|i| self.moved[i.0]).collect();
        let Some(&input) = inputs.first() else {
            return match node.op {
                Op::Conditioning => Box::new(layer::Conditioning { output }),
                _ => Box::new(layer::Input { output }),
            };
        };
        let input_grad = input_grads[0];
        let after = self.after[n];
        let range = |which| self.graph.range(node, which);
        let needed = |which| range(which).expect("the builder has declared it");
        let trains = [self.trains(node, 0), self.trains(node, 1)];
        match node.op {
            Op::Input | Op::Conditioning => unreachable!("sources read nothing"),
            Op::Conv2d(conv) => {
                let params = layer::ConvParams { weight: needed(0), bias: range(1), trains };
                Box::new(layer::Conv::new(id, conv, params, (input, output), after, input_grad))
            }
            Op::Linear { .. } => {
                let (weight, bias) = (needed(0), range(1));
                let relu = after == After::Relu;
                Box::new(layer::Linear { input, output, weight, bias, trains, relu, input_grad })
            }
            Op::BatchNorm { epsilon, momentum } => {
                let params = [needed(0), needed(1), needed(2), needed(3)];
                let of_batch = self.purpose.training && trains != [false; 2];
                Box::new(layer::BatchNorm {
                    id,
                    epsilon,
                    momentum,
                    input,
                    output,
                    after,
                    params,
                    trains,
                    of_batch,
                    input_grad,
                })
            }
            Op::GroupNorm { groups, epsilon } => {
                let params = [needed(0), needed(1)];
                Box::new(layer::GroupNorm { id, groups, epsilon, input, output, params, trains, input_grad })
            }
            Op::Dropout { p } if self.purpose.training && input_grad => {
                Box::new(layer::Dropout { id, p, input, output })
            }
            Op::Dropout { .. } => Box::new(layer::Scale { input, output, factor: 1.0 }),
            Op::Relu => Box::new(layer::Relu { input, output }),
            Op::Curve(curve) => Box::new(layer::Map { curve, input, output }),
            Op::Pad([top, left, ..]) => Box::new(layer::Pad { before: [top, left], input, output }),
            Op::MaxPool(window) => Box::new(layer::MaxPool { id, window, input, output }),
            Op::AvgPool(window) => Box::new(layer::AvgPool { window, input, output }),
            Op::Flatten => Box::new(layer::Flatten { input, output, by_channel: !self.orderless(n) }),
            Op::Add => Box::new(layer::Add {
                inputs: [inputs[0], inputs[1]],
                output,
                input_grads: [input_grad, input_grads[1]],
            }),
            Op::Mul => Box::new(layer::Mul {
                inputs: [inputs[0], inputs[1]],
                output,
                input_grads: [input_grad, input_grads[1]],
            }),
            Op::Concat => Box::new(layer::Concat { inputs, output, input_grads }),
            Op::Softmax => Box::new(layer::Softmax { input, output }),
            Op::Log => Box::new(layer::Log { input, output }),
            Op::Scale(factor) => Box::new(layer::Scale { input, output, factor }),
        }
    }
}

//! Backbones, heads and shares of an ensemble as one graph: `log Σ_k w_k softmax(head_k(stream_k(x)))`.
use super::ExportError;
use crate::metadata::{Metadata, Role};
use crate::network::Network;
use crate::runtime::contract::{FEATURES, LOG_PROBABILITIES};
use models::fed::{Ensemble, Member, Stream};
use models::nn::graph::Node;
use models::nn::{Graph, GraphBuilder, NodeId, Op};

pub(super) fn compose(ensemble: &Ensemble, graph: &Graph, role: Role) -> Result<Network, ExportError> {
    let members: Vec<&Member> = ensemble.members.iter().filter(|m| m.share > 0.0).collect();
    if members.is_empty() || members.iter().any(|m| m.stream >= ensemble.streams.len()) {
        return Err(ExportError::NoMember);
    }
    let mut mixture = Mixture::new(graph);
    let streams = ensemble.streams.iter().enumerate();
    let features = streams.map(|(k, s)| mixture.stream(k, s)).collect::<Result<Vec<_>, _>>()?;
    let answers =
        members.iter().enumerate().map(|(k, m)| mixture.member(k, m, features[m.stream], members.len() > 1));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    let answer = mixture.sum(&answers)?;
    let outputs = match role {
        Role::Specialist => vec![(answer, LOG_PROBABILITIES), (features[0], FEATURES)],
        Role::Generalist => vec![(answer, LOG_PROBABILITIES)],
    };
    Ok(mixture.finish(&outputs, Metadata::of(&ensemble.spec, role)))
}

struct Mixture<'a> {
    graph: &'a Graph,
    builder: GraphBuilder,
    values: Vec<f32>,
}

/// What a node of the original network has become.
#[derive(Clone, Copy)]
enum Placed {
    /// A node of the mixture.
    Node(NodeId),
    /// A node of the mixture with the conditioning vector behind it.
    Conditioned(NodeId),
    /// The conditioning vector alone.
    Conditioning,
}

impl<'a> Mixture<'a> {
    fn new(graph: &'a Graph) -> Self {
        let input = graph.input();
        let builder = GraphBuilder::new([input.channels, input.height, input.width], 0);
        Self { graph, builder, values: Vec::new() }
    }

    /// Copies a backbone; gives its feature.
    fn stream(&mut self, index: usize, stream: &Stream) -> Result<NodeId, ExportError> {
        let feature = self.graph.feature().ok_or(ExportError::NoMember)?;
        expect("the backbone", stream.backbone.spec().backbone_len(), stream.backbone.values().len())?;
        expect("the conditioning vector", self.graph.statistics(), stream.conditioning.len())?;
        let mut placed = Vec::with_capacity(feature.0 + 1);
        for node in &self.graph.nodes()[..=feature.0] {
            placed.push(self.place(&format!("stream{index}/{}", node.name), node, stream, &placed)?);
        }
        match placed[feature.0] {
            Placed::Node(id) => Ok(id),
            Placed::Conditioned(_) | Placed::Conditioning => Err(conditioning(self.graph.node(feature))),
        }
    }

    fn place(
        &mut self,
        name: &str,
        node: &Node,
        stream: &Stream,
        placed: &[Placed],
    ) -> Result<Placed, ExportError> {
        let inputs: Vec<Placed> = node.inputs.iter().map(|id| placed[id.0]).collect();
        match (node.op, inputs.as_slice()) {
            (Op::Input, _) => Ok(Placed::Node(self.builder.input())),
            (Op::Conditioning, _) => Ok(Placed::Conditioning),
            (Op::Dropout { .. }, [unchanged]) => Ok(*unchanged),
            (Op::Concat, &[Placed::Node(id), Placed::Conditioning]) => Ok(Placed::Conditioned(id)),
            (Op::Linear { out, .. }, &[Placed::Conditioned(id)]) => {
                let [weight, bias] =
                    [0, 1].map(|which| self.parameter(node, which, stream.backbone.values()));
                let (weight, bias) = fold(weight?, bias?, out, &stream.conditioning);
                self.values.extend(weight);
                self.values.extend(bias);
                Ok(Placed::Node(self.builder.add(name, Op::Linear { out, bias: true }, &[id])?))
            }
            (op, inputs) => {
                let ids: Option<Vec<NodeId>> = inputs.iter().map(|p| p.node()).collect();
                let ids = ids.ok_or_else(|| conditioning(node))?;
                for which in 0..node.entries.len() {
                    let values = self.parameter(node, which, stream.backbone.values())?;
                    self.values.extend_from_slice(values);
                }
                Ok(Placed::Node(self.builder.add(name, op, &ids)?))
            }
        }
    }

    /// The values of a node's parameter; empty where the node has none of that number.
    fn parameter<'v>(&self, node: &Node, which: usize, values: &'v [f32]) -> Result<&'v [f32], ExportError> {
        let Some(&entry) = node.entries.get(which) else { return Ok(&[]) };
        let range = self.graph.entries()[entry].range.clone();
        let expected = range.end;
        values.get(range).ok_or(ExportError::Mismatch { what: "the backbone", expected, got: values.len() })
    }

    /// A head's share of the answer.
    fn member(
        &mut self,
        index: usize,
        member: &Member,
        feature: NodeId,
        mixed: bool,
    ) -> Result<NodeId, ExportError> {
        let head = self.graph.node(self.graph.head().ok_or(ExportError::NoMember)?);
        let expected = head.entries.iter().map(|&e| self.graph.entries()[e].range.len()).sum();
        expect("a head", expected, member.head.values().len())?;
        self.values.extend_from_slice(member.head.values());
        let logits = self.builder.add(&format!("member{index}/{}", head.name), head.op, &[feature])?;
        let probabilities = self.builder.add(&format!("member{index}/softmax"), Op::Softmax, &[logits])?;
        if !mixed {
            return Ok(probabilities);
        }
        Ok(self.builder.add(&format!("member{index}/share"), Op::Scale(member.share), &[probabilities])?)
    }

    fn sum(&mut self, answers: &[NodeId]) -> Result<NodeId, ExportError> {
        let mut sum = answers[0];
        for (index, &answer) in answers.iter().enumerate().skip(1) {
            sum = self.builder.add(&format!("mixture/add{index}"), Op::Add, &[sum, answer])?;
        }
        Ok(self.builder.add("mixture/log", Op::Log, &[sum])?)
    }

    fn finish(self, outputs: &[(NodeId, &str)], metadata: Metadata) -> Network {
        let ids: Vec<NodeId> = outputs.iter().map(|(id, _)| *id).collect();
        let outputs = outputs.iter().map(|(_, name)| (*name).to_owned()).collect();
        Network { graph: self.builder.finish(&ids), values: self.values, outputs, metadata }
    }
}

impl Placed {
    fn node(self) -> Option<NodeId> {
        match self {
            Self::Node(id) => Some(id),
            Self::Conditioned(_) | Self::Conditioning => None,
        }
    }
}

/// `W [x; s] + b` for a constant s: the columns of x, and `b + W_s s` (summed in `f64`).
///
/// One row `[1, 2, 10]` with bias 5 and s = `[0.5]`: columns `[1, 2]`, bias 10.
fn fold(weight: &[f32], bias: &[f32], out: usize, conditioning: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let width = weight.len() / out.max(1);
    let kept = width.saturating_sub(conditioning.len());
    let rows = || weight.chunks_exact(width.max(1));
    let shifted = |(o, row): (usize, &[f32])| {
        let tail: f64 =
            row[kept..].iter().zip(conditioning).map(|(w, s)| f64::from(*w) * f64::from(*s)).sum();
        (f64::from(bias.get(o).copied().unwrap_or(0.0)) + tail) as f32
    };
    (rows().flat_map(|row| &row[..kept]).copied().collect(), rows().enumerate().map(shifted).collect())
}

fn conditioning(node: &Node) -> ExportError {
    ExportError::Conditioning { node: node.name.clone() }
}

fn expect(what: &'static str, expected: usize, got: usize) -> Result<(), ExportError> {
    if expected == got { Ok(()) } else { Err(ExportError::Mismatch { what, expected, got }) }
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn a_constant_input_becomes_a_bias() {
        let (columns, bias) = fold(&[1.0, 2.0, 10.0, 3.0, 4.0, -2.0], &[5.0, 0.0], 2, &[0.5]);
        assert_eq!(columns, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(bias, [10.0, -1.0]);
        assert_eq!(fold(&[1.0, 2.0], &[], 1, &[3.0]), (vec![1.0], vec![6.0]));
    }
}

//! Where a client's statistics may enter a network that is brought along.
use models::nn::graph::Node;
use models::nn::{Graph, NodeId, Op};

/// Checks that statistics enter where they can be kept from leaving a board: as the last columns of the first fully connected
/// layer, `W [x; s] + b`, and nowhere else. An input that is constant on a board can be divided out of the update of whatever
/// layer it feeds; of that layer the host trains those columns, and boards fold them into its bias
/// ([`models::fed::conditioning::Columns`]). A graph without such an input is fine.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(graph: &Graph) -> Result<(), String> {
    let nodes = graph.nodes();
    let Some(conditioning) = nodes.iter().position(|node| node.op == Op::Conditioning) else { return Ok(()) };
    let joined = sole_reader(graph, NodeId(conditioning))?;
    let Node { op, inputs, dims, name, .. } = graph.node(joined);
    if *op != Op::Concat || !dims.is_flat() || !matches!(inputs[..], [_, last] if last.0 == conditioning) {
        return Err(format!("node {name} reads them"));
    }
    let reader = sole_reader(graph, joined)?;
    let first = nodes.iter().position(|node| matches!(node.op, Op::Linear { .. }));
    let Node { op, name, .. } = graph.node(reader);
    match op {
        Op::Linear { bias: true, .. } if first == Some(reader.0) && graph.head() != Some(reader) => Ok(()),
        _ => Err(format!("node {name} reads them")),
    }
}

/// The one node that reads another.
fn sole_reader(graph: &Graph, id: NodeId) -> Result<NodeId, String> {
    let readers = graph.nodes().iter().enumerate().filter(|(_, node)| node.inputs.contains(&id));
    match readers.map(|(index, _)| NodeId(index)).collect::<Vec<_>>()[..] {
        [reader] if !graph.outputs().contains(&id) => Ok(reader),
        [] => Err("nothing reads them".into()),
        _ => Err(format!("more than one node reads {}", graph.node(id).name)),
    }
}

//! Finding the head in a file's graph, by the names that exporters leave on a layer.
use super::FrozenError;
use super::cut::{Parts, refuse};
use crate::import::node_name;
use crate::proto::{NodeProto, TensorProto, is_standard};

/// Where the head is.
#[derive(Debug)]
pub(super) struct Head {
    /// Its name, without what exporters put around it.
    pub(super) name: String,
    /// The value that it reads.
    pub(super) feature: String,
    /// Numbers that it reads of one sample.
    pub(super) width: usize,
    /// Its place in the file.
    pub(super) place: usize,
}

/// Matrices that are reached through more transpositions than this are no weights.
const MOST_STEPS: usize = 4;
/// Layers that are named where there is none of the name.
const SHOWN: usize = 3;

/// The only layer of this name: `Gemm`, or `MatMul` with a constant matrix on the right.
pub(super) fn find(parts: &Parts<'_>, asked: &str) -> Result<Head, FrozenError> {
    let name = asked.strip_suffix(".weight").unwrap_or(asked);
    let all: Vec<usize> =
        (0..parts.graph.node.len()).filter(|&i| is_layer(parts, &parts.graph.node[i])).collect();
    let is_called =
        |place: &&usize| names(parts, &parts.graph.node[**place]).iter().any(|n| n == name || n == asked);
    let mut found = all.iter().filter(is_called);
    let Some(&place) = found.next() else { return Err(nobody(parts, &all, asked)) };
    let node = &parts.graph.node[place];
    if let Some(&other) = found.next() {
        let [first, second] = [node, &parts.graph.node[other]].map(|node| node_name(node).to_owned());
        return Err(FrozenError::TwoHeads { asked: asked.into(), first, second });
    }
    let width = width(parts, node)
        .ok_or_else(|| refuse(node, "its weight is no constant matrix".into(), "export the network again"))?;
    if width > super::MOST_FEATURES {
        return Err(FrozenError::TooLarge { what: "features", got: width, max: super::MOST_FEATURES });
    }
    Ok(Head { name: name.into(), feature: node.input[0].clone(), width, place })
}

fn nobody(parts: &Parts<'_>, all: &[usize], asked: &str) -> FrozenError {
    let best = |&place: &usize| {
        let node = &parts.graph.node[place];
        names(parts, node).into_iter().next().unwrap_or_else(|| node_name(node).into())
    };
    let last: Vec<String> = all.iter().rev().take(SHOWN).map(best).collect();
    let known = match last.is_empty() {
        true => "there is none: put one (`Linear`, exported as Gemm) at its end".into(),
        false => format!("the last ones are {}", last.join(", ")),
    };
    FrozenError::NoHead { asked: asked.into(), known }
}

fn is_layer(parts: &Parts<'_>, node: &NodeProto) -> bool {
    let linear = matches!(node.op_type.as_str(), "Gemm" | "MatMul") && is_standard(&node.domain);
    linear && node.input.len() > 1 && !node.input[0].is_empty() && matrix(parts, &node.input[1]).is_some()
}

/// Everything that the layer may be called by, best first.
fn names(parts: &Parts<'_>, node: &NodeProto) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    let weight = matrix(parts, &node.input[1]).map(|found| found.0.name.as_str());
    names.extend(weight.and_then(|name| name.strip_suffix(".weight")).map(str::to_owned));
    let sum = node.output.first().and_then(|out| parts.readers(out).find(|next| next.op_type == "Add"));
    let biases = node.input.iter().skip(2).chain(sum.iter().flat_map(|add| &add.input));
    let biases = biases.filter(|name| parts.constant(name).is_some());
    names.extend(biases.filter_map(|name| name.strip_suffix(".bias")).map(str::to_owned));
    for node in std::iter::once(node).chain(sum) {
        names.extend(module(&node.name));
        names.push(node_name(node).to_owned());
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The module that PyTorch's older exporter wrote a node for: `/blocks/blocks.1/up/MatMul` → `blocks.1.up`.
fn module(node: &str) -> Option<String> {
    let (path, _) = node.strip_prefix('/')?.rsplit_once('/')?;
    let mut steps: Vec<&str> = vec![];
    for step in path.split('/') {
        // A list of modules is written once by itself and once with its member.
        let member = |list: &&str| step.strip_prefix(*list).is_some_and(|rest| rest.starts_with('.'));
        if steps.last().is_some_and(member) {
            steps.pop();
        }
        steps.push(step);
    }
    Some(steps.join("."))
}

/// How many numbers of a sample the layer reads.
fn width(parts: &Parts<'_>, node: &NodeProto) -> Option<usize> {
    let (_, extents) = matrix(parts, &node.input[1])?;
    let turned = node.attribute.iter().any(|a| a.name == "transB" && a.i == Some(1));
    usize::try_from(extents[usize::from(turned)]).ok().filter(|&width| width > 0)
}

/// The constant matrix of this name, perhaps transposed on the way, and its extents.
fn matrix<'a>(parts: &Parts<'a>, name: &str) -> Option<(&'a TensorProto, [i64; 2])> {
    let (mut name, mut turned) = (name, false);
    for _ in 0..MOST_STEPS {
        let own = |tensor: &'a TensorProto| match *tensor.dims.as_slice() {
            [rows, columns] if turned => Some((tensor, [columns, rows])),
            [rows, columns] => Some((tensor, [rows, columns])),
            _ => None,
        };
        if let Some(tensor) = parts.constant(name) {
            return own(tensor);
        }
        let node = parts.writer(name)?;
        match node.op_type.as_str() {
            "Constant" => return own(node.attribute.iter().find_map(|a| a.t.as_ref())?),
            "Transpose" => turned = !turned,
            "Identity" => {}
            _ => return None,
        }
        name = node.input.first()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::module;

    #[test]
    fn a_node_is_known_by_the_module_that_it_was_written_for() {
        assert_eq!(module("/head/MatMul").as_deref(), Some("head"));
        assert_eq!(module("/blocks/blocks.1/down/MatMul").as_deref(), Some("blocks.1.down"));
        assert_eq!(module("/classifier/classifier.6/Gemm").as_deref(), Some("classifier.6"));
        assert_eq!(module("/Gather"), None);
        assert_eq!(module("node_linear"), None);
    }
}

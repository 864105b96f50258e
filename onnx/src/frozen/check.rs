//! What may be in a part that is kept as it is: engines get nothing that this program could not read, or that would do
//! something else each time.
use super::cut::{Cut, refuse};
use super::{FrozenError, OPSETS};
use crate::import::MAX_NODES;
use crate::proto::{
    AttributeType, DOUBLE, FLOAT, INT32, INT64, ModelProto, NodeProto, TensorProto, is_standard,
};

/// Most elements of one array.
const MAX_ELEMENTS: usize = 1 << 27;

/// Refuses what an engine must not be given.
pub(super) fn check(model: &ModelProto, cut: &Cut<'_>) -> Result<(), FrozenError> {
    opset(model)?;
    if cut.nodes.is_empty() {
        return Err(FrozenError::Damaged { why: "nothing lies below the head".into() });
    }
    if cut.nodes.len() > MAX_NODES {
        return Err(FrozenError::TooLarge { what: "nodes", got: cut.nodes.len(), max: MAX_NODES });
    }
    cut.nodes.iter().try_for_each(|node| node_is_whole(model, node))?;
    cut.constants.iter().try_for_each(|tensor| constant(tensor))
}

fn opset(model: &ModelProto) -> Result<(), FrozenError> {
    let standard = model.opset_import.iter().find(|set| is_standard(&set.domain));
    match standard.map_or(0, |set| set.version) {
        version if OPSETS.contains(&version) => Ok(()),
        got => Err(FrozenError::Opset { got, first: *OPSETS.start(), last: *OPSETS.end() }),
    }
}

fn node_is_whole(model: &ModelProto, node: &NodeProto) -> Result<(), FrozenError> {
    if !is_standard(&node.domain) && !model.opset_import.iter().any(|set| set.domain == node.domain) {
        let why = format!("the file does not say which version of {:?} it means", node.domain);
        return Err(refuse(node, why, "export the network again"));
    }
    if let Some(random) = node.op_type.strip_prefix("Random").filter(|_| is_standard(&node.domain)) {
        let why = format!("it draws random numbers ({random})");
        return Err(refuse(node, why, "export the network in evaluation mode (`net.eval()`)"));
    }
    for attribute in &node.attribute {
        let kind = attribute.r#type;
        let read =
            |kind: i32| matches!(AttributeType::try_from(kind), Ok(kind) if kind != AttributeType::Graph);
        if !read(kind) {
            let why =
                format!("its attribute {} holds a graph or something else that is not read", attribute.name);
            return Err(refuse(node, why, "export the network without branches and loops"));
        }
        attribute.t.iter().try_for_each(constant)?;
    }
    Ok(())
}

/// An array's values must be there, as many as its extents say.
fn constant(tensor: &TensorProto) -> Result<(), FrozenError> {
    let refuse = |why: String| Err(FrozenError::Constant { name: tensor.name.clone(), why });
    if tensor.data_location != 0 {
        return refuse("its values lie in another file".into());
    }
    let mut extents = tensor.dims.iter().map(|&d| usize::try_from(d).ok());
    let count = extents.try_fold(1_usize, |n, d| n.checked_mul(d?)).filter(|&n| n <= MAX_ELEMENTS);
    let (Some(count), Some(size)) = (count, size_of(tensor.data_type)) else {
        return refuse(format!(
            "extents {:?} of element type {} can't be meant",
            tensor.dims, tensor.data_type
        ));
    };
    let unpacked = match tensor.data_type {
        FLOAT => tensor.float_data.len(),
        INT64 => tensor.int64_data.len(),
        DOUBLE => tensor.double_data.len(),
        _ => tensor.int32_data.len(),
    };
    let got = if tensor.raw_data.is_empty() { unpacked.saturating_mul(size) } else { tensor.raw_data.len() };
    match got == count * size {
        true => Ok(()),
        false => {
            refuse(format!("{got} bytes for extents {:?} of element type {}", tensor.dims, tensor.data_type))
        }
    }
}

/// Bytes of an element, for the types that are read.
fn size_of(data_type: i32) -> Option<usize> {
    match data_type {
        // u8, i8, bool
        2 | 3 | 9 => Some(1),
        // u16, i16, f16, bf16
        4 | 5 | 10 | 16 => Some(2),
        FLOAT | INT32 => Some(4),
        INT64 | DOUBLE => Some(8),
        _ => None,
    }
}

/// A node as it computes when nothing is trained.
pub(super) fn settled(node: &NodeProto) -> NodeProto {
    let mut node = node.clone();
    match node.op_type.as_str() {
        "Dropout" if is_standard(&node.domain) => {
            node.op_type = "Identity".into();
            node.attribute.clear();
            node.input.truncate(1);
            node.output.truncate(1);
        }
        "BatchNormalization" if is_standard(&node.domain) => {
            node.attribute.retain(|attribute| attribute.name != "training_mode");
            node.output.truncate(1);
        }
        _ => {}
    }
    node
}

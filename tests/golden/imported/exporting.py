"""Files as PyTorch's exporters write them, without what they note of the machine."""
import torch


def export(net, shape, exporter, opset, path, names=("input", "logits"), training=False):
    """Writes a network of one input and one answer, for any number of samples."""
    net.train(training)
    x, called = torch.randn(2, *shape), {"input_names": [names[0]], "output_names": [names[1]]}
    if exporter == "script":
        mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
        axes = {name: {0: "N"} for name in names}
        torch.onnx.export(net, (x,), path, dynamo=False, opset_version=opset, training=mode, do_constant_folding=not training, dynamic_axes=axes, **called)
    else:
        torch.onnx.export(net, (x,), path, dynamo=True, opset_version=opset, dynamic_shapes=({0: torch.export.Dim("N")},),
                          external_data=False, optimize=exporter == "dynamo", verbose=False, **called)


def plain(model):
    """Without the exporter's notes: they name folders of the machine."""
    del model.graph.value_info[:]
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    model.ClearField("doc_string")
    return model

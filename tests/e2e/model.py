"""wattle model: parameters and multiply-adds from an ONNX file only, compared with explicit formulas."""
import io
import json
import math
import os
import random
import warnings

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import onnx
import torch
import torchvision
from onnx import TensorProto, helper, numpy_helper

from harness import main, test

warnings.filterwarnings("ignore")
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def figures(workdir, *arguments):
    done = workdir.wattle("model", *arguments, "--format", "json")
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)


def refused(workdir, *arguments, status=1):
    done = workdir.wattle("model", *arguments)
    assert done.returncode == status and done.stdout == "", (arguments, done)
    assert done.stderr.startswith("wattle") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def exported(workdir, module, inputs, name="m.onnx", opset=13, **options):
    """The figures of a module's export; weights are random, so that no two tensors are equal and merged."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        torch.nn.init.uniform_(parameter, -0.1, 0.1)
    module.eval()
    path = workdir.folder / name
    extra = options.pop("arguments", ())
    torch.onnx.export(module, inputs, str(path), opset_version=opset, **options)
    return figures(workdir, path, *extra)


def n_parameters(module):
    return sum(p.numel() for p in module.parameters())


def value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name, *shape, kind=np.float32):
    return numpy_helper.from_array(np.zeros(shape, kind), name)


def ints(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def saved(workdir, nodes, inputs, outputs=("y",), initializers=(), opset=13, name="g.onnx", functions=(), imports=(),
          **more):
    graph = helper.make_graph(list(nodes), "g", list(inputs), [value(o, None) for o in outputs], list(initializers),
                              **more)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in imports)]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    path = workdir.folder / name
    path.write_bytes(model.SerializeToString())
    return path


def layer(found, kind):
    """The only layer of that type."""
    rows = [row for row in found["layers"] if row["type"] == kind]
    assert len(rows) == 1, (kind, [row["type"] for row in found["layers"]])
    return rows[0]


# ---- models of torchvision, exported without their weights: a few KB each ----

@test
def resnets(workdir):
    """ResNet-18 and -50 as their modules: parameters and multiply-adds as published; batch norm not merged"""
    training = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    for make, parameters, products in ((torchvision.models.resnet18, 11_689_512, 1_814_073_344),
                                       (torchvision.models.resnet50, 25_557_032, 4_089_184_256)):
        found = exported(workdir, make(), torch.zeros(1, 3, 224, 224), export_params=False, **training)
        assert (found["parameters"], found["multiply_adds"]) == (parameters, products), found["parameters"]
        assert sum(row["parameters"] for row in found["layers"]) == parameters
        assert sum(row["multiply_adds"] for row in found["layers"]) == products


@test
def batch_norm_merged(workdir):
    """exported for inference: a batch norm is merged into its convolution: its scale disappears, its shift is the
    bias"""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    found = exported(workdir, net, torch.zeros(2, 3, 10, 12))
    assert found["parameters"] == 8 * 3 * 9 + 8
    assert found["multiply_adds"] == 2 * 8 * 10 * (8 * 3 * 9)


@test
def with_and_without_weights(workdir):
    """one model with and without its weights: same figures, opsets 9 to 16"""
    net = torchvision.models.mobilenet_v3_small(num_classes=10)
    for opset in (9, 16):
        options = {"opset": opset, "do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE}
        full = exported(workdir, net, torch.zeros(1, 3, 64, 64), **options)
        bare = exported(workdir, net, torch.zeros(1, 3, 64, 64), export_params=False, **options)
        assert full["parameters"] == bare["parameters"], (opset, full["parameters"], bare["parameters"])
        assert full["multiply_adds"] == bare["multiply_adds"]
        assert [i["name"] for i in bare["inputs"]] == [i["name"] for i in full["inputs"]], bare["inputs"]


# ---- one layer, one formula ----

@test
def convolutions(workdir):
    """plain, grouped, dilated, strided, 1-d, 3-d: batch x output positions x out x in / groups x kernel"""
    rows = [
        (torch.nn.Conv2d(6, 8, 3, padding=1), (2, 6, 9, 11), 2 * 9 * 11 * 8 * 6 * 9),
        (torch.nn.Conv2d(6, 9, (3, 5), groups=3), (1, 6, 9, 11), 7 * 7 * 9 * 2 * 15),
        (torch.nn.Conv2d(4, 4, 3, dilation=2, stride=2), (1, 4, 15, 15), 6 * 6 * 4 * 4 * 9),
        (torch.nn.Conv2d(8, 8, 7, groups=8, padding=3), (1, 8, 5, 5), 25 * 8 * 49),
        (torch.nn.Conv1d(3, 5, 4), (2, 3, 20), 2 * 17 * 5 * 3 * 4),
        (torch.nn.Conv3d(2, 3, 2), (1, 2, 4, 5, 6), 3 * 4 * 5 * 3 * 2 * 8),
    ]
    for module, shape, products in rows:
        found = layer(exported(workdir, module, torch.zeros(shape)), "Conv")
        assert found["multiply_adds"] == products, (module, found)
        assert found["parameters"] == n_parameters(module), (module, found)
        assert found["output_shape"] == list(module(torch.zeros(shape)).shape), (module, found)


@test
def transposed_convolutions(workdir):
    """transposed convolutions: batch x output positions x in x out / groups x kernel"""
    rows = [
        (torch.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), (1, 4, 5, 7), 10 * 14 * 4 * 6 * 9),
        (torch.nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2), (2, 6, 3, 3), 2 * 36 * 6 * 2 * 4),
        (torch.nn.ConvTranspose1d(3, 5, 4, dilation=3), (1, 3, 10), 19 * 3 * 5 * 4),
    ]
    for module, shape, products in rows:
        found = layer(exported(workdir, module, torch.zeros(shape)), "ConvTranspose")
        assert found["multiply_adds"] == products, (module, found)
        assert found["output_shape"] == list(module(torch.zeros(shape)).shape), (module, found)


@test
def same_padding(workdir):
    """auto_pad: SAME keeps ceil(size / stride), VALID adds no padding"""
    for padding, size in (("SAME_UPPER", 4), ("SAME_LOWER", 4), ("VALID", 3)):
        node = helper.make_node("Conv", ["x", "w"], ["y"], auto_pad=padding, strides=[2, 2])
        found = figures(workdir, saved(workdir, [node], [value("x", [1, 2, 8, 8])],
                                       initializers=[weight("w", 4, 2, 3, 3)]))
        assert found["multiply_adds"] == size * size * 4 * 2 * 9, (padding, found)


@test
def linear_layers(workdir):
    """Gemm and MatMul with a weight: positions x in x out, biases are parameters without multiply-adds"""
    for shape in ((5, 12), (2, 7, 12), (2, 3, 4, 12)):
        found = exported(workdir, torch.nn.Linear(12, 20), torch.zeros(shape))
        assert found["multiply_adds"] == math.prod(shape[:-1]) * 12 * 20, (shape, found)
        assert found["parameters"] == 12 * 20 + 20


@test
def recurrent_layers(workdir):
    """LSTM 4, GRU 3, RNN 1: gates x hidden x (in + hidden) for each step, sequence and direction"""
    for kind, gates in ((torch.nn.LSTM, 4), (torch.nn.GRU, 3), (torch.nn.RNN, 1)):
        for both in (1, 2):
            module = kind(10, 16, num_layers=2, bidirectional=both == 2)
            found = exported(workdir, module, torch.zeros(7, 3, 10))
            per_step = gates * 16 * (10 + 16) + gates * 16 * (16 * both + 16)
            assert found["multiply_adds"] == 7 * 3 * both * per_step, (module, found["multiply_adds"])
            assert found["parameters"] == n_parameters(module), (module, found["parameters"])


@test
def transformer_encoder(workdir):
    """transformer weights: 4 x width^2 + 2 x width x feed-forward for each token; attention's own products are listed
    separately"""
    width, tokens, batch = 32, 11, 2
    module = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(width, 4, 64), 2)
    for opset in (12, 14):
        # In training mode 1.13 uses plain operators; its fused inference has no ONNX equivalent.
        found = exported(workdir, module, torch.zeros(tokens, batch, width), opset=opset,
                         training=torch.onnx.TrainingMode.TRAINING)
        assert found["multiply_adds"] == 2 * tokens * batch * (4 * width * width + 2 * width * 64), found
        assert found["other_multiply_adds"] == 2 * 2 * batch * tokens * tokens * width, found
        assert found["parameters"] == n_parameters(module)


@test
def embeddings(workdir):
    """embedding: a lookup with parameters and no multiply-adds; --dim sets the open sequence length"""
    net = torch.nn.Sequential(torch.nn.Embedding(100, 24), torch.nn.Linear(24, 5))
    options = {"input_names": ["ids"], "dynamic_axes": {"ids": {0: "batch", 1: "sequence"}}}
    ids = torch.zeros((1, 9), dtype=torch.long)
    found = exported(workdir, net, ids, **options)
    assert found["parameters"] == 100 * 24 + 24 * 5 + 5
    assert found["multiply_adds"] is None and found["open_dimensions"] == ["sequence"], found
    found = exported(workdir, net, ids, arguments=["--dim", "sequence=13", "--batch", "4"], **options)
    assert found["multiply_adds"] == 4 * 13 * 24 * 5 and found["batch"] == 4, found
    assert "sequenz" in refused(workdir, "m.onnx", "--dim", "sequenz=3")


@test
def batches(workdir):
    """--batch: sets an open batch size, 1 by default; replaces one that is written into the file"""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 7))
    products = 36 * 4 * 27 + 4 * 36 * 7
    for axes in (None, {"x": {0: "batch_size"}}, {"x": [0]}):
        exported(workdir, net, torch.zeros(1, 3, 8, 8), input_names=["x"], dynamic_axes=axes)
        for batch in (1, 5):
            found = figures(workdir, "m.onnx", *(["--batch", batch] if batch > 1 else []))
            assert (found["batch"], found["multiply_adds"]) == (batch, batch * products), (axes, found["multiply_adds"])


@test
def shapes_that_are_computed(workdir):
    """Shape, Gather, Concat, Reshape … are evaluated: no shape of a Swin transformer, one of the hardest, stays unknown"""
    # Two stages of two blocks, with plain and with shifted windows, and the merge between them: all operators of swin_t.
    swin = torchvision.models.SwinTransformer(patch_size=[4, 4], embed_dim=96, depths=[2, 2], num_heads=[3, 6], window_size=[7, 7])
    found = exported(workdir, swin, torch.zeros(1, 3, 224, 224), export_params=False)
    assert all(row["output_shape"] is not None and None not in row["output_shape"] for row in found["layers"])
    stages = [(56 * 56, 96), (28 * 28, 192)]  # tokens, channels
    weighted = sum(2 * 12 * tokens * channels ** 2 for tokens, channels in stages)  # queries, keys, values, projection; MLP
    weighted += 56 * 56 * 96 * 3 * 4 * 4 + 28 * 28 * (4 * 96) * 192 + 192 * 1000  # patches, merge, classes
    assert found["multiply_adds"] == weighted, found["multiply_adds"]
    attention = sum(2 * 2 * tokens * 7 * 7 * channels for tokens, channels in stages)
    assert found["other_multiply_adds"] == attention, found["other_multiply_adds"]


# ---- definition of parameters ----

@test
def not_parameters(workdir):
    """no parameters: running statistics, scales, bounds, shapes and single constants; a shared tensor counts once"""
    nodes = [
        helper.make_node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["n"]),
        helper.make_node("MatMul", ["n", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.float32(2))),
        helper.make_node("Mul", ["b", "two"], ["c"]),
        helper.make_node("Reshape", ["c", "shape"], ["y"]),
    ]
    stored = [*(weight(n, 6) for n in ("scale", "shift", "mean", "var")), weight("w", 5, 5), ints("shape", -1, 5)]
    found = figures(workdir, saved(workdir, nodes, [value("x", [2, 6, 5])], initializers=stored))
    assert found["parameters"] == 6 + 6 + 25, found
    assert found["multiply_adds"] == 2 * (2 * 6 * 5 * 5), found


@test
def quantised(workdir):
    """weights of 8 bits are parameters, their scales and zero points are not"""
    stored = [weight("w", 8, 3, 3, 3, kind=np.int8), weight("b", 8, kind=np.int32)]
    stored += [numpy_helper.from_array(np.float32(1), n) for n in ("xs", "ws", "ys")]
    stored += [numpy_helper.from_array(np.uint8(0), n) for n in ("xz", "yz")] + [weight("wz", kind=np.int8)]
    node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"])
    found = figures(workdir, saved(workdir, [node], [value("x", [1, 3, 8, 8], TensorProto.UINT8)], initializers=stored))
    assert (found["parameters"], found["multiply_adds"]) == (8 * 27 + 8, 36 * 8 * 27), found
    assert found["parameter_bytes"] == 8 * 27 + 8 * 4, found


# ---- unknown values ----

@test
def unknown_operators(workdir):
    """unknown operator: named; it and its results are null, the rest is a lower bound"""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Mystery", ["a"], ["b"], domain="com.example"),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    path = saved(workdir, nodes, [value("x", [3, 4])], initializers=[weight("w", 4, 4)], imports=["com.example"])
    found = figures(workdir, path)
    assert found["multiply_adds"] is None and found["known_multiply_adds"] == 3 * 16, found
    assert found["unknown_operators"] == [{"type": "com.example::Mystery", "count": 1}]
    assert [row["multiply_adds"] for row in found["layers"]] == [48, None, None]
    text = workdir.wattle("model", path)
    assert "at least 48" in text.stdout and "com.example::Mystery" in text.stdout, text.stdout


@test
def loops(workdir):
    """loop with a known number of iterations: counted that often, else unknown; branches likewise"""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["s", "w"], ["t"]), helper.make_node("Identity", ["c"], ["d"])], "body",
        [value("i", [], INT64), value("c", [], TensorProto.BOOL), value("s", [2, 4])],
        [value("d", [], TensorProto.BOOL), value("t", [2, 4])])
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    number = numpy_helper.from_array(np.array(6, np.int64), "n")
    path = saved(workdir, [node], [value("x", [2, 4])], initializers=[weight("w", 4, 4), number])
    assert figures(workdir, path)["multiply_adds"] == 6 * 2 * 16
    path = saved(workdir, [node], [value("x", [2, 4]), value("n", [], INT64)], initializers=[weight("w", 4, 4)])
    found = figures(workdir, path)
    assert found["multiply_adds"] is None and found["parameters"] == 16, found


@test
def scans(workdir):
    """results of a Scan's iterations: stacked along an existing axis"""
    body = helper.make_graph(
        [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("MatMul", ["r", "w"], ["o"])], "body",
        [value("s", [1]), value("r", [4])], [value("t", [1]), value("o", [3])])
    inputs, weights = [value("s0", [1]), value("x", [6, 4])], [weight("w", 4, 3)]

    def scan(axis):
        node = helper.make_node("Scan", ["s0", "x"], ["s1", "y"], body=body, num_scan_inputs=1, scan_output_axes=[axis])
        return saved(workdir, [node, helper.make_node("Relu", ["y"], ["z"])], inputs, initializers=weights)

    for axis, shape in (0, [6, 3]), (-1, [3, 6]):
        found = figures(workdir, scan(axis))
        assert found["multiply_adds"] == 6 * 12 and found["layers"][-1]["output_shape"] == shape, found
    assert "axis -100" in refused(workdir, scan(-100))


@test
def functions(workdir):
    """the file's own functions: evaluated with the shapes and attributes of each call"""
    if not hasattr(helper, "make_function"):
        return
    inner = helper.make_node("Gemm", ["a", "b"], ["c"])
    inner.attribute.append(onnx.AttributeProto(name="transB", ref_attr_name="turned",
                                               type=onnx.AttributeProto.INT))
    function = helper.make_function("local", "Linear", ["a", "b"], ["c"], [inner], [helper.make_opsetid("", 13)],
                                    ["turned"])
    nodes = [helper.make_node("Linear", ["x", "w"], ["h"], domain="local", turned=1),
             helper.make_node("Linear", ["h", "v"], ["y"], domain="local", turned=0)]
    path = saved(workdir, nodes, [value("x", [5, 4])], initializers=[weight("w", 6, 4), weight("v", 6, 3)],
                 functions=[function], imports=["local"])
    found = figures(workdir, path)
    assert found["multiply_adds"] == 5 * 24 + 5 * 18 and found["parameters"] == 24 + 18, found
    assert found["layers"][0]["name"] == "h/c", found["layers"]


# ---- large and invalid files ----

@test
def gigabytes(workdir):
    """file of 3 GB (sparse) and tensors in other files: not read, except some pages of the graph"""
    sizes = {"w0": (1 << 14, 24576), "w1": (24576, 1 << 14), "e": (1 << 14, 1 << 20)}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("MatMul", ["a", "w1"], ["b"]),
         helper.make_node("MatMul", ["b", "e"], ["y"])], "g", [value("x", [1, 1 << 14])], [value("y", None)])
    outside = onnx.TensorProto(name="e", dims=sizes["e"], data_type=FLOAT, data_location=onnx.TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="not-there.bin")
    graph.initializer.append(outside)
    path = workdir.folder / "big.onnx"
    raw = {name: 4 * math.prod(sizes[name]) for name in ("w0", "w1")}
    with open(path, "wb") as file:
        head = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString()
        file.write(head)
        for name, size in raw.items():  # graph (7) > initializer (5) > raw_data (9), which is a hole
            tensor = onnx.TensorProto(name=name, dims=sizes[name], data_type=FLOAT).SerializeToString()
            tensor += b"\x4a" + varint(size)
            initializer = b"\x2a" + varint(len(tensor) + size) + tensor
            file.write(b"\x3a" + varint(len(initializer) + size) + initializer)
            file.seek(size, io.SEEK_CUR)
        file.truncate()
    found = figures(workdir, path)
    assert found["parameters"] == sum(math.prod(s) for s in sizes.values()), found["parameters"]
    assert found["multiply_adds"] == found["parameters"]
    assert found["read_bytes"] < 200_000, found["read_bytes"]
    assert os.stat(path).st_size > 3e9


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes([*out, number])


@test
def damaged_files(workdir):
    """truncated, bytes changed, or not a model: one line, status 1, no crash"""
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2))
    exported(workdir, net, torch.zeros(1, 2, 4, 4))
    whole = (workdir.folder / "m.onnx").read_bytes()
    chance = random.Random(5)
    path = workdir.folder / "bad.onnx"
    for cut in (0, 1, 2, len(whole) // 2, len(whole) - 1, *(chance.randrange(len(whole)) for _ in range(8))):
        path.write_bytes(whole[:cut])
        assert "bad.onnx" in refused(workdir, path)
    for noise in (b"hello\n", b"\x00" * 100, b"PK\x03\x04", bytes(chance.randrange(256) for _ in range(3000))):
        path.write_bytes(noise)
        assert "bad.onnx" in refused(workdir, path)
    for _ in range(10):  # thousands of them: tests/unit/model/fuzz.c
        changed = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            changed[chance.randrange(len(whole))] = chance.randrange(256)
        path.write_bytes(changed)
        done = workdir.wattle("model", path)
        assert done.returncode in (0, 1) and done.stderr.count("\n") <= 1, done
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr


@test
def graphs_that_cannot_be(workdir):
    """circular graph, repeated name, sizes beyond 64 bits, recursive function: named, status 1"""
    relu = helper.make_node
    x, w = value("x", [2, 4]), weight("w", 4, 4)
    assert "cycle" in refused(workdir, saved(workdir, [relu("Add", ["x", "b"], ["a"]), relu("Relu", ["a"], ["b"])],
                                             [x]))
    assert "'a'" in refused(workdir, saved(workdir, [relu("Relu", ["x"], ["a"]), relu("Abs", ["x"], ["a"])], [x]))
    assert "don't match" in refused(workdir, saved(workdir, [relu("MatMul", ["x", "w"], ["y"])], [value("x", [2, 5])],
                                                      initializers=[w]))
    huge = [value("x", [1 << 40, 1 << 40, 4])]
    assert "64 bits" in refused(workdir, saved(workdir, [relu("MatMul", ["x", "w"], ["y"])], huge, initializers=[w]))
    wide = onnx.TensorProto(name="w", dims=[1 << 40, 1 << 40], data_type=FLOAT)
    assert "64 bits" in refused(workdir, saved(workdir, [relu("MatMul", ["x", "w"], ["y"])], [x], initializers=[wide]))
    wide.dims[0] = -3
    assert "-3" in refused(workdir, saved(workdir, [relu("MatMul", ["x", "w"], ["y"])], [x], initializers=[wide]))
    if hasattr(helper, "make_function"):
        again = helper.make_function("f", "F", ["a"], ["b"], [relu("F", ["a"], ["b"], domain="f")],
                                     [helper.make_opsetid("", 13)])
        path = saved(workdir, [relu("F", ["x"], ["y"], domain="f")], [x], functions=[again], imports=["f"])
        assert "deeper" in refused(workdir, path)


@test
def graphs_that_grow(workdir):
    """small file with many operator sets or unknown operators: no quadratic time"""
    node, x = helper.make_node, value("x", [2, 4])
    sets = [f"set{i}" for i in range(1001)]
    assert "operator sets" in refused(workdir, saved(workdir, [node("Relu", ["x"], ["y"])], [x], imports=sets))
    strangers = [node(f"Foo{i:05}", ["x"], [f"y{i}"]) for i in range(5000)]
    assert len(figures(workdir, saved(workdir, strangers, [x]))["unknown_operators"]) == 5000


@test
def long_names(workdir):
    """text: at most 80 columns for any names: both ends of a long one are shown"""
    name, kind = "/encoder/" + "layers.11/" * 12 + "MatMul", "Fused" + "MatMul" * 8
    nodes = [helper.make_node("MatMul", ["x" * 90, "w"], ["a"], name=name),
             helper.make_node(kind, ["a"], ["y"], name=name + "2", domain="com.example")]
    path = saved(workdir, nodes, [value("x" * 90, [2, 4])], initializers=[weight("w", 4, 4)], imports=["com.example"])
    done = workdir.wattle("model", "g.onnx")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80, done.stdout
    assert any("/enc" in line and "MatMul2" in line and "com" in line for line in lines), done.stdout


@test
def wrong_use(workdir):
    """no file, two files, a folder, an invalid batch: 2 for usage, 1 for the file"""
    refused(workdir, status=2)
    refused(workdir, "a.onnx", "b.onnx", status=2)
    assert "--batch" in refused(workdir, "a.onnx", "--batch", "0", status=2)
    assert "--dim" in refused(workdir, "a.onnx", "--dim", "n", status=2)
    assert "a.onnx" in refused(workdir, "a.onnx")
    assert "regular" in refused(workdir, workdir.folder)
    path = saved(workdir, [helper.make_node("Relu", ["x"], ["y"])], [value("x", [1])])
    assert "--output" in refused(workdir, path, "-o", path)
    done = workdir.wattle("model", path, "-o", "out.json", "--format", "json")
    assert done.returncode == 0 and json.loads((workdir.folder / "out.json").read_text())["parameters"] == 0, done


if __name__ == "__main__":
    main()

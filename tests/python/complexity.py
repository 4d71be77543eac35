"""wattle.torch.complexity: parameters and multiply-adds of architectures, compared with explicit formulas.

A row of ROWS is an architecture: title, constructor, input, and its multiply-adds (weights at every
output position, without biases) as a formula in the constructor's numbers. Parameters are compared with the sum
over model.parameters() for each of them.
"""
import json
import threading

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, prune
from torch.nn.utils import rnn as packing

from harness import main, near, test
from wattle.torch.complexity import complexity


class Made(nn.Module):
    """A module of no known class: parameters and a function of (module, input)."""

    def __init__(self, function, **tensors):
        super().__init__()
        self.function = function
        for name, value in tensors.items():
            if isinstance(value, nn.Module):
                self.add_module(name, value)
            elif value[0] == "buffer":
                self.register_buffer(name, torch.rand(*value[1:]))
            else:
                self.register_parameter(name, nn.Parameter(torch.rand(*value)))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def encoder(**options):
    layer = nn.TransformerEncoderLayer(16, 4, 64, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 3).eval()


def tied():
    model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50, bias=False))
    model[1].weight = model[0].weight
    return model


def frozen(model):
    return model.requires_grad_(False)


def lstm_projected():
    return nn.LSTM(6, 8, 2, bidirectional=True, proj_size=5)


def learned_queries(module, x):
    """4 learned queries attend to the input, as in a perceiver or in pooling by attention."""
    queries = module.queries.expand(x.shape[0], -1, -1)
    return module.attention(queries, x, x)[0]


def rotary(module, x):
    """Angles from a buffer and positions, without weights; then a projection."""
    angles = module.frequencies[:, None] @ torch.arange(x.shape[-2], dtype=torch.float)[None]
    return F.linear(x * angles.t().cos(), module.weight)


LONG = {"dtypes": torch.long}
ROWS = [
    # title, model, input, multiply-adds, options
    ("a linear layer", lambda: nn.Linear(7, 5), (3, 7), 3 * 7 * 5, {}),
    ("a linear layer at every position of an N-d input", lambda: nn.Linear(7, 5), (2, 3, 4, 7), 2 * 3 * 4 * 7 * 5, {}),
    ("a linear layer on a vector", lambda: nn.Linear(7, 5), (7,), 7 * 5, {}),
    ("both inputs of a bilinear layer meet every weight", lambda: nn.Bilinear(3, 4, 5), [(6, 3), (6, 4)],
     6 * 5 * 3 * 4, {}),
    ("convolution: products with padding count as well", lambda: nn.Conv2d(3, 8, 3, padding=1), (2, 3, 10, 12),
     2 * (10 * 12) * 8 * 3 * 3 * 3, {}),
    ("stride and dilation shrink the output: (20 - 2 (3 - 1) - 1) / 2 + 1 = 8", lambda:
     nn.Conv2d(4, 6, 3, stride=2, dilation=2), (1, 4, 20, 20), (8 * 8) * 6 * 4 * 9, {}),
    ("groups: each output sees in / groups channels", lambda: nn.Conv2d(8, 12, 3, groups=4), (1, 8, 9, 9),
     (7 * 7) * 12 * (8 // 4) * 9, {}),
    ("depthwise", lambda: nn.Conv2d(8, 8, 5, groups=8, padding=2, bias=False), (1, 8, 9, 9), (9 * 9) * 8 * 25, {}),
    ("one dimension", lambda: nn.Conv1d(3, 4, 5), (2, 3, 20), 2 * 16 * 4 * 3 * 5, {}),
    ("one dimension without a batch", lambda: nn.Conv1d(3, 4, 5), (3, 20), 16 * 4 * 3 * 5, {}),
    ("three dimensions", lambda: nn.Conv3d(2, 3, (1, 2, 3)), (1, 2, 4, 5, 6), (4 * 4 * 4) * 3 * 2 * (1 * 2 * 3), {}),
    ("padding that mirrors the input", lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), (1, 2, 6, 6),
     36 * 3 * 2 * 9, {}),
    ("transposed: every weight at each of (5 - 1) 2 + 3 = 11 x 11 outputs", lambda:
     nn.ConvTranspose2d(4, 6, 3, stride=2), (2, 4, 5, 5), 2 * (11 * 11) * 4 * 6 * 9, {}),
    ("transposed in groups, padded: (5 - 1) 2 + 4 - 2 + 1 = 11", lambda:
     nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1, output_padding=1, groups=2), (1, 4, 5, 5),
     (11 * 11) * 4 * (6 // 2) * 16, {}),
    ("transposed, one dimension", lambda: nn.ConvTranspose1d(3, 2, 5, stride=3), (1, 3, 7), 23 * 3 * 2 * 5, {}),
    ("transposed, three dimensions", lambda: nn.ConvTranspose3d(2, 3, 2, stride=2), (1, 2, 2, 3, 4),
     (4 * 6 * 8) * 2 * 3 * 8, {}),
    ("embedding: a lookup, no products", lambda: nn.Embedding(100, 16), (4, 7), 0, LONG),
    ("bag of embeddings: sums, no products", lambda: nn.EmbeddingBag(100, 16, mode="sum", max_norm=1.0), (4, 7), 0,
     LONG),
    ("norms: scale, without sums of products", lambda: nn.Sequential(nn.BatchNorm2d(4), nn.GroupNorm(2, 4),
                                                                     nn.PReLU(4)),
     (2, 4, 5, 5), 0, {}),
    ("an RNN: input and hidden weights at each step", lambda: nn.RNN(6, 8), (5, 2, 6), 5 * 2 * 8 * (6 + 8), {}),
    ("a GRU of two layers: three gates", lambda: nn.GRU(6, 8, 2, batch_first=True), (2, 5, 6),
     2 * 5 * 3 * 8 * ((6 + 8) + (8 + 8)), {}),
    ("an LSTM of two layers in two directions: four gates", lambda: nn.LSTM(6, 8, 2, bidirectional=True), (5, 2, 6),
     5 * 2 * 2 * 4 * 8 * ((6 + 8) + (2 * 8 + 8)), {}),
    ("an LSTM that projects 8 to 5", lstm_projected, (5, 2, 6),
     5 * 2 * 2 * ((4 * 8 * (6 + 5) + 8 * 5) + (4 * 8 * (2 * 5 + 5) + 8 * 5)), {}),
    ("cells called in a loop", lambda: Made(lambda m, x: [m.cell(step) for step in x], cell=nn.GRUCell(6, 8)),
     (5, 2, 6), 5 * 2 * 3 * 8 * (6 + 8), {}),
    ("a transformer encoder: q, k, v and out, two linear layers, three times", encoder, (2, 10, 16),
     3 * 2 * 10 * (4 * 16 * 16 + 2 * 16 * 64), {}),
    ("a transformer encoder with the norm first", lambda: encoder(norm_first=True), (2, 10, 16),
     3 * 2 * 10 * (4 * 16 * 16 + 2 * 16 * 64), {}),
    ("a frozen transformer encoder, which lets PyTorch fuse it", lambda: frozen(encoder()), (2, 10, 16),
     3 * 2 * 10 * (4 * 16 * 16 + 2 * 16 * 64), {}),
    ("a transformer: the decoder attends twice; memory gives 6 keys and values", lambda:
     nn.Transformer(16, 4, 1, 1, 64, batch_first=True), [(2, 6, 16), (2, 5, 16)],
     2 * (6 * (4 * 256 + 2 * 16 * 64) + 5 * (4 * 256 + 2 * 256 + 2 * 16 * 64) + 6 * 2 * 256), {}),
    ("attention with keys of other widths", lambda: nn.MultiheadAttention(16, 4, kdim=6, vdim=7),
     [(5, 2, 16), (9, 2, 6), (9, 2, 7)], 2 * (5 * 2 * 16 * 16 + 9 * 16 * (6 + 7)), {}),
    ("learned queries: their products with keys are attention, not weights", lambda:
     Made(learned_queries, queries=(1, 4, 16), attention=nn.MultiheadAttention(16, 4, batch_first=True)), (2, 9, 16),
     2 * 16 * 16 * (4 + 9 + 9 + 4), {}),
    ("positions from a buffer are no products of weights", lambda:
     Made(rotary, frequencies=("buffer", 6), weight=(4, 6)), (2, 5, 6), 2 * 5 * 6 * 4, {}),
    ("a weight without a layer: F.linear", lambda: Made(lambda m, x: F.linear(x, m.w), w=(5, 7)), (3, 7),
     3 * 7 * 5, {}),
    ("a weight without a layer: matmul from the left", lambda: Made(lambda m, x: m.w @ x, w=(5, 7)), (2, 7, 4),
     2 * 5 * 7 * 4, {}),
    ("… einsum", lambda: Made(lambda m, x: torch.einsum("bihw,ior->bohw", x, m.w), w=(3, 5, 2)), (2, 3, 4, 4),
     2 * 16 * 3 * 5, {}),
    ("… F.conv2d", lambda: Made(lambda m, x: F.conv2d(x, m.w, padding="same"), w=(4, 3, 3, 3)), (1, 3, 8, 8),
     64 * 4 * 3 * 9, {}),
    ("a weight without a layer: one expert for each of 4 groups",
     lambda: Made(lambda m, x: torch.bmm(x, m.w), w=(4, 7, 5)), (4, 6, 7),
     4 * 6 * 7 * 5, {}),
    ("a weight without a layer: a vector of scores", lambda: Made(lambda m, x: x @ m.w, w=(7,)), (2, 3, 7), 2 * 3 * 7,
     {}),
    ("a weight without a layer, low rank: merging 5 x 2 with 2 x 7 is work with weights too", lambda:
     Made(lambda m, x: F.linear(x, m.w + m.b @ m.a), w=(5, 7), b=(5, 2), a=(2, 7)), (3, 7), 3 * 7 * 5 + 5 * 2 * 7, {}),
    ("a weight without a layer: a part of it", lambda: Made(lambda m, x: x @ m.w[:, :2], w=(7, 5)), (3, 7), 3 * 7 * 2,
     {}),
    ("a weight without a layer: cast and cut in three", lambda: Made(lambda m,
                                                                     x: [x.double() @ w
                                                                         for w in m.w.double().chunk(3, dim=1)],
                                             w=(4, 9)), (3, 4), 3 * 4 * 9, {}),
    ("products between activations are no weights", lambda: Made(lambda m, x: x @ x.transpose(1, 2)), (2, 3, 4), 0, {}),
    ("shared layer: parameters once, work twice", lambda: Made(lambda m, x: m.layer(m.layer(x)), layer=nn.Linear(6, 6)),
     (3, 6), 2 * 3 * 6 * 6, {}),
    ("tied to the embedding: 50 x 8 parameters in all", tied, (2, 3), 2 * 3 * 8 * 50, LONG),
    ("layer that is never called: parameters, but no work", lambda: Made(lambda m, x: x, spare=nn.Linear(6, 6)), (3, 6),
     0, {}),
    ("weight_norm: makes the weight from weights", lambda: nn.utils.weight_norm(nn.Conv2d(3, 8, 3)), (1, 3, 8, 8),
     36 * 8 * 3 * 9, {}),
    ("weight_norm in a copy, which deepcopy() alone would refuse", lambda:
     nn.Sequential(nn.utils.weight_norm(nn.Conv2d(3, 8, 3)), nn.LazyConv2d(2, 1)), (1, 3, 8, 8),
     36 * (8 * 3 * 9 + 8 * 2), {}),
    ("spectral_norm by a hook", lambda: nn.utils.spectral_norm(nn.Linear(6, 5)), (3, 6), 3 * 6 * 5, {}),
    ("spectral_norm by a parametrization", lambda: parametrizations.spectral_norm(nn.Linear(6, 5)), (3, 6),
     3 * 6 * 5, {}),
    ("lazy layers: sizes from the input", lambda: nn.Sequential(nn.LazyConv2d(4, 3), nn.Flatten(),
                                                                nn.LazyLinear(5)), (1, 2, 6, 6),
     16 * 4 * 2 * 9 + (16 * 4) * 5, {}),
    ("lazy norms have lazy buffers", lambda: nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(),
                                                           nn.LazyConvTranspose2d(2, 2, stride=2)), (1, 3, 8, 8),
     36 * 4 * 3 * 9 + 12 * 12 * 4 * 2 * 4, {}),
    ("complex numbers: one product each", lambda: nn.Sequential(nn.Conv1d(2, 3, 3, dtype=torch.complex64),
                                                                nn.Linear(6, 5, dtype=torch.complex64)), (1, 2, 8),
     6 * 3 * 2 * 3 + 3 * 6 * 5, {"dtypes": torch.complex64}),
    ("a scripted model", lambda: torch.jit.script(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))), (3, 6),
     3 * (6 * 5 + 5 * 4), {}),
    ("a frozen scripted model: its weights are constants and no parameters any more", lambda:
     torch.jit.freeze(torch.jit.script(nn.Sequential(nn.Linear(6, 5), nn.Conv1d(3, 2, 1))).eval()), (3, 6),
     3 * 6 * 5 + 5 * 3 * 2, {}),
    ("device meta: nothing is computed: 2^36 multiply-adds", lambda: nn.Linear(2**18, 2**18, device="meta"),
     (1, 2**18), 2**36, {}),
    ("a copy on the device meta", lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.LSTM(6, 4)), (3, 8, 8),
     8 * 3 * 9 * 36 + 8 * 6 * 4 * 4 * (6 + 4), {"device": "meta"}),
]


@test
def architectures(workdir):
    """each architecture: the multiply-adds of its formula, and rows that add up to the model"""
    for lesson, make, size, expected, options in ROWS:
        torch.manual_seed(1)
        model = make()
        found = complexity(model, size, **options)
        assert found.multiply_adds == expected, f"{lesson}: {found.multiply_adds}, expected {expected}\n{found}"
        assert found.multiply_adds == sum(row.multiply_adds for row in found.layers), lesson
        assert found.parameters == sum(row.parameters for row in found.layers), lesson
        if not any(isinstance(p, nn.parameter.UninitializedParameter) for p in model.parameters()):
            assert found.parameters == sum(p.numel() for p in model.parameters()), lesson


@test
def networks(workdir):
    """ResNet-18 and ResNet-50: the published figures, and torchinfo's memory"""
    from torchvision import models
    found = complexity(models.resnet18(), (1, 3, 224, 224))
    assert (found.parameters, found.multiply_adds) == (11_689_512, 1_814_073_344)
    #: outputs of all layers with weights, values and gradients: 2 x 4 bytes; torchinfo 1.8 prints 39.75 MB
    assert found.memory.forward_backward_bytes == 39_747_392
    assert found.memory.parameter_bytes == 4 * 11_689_512 and found.memory.input_bytes == 4 * 3 * 224 * 224
    found = complexity(models.resnet50(), (1, 3, 224, 224), device="meta")
    assert (found.parameters, found.multiply_adds) == (25_557_032, 4_089_184_256)


@test
def batches(workdir):
    """batch: eight images have eight times the work and the same parameters"""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 10))
    one, eight = complexity(model, (1, 3, 8, 8)), complexity(model, (8, 3, 8, 8))
    assert eight.multiply_adds == 8 * one.multiply_adds and eight.parameters == one.parameters
    assert complexity(model, (3, 8, 8), batch_dim=0).to_dict() == one.to_dict()


@test
def packed_sequences(workdir):
    """padded sequences with 5, 3 and 1 steps: the LSTM works on 9"""
    def forward(module, x):
        packed = packing.pack_padded_sequence(x, torch.tensor([5, 3, 1]), batch_first=True)
        return packing.pad_packed_sequence(module.lstm(packed)[0], batch_first=True)[0]
    found = complexity(Made(forward, lstm=nn.LSTM(6, 8)), (3, 5, 6))
    assert found.multiply_adds == 9 * 4 * 8 * (6 + 8), found


@test
def attention_apart(workdir):
    """Q K' and A V have no weights and are listed separately: 3 layers, 2 x 10 x 10 x 16 each"""
    found = complexity(encoder(), (2, 10, 16))
    assert found.other_multiply_adds == 3 * 2 * (2 * 10 * 10 * 16), found.other_multiply_adds
    names = {row.name for row in found.layers}
    assert {"layers.0.self_attn", "layers.2.linear2"} <= names, names
    row = next(row for row in found.layers if row.name == "layers.0.self_attn.out_proj")
    assert row.multiply_adds == 2 * 10 * 16 * 16 and row.parameters == 16 * 16 + 16


@test
def rows_of_layers(workdir):
    """row: the layer's name, class, kernel, first output shape and calls; a tied weight is in the first row"""
    found = complexity(nn.Sequential(nn.Conv2d(3, 8, (3, 5)), nn.ReLU()), (2, 3, 8, 8))
    row = found.layers[0]
    assert row["name"] == "0" and dict(row)["kernel"] == [3, 5] and found["multiply_adds"] == found.multiply_adds
    assert (row.name, row.type, row.kernel, row.output_shape, row.calls) == ("0", "Conv2d", [3, 5], [2, 8, 6, 4], 1)
    first, second = complexity(tied(), (2, 3), dtypes=[torch.long]).layers
    assert (first.parameters, second.parameters, second.shared_parameters) == (400, 0, 400)


@test
def contract(workdir):
    """JSON: the keys of `wattle model --format json`"""
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU())
    model[0].bias.requires_grad_(False)
    found = json.loads(complexity(model, (3, 6)).to_json())
    assert (found["parameters"], found["trainable_parameters"], found["multiply_adds"]) == (35, 30, 90), found
    assert {"name": "0", "type": "Linear", "parameters": 35, "multiply_adds": 90, "output_shape": [3, 5]}.items() \
        <= found["layers"][0].items()


@test
def same_as_onnx(workdir):
    """`wattle model`: the same multiply-adds from the file that PyTorch exports"""
    convolutions = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                 nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1, groups=2), nn.Flatten(1),
                                 nn.Linear(4 * 64, 5))
    models = [(convolutions, (2, 3, 8, 8)), (nn.LSTM(6, 8, 2, bidirectional=True), (5, 2, 6)), (nn.GRU(6, 8), (5, 2, 6))]
    if not torch.__version__.startswith("2.0."):  # which cannot export the unflatten of an attention
        models.append((encoder(), (2, 10, 16)))
    for model, size in models:
        found = complexity(model.eval(), size)
        torch.onnx.export(model, torch.zeros(size), str(workdir.folder / "model.onnx"), opset_version=13)
        done = workdir.wattle("model", "model.onnx", "--format", "json")
        assert done.returncode == 0, done
        told = json.loads(done.stdout)
        for key in ("multiply_adds", "other_multiply_adds"):
            assert told[key] == found[key], f"{type(model).__name__} {key}: ONNX {told[key]}, {found[key]}"


@test
def inputs(workdir):
    """inputs: sizes by position and name, or data; dtypes and keyword arguments reach forward"""
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(10, 4), nn.Linear(4, 3)

        def forward(self, tokens, scale, *, twice=False):
            hidden = self.words(tokens) * scale
            return self.head(hidden) + (self.head(hidden) if twice else 0)

    model, once = Two(), 2 * 5 * 4 * 3
    sizes = {"tokens": (2, 5), "scale": (2, 1, 1)}
    assert complexity(model, list(sizes.values()), dtypes=[torch.long, torch.float]).multiply_adds == once
    assert complexity(model, sizes, dtypes={"tokens": torch.long}, twice=True).multiply_adds == 2 * once
    data = {"tokens": torch.ones(2, 5, dtype=torch.long), "scale": torch.ones(1)}
    assert complexity(model, input_data=data).multiply_adds == once
    assert complexity(model, input_data=list(data.values())).multiply_adds == once
    assert complexity(nn.Linear(4, 3), input_data=torch.ones(2, 4)).multiply_adds == 24
    assert complexity(nn.Linear(4, 3), tuple(numpy.array([2, 4]))).multiply_adds == 24
    assert complexity(nn.Linear(4, 3).half(), input_data=torch.ones(2, 4).half(), device="meta").multiply_adds == 24


@test
def without_input(workdir):
    """no input: parameters only; values that need a pass are unknown, not 0"""
    found = complexity(nn.Linear(4, 3))
    assert (found.parameters, found.multiply_adds, found.layers[0].output_shape) == (15, None, None)


def state(model):
    """Everything observable about a model, and the states of the random number generators."""
    return ([(name, id(module), module.training, {key: id(value) for key, value in module.__dict__.items()},
              *(list(map(id, hooks.values())) for hooks in (module._forward_hooks, module._forward_pre_hooks)))
             for name, module in model.named_modules()],
            {name: tensor.clone() for name, tensor in model.state_dict().items()},
            [(id(p), p.requires_grad, id(p.grad), p._version) for p in model.parameters()], torch.get_rng_state())


@test
def untouched(workdir):
    """weights, running statistics, modes, gradients, hooks, attributes and random numbers: unchanged afterwards"""
    class Careless(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout())
            self.norm = nn.utils.spectral_norm(nn.Linear(4, 4))
            self.words = nn.Embedding(5, 4, max_norm=0.1)
            self.register_buffer("mean", torch.zeros(4))
            self.calls = 0

        def forward(self, x):
            self.calls, self.cache = self.calls + 1, x
            x = self.body(x).mean((2, 3)) + torch.rand(4)
            self.mean.mul_(0.9).add_(x.mean(0))
            return F.dropout(self.norm(x)) + self.words(torch.zeros(1, dtype=torch.long))

    model = Careless().train()
    model.body[2].eval()
    model(torch.rand(2, 3, 8, 8)).sum().backward()
    model.words.weight.data.fill_(1)
    seen = []
    model.norm.register_forward_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    for mode in ("same", "train", "eval"):
        before = state(model)
        complexity(model, (2, 3, 8, 8), mode=mode)
        after = state(model)
        #: a weight that the model itself overwrites is put back, which its version counter shows
        versions = [[key for key in one[2] if key[0] != id(model.words.weight)] for one in (before, after)]
        assert before[0] == after[0] and versions[0] == versions[1], mode
        assert before[1].keys() == after[1].keys()
        assert all(torch.equal(value, after[1][name]) for name, value in before[1].items()), mode
        assert torch.equal(before[3], after[3]), mode
    assert seen == [False] * 3 and not hasattr(model, "_wattle") and model.calls == 1


@test
def untouched_by_bold_models(workdir):
    """model that keeps lists, freezes itself, differentiates or creates layers in forward: restored as well"""
    class Bold(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.seen, self.counts = nn.Linear(4, 3), [], {"calls": 0}

        def forward(self, x):
            self.seen.append(x)
            self.counts["calls"] += 1
            self.made = nn.Linear(3, 2)
            with torch.enable_grad():
                self.layer(x).sum().backward()
            self.layer.requires_grad_(False)
            return self.made(self.layer(x))

    model = Bold()
    model.layer.weight.grad = torch.ones(3, 4)
    grad, before = model.layer.weight.grad, state(model)
    found = complexity(model, (2, 4))
    assert state(model)[0] == before[0] and state(model)[2] == before[2], "another state"
    assert torch.equal(grad, torch.ones(3, 4)) and model.layer.bias.grad is None
    assert model.seen == [] and model.counts == {"calls": 0} and not hasattr(model, "made")
    #: forward twice; the gradient of weights is a product of activations; a layer that forward makes counts for its
    #: maker
    assert found.multiply_adds == 2 * (2 * 4 * 3) + 2 * 3 * 2, found


@test
def in_another_thread(workdir):
    """operators of another thread: not observed, so unknown, not 0"""
    def forward(module, x):
        out = []
        thread = threading.Thread(target=lambda: out.append(module.layer(x)))
        thread.start()
        thread.join()
        return out[0]

    found = complexity(Made(forward, layer=nn.Linear(4, 3)), (2, 4))
    assert found.multiply_adds is None and "layer" in found.unknown, found


@test
def untouched_lazy(workdir):
    """lazy model: stays lazy; model on another device: stays there"""
    lazy = nn.LazyLinear(5)
    assert complexity(lazy, (3, 7)).parameters == 40
    assert isinstance(lazy.weight, nn.parameter.UninitializedParameter) and type(lazy) is nn.LazyLinear
    here = nn.Linear(4, 4)
    assert complexity(here, (1, 4), device="meta").multiply_adds == 16 and here.weight.device.type == "cpu"


@test
def in_training_mode(workdir):
    """model in training mode: accepts a batch of one, where BatchNorm itself refuses 1 x 1 images"""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    assert complexity(model, (1, 3, 3, 3)).multiply_adds == 4 * 3 * 9 and model[1].training


@test
def unknown(workdir):
    """quantised layers and operators without a rule: named and unknown, not 0; known ones are counted"""
    quantised = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(6, 5), nn.Conv1d(5, 2, 1)), {nn.Linear})
    found = complexity(Made(lambda m, x: m.net[1](m.net[0](x).t()), net=quantised), (3, 6))
    assert found.multiply_adds is None and found.to_dict()["multiply_adds"] is None
    assert found.known_multiply_adds == 3 * 5 * 2, found.known_multiply_adds
    assert found.unknown == {"net.0": {"quantized::linear_dynamic": 1}}, found.unknown
    assert "n/a" in str(found) and "quantized::linear_dynamic" in str(found)
    distances = complexity(Made(lambda m, x: torch.cdist(x, m.codes), codes=(8, 4)), (3, 4))
    assert distances.multiply_adds is None and distances.unknown == {"": {"aten::_cdist_forward": 1}}, distances.unknown


@test
def errors(workdir):
    """invalid calls: one line with the correct form; a failing model leaves nothing behind"""
    class Hidden(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)

        def __deepcopy__(self, memory):
            raise TypeError("this holds a lock")

    def half():
        """A model that this PyTorch cannot run; newer ones can."""
        model, x = nn.Conv2d(2, 2, 1).half(), torch.zeros(1, 2, 2, 2).half()
        try:
            model(x)
        except RuntimeError:
            complexity(model, (1, 2, 2, 2))
        raise RuntimeError('device="meta"')

    call = nn.Module.__call__
    rows = [
        (TypeError, "not a torch.nn.Module", lambda: complexity(torch.relu, (1, 2))),
        (ValueError, "only one", lambda: complexity(nn.Linear(2, 2), (1, 2), input_data=torch.ones(1, 2))),
        (ValueError, "invalid mode 'both'", lambda: complexity(nn.Linear(2, 2), (1, 2), mode="both")),
        (TypeError, "(1, 3, 224, 224)", lambda: complexity(nn.Linear(2, 2), "1x2")),
        (TypeError, "give input_data=TENSOR, or its size, (1, 2)",
         lambda: complexity(nn.Linear(2, 2), torch.rand(1, 2))),
        (ValueError, "not positive", lambda: complexity(nn.Linear(2, 2), (0, 2))),
        (ValueError, "one for each", lambda: complexity(nn.Linear(2, 2), (1, 2), dtypes=[torch.float] * 2)),
        (RuntimeError, "Linear cannot be run with input of [1, 3]", lambda: complexity(nn.Linear(2, 2), (1, 3))),
        (RuntimeError, "verbose: forward has no such argument", lambda: complexity(nn.ReLU(), (1, 3), verbose=0)),
        (RuntimeError, "cannot copy Hidden", lambda: complexity(Hidden(), (1, 2), device="meta")),
        (RuntimeError, 'device="meta"', half),
        (RuntimeError, "dtypes=torch.long", lambda: complexity(nn.Embedding(2, 2), (1, 3))),
    ]
    for kind, text, attempt in rows:
        try:
            attempt()
        except kind as error:
            assert text in str(error) and "\n" not in str(error), error
        else:
            raise AssertionError(f"no {kind.__name__} that says {text}")
    assert nn.Module.__call__ is call


@test
def pruned(workdir):
    """pruned weight: the parameters that its mask keeps; its layer still multiplies all"""
    layer = prune.l1_unstructured(nn.Linear(10, 10, bias=False), "weight", amount=0.4)
    found = complexity(layer, (1, 10))
    assert (found.parameters, found.multiply_adds) == (60, 100), found


@test
def joined_with_energy(workdir):
    """measured layers: joules per 10^9 multiply-adds; out_proj, which is never called, counts in its attention"""
    model = nn.Sequential(encoder(), nn.ReLU())
    found = complexity(model, (1, 10, 16))
    #: 5 calls with batches of 4 where one sequence was counted
    names = [row.name for row in found.layers if row.calls and row.type != "Dropout"]
    measured = [{"name": name, "type": "", "calls": 5, "energy_j": 2.0, "error_j": 0.5, "forward_j": 1.0}
                for name in names]
    measured.append({"name": "outside layers", "type": "", "calls": 0, "energy_j": 3.0, "error_j": None})
    rows = {row.name: row for row in found.join(measured, scale=4).rows}
    attention, outside = rows["0.layers.1.self_attn"], rows["outside layers"]
    assert attention.multiply_adds == 5 * 4 * 10 * 4 * 16 * 16
    near(attention.j_per_gmac, 2.0 / (attention.multiply_adds / 1e9), relative=1e-12)
    near(attention.error_j_per_gmac / attention.j_per_gmac, 0.25, relative=1e-12)
    near(attention.forward_j_per_gmac / attention.j_per_gmac, 0.5, relative=1e-12)
    near(sum(row.share for row in rows.values()), 1, relative=1e-12)
    near(sum(row.multiply_adds_share or 0 for row in rows.values()), 1, relative=1e-12)
    assert sum(row.multiply_adds or 0 for row in rows.values()) == 5 * 4 * found.multiply_adds
    assert outside.multiply_adds is None and outside.j_per_gmac is None and rows["1"].j_per_gmac is None


@test
def joined_with_layers(workdir):
    """joules per multiply-add with layers measured by wattle.torch.layers"""
    import wattle.torch
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 4))
    found = wattle.torch.complexity(model, (2, 3, 8, 8))
    with wattle.torch.layers(model) as measured:
        for _ in range(3):
            model(torch.rand(2, 3, 8, 8)).sum().backward()
    table = found.join(measured)
    assert [row.name for row in table.rows] == [row.name for row in measured.rows]
    assert sum(row.multiply_adds or 0 for row in table.rows) == 3 * found.multiply_adds
    assert "j_per_gmac" in str(table) and "Conv2d" in table._repr_html_() and len(table.to_pandas()) == len(table.rows)


@test
def kept_with_a_run(workdir):
    """figures as metadata of a run: by --meta during the run, or by keep() afterwards"""
    found = complexity(nn.Linear(6, 5), (3, 6))
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--meta", found.meta(), "--", "true")
    assert done.returncode == 0, done
    facts = dict(workdir.rows("SELECT key, value FROM run"))
    assert json.loads(facts["meta.model_summary"])["multiply_adds"] == 90
    assert "layers" not in json.loads(facts["meta.model_summary"])
    found.keep(workdir.folder / "run.sqlite")
    kept = json.loads(dict(workdir.rows("SELECT key, value FROM run"))["meta.model_summary"])
    assert kept == {**found.to_dict(), "total_params": 35, "total_mult_adds": 90}
    report = json.loads(workdir.wattle("report", "run.sqlite", "--format", "json").stdout)
    assert json.loads(report["run"]["labels"]["model_summary"])["parameters"] == 35, report["run"]
    try:
        found.keep(workdir.folder / "none.sqlite")
    except FileNotFoundError as error:
        assert "run file does not exist" in str(error)
    else:
        raise AssertionError("no error")


@test
def views(workdir):
    """text, HTML and data frame: the same rows; names are escaped"""
    model = nn.Sequential()
    model.add_module("<b>", nn.Linear(1000, 3))
    found = complexity(model, (2, 1000))
    assert "3,003" in str(found) and "6,000" in str(found) and "6.000 k" in str(found), str(found)
    folded = complexity(encoder(), (2, 10, 16)).text(depth=2)
    #: 3 layers: q, k, v and out (16 x 16), two linear layers (16 x 64), biases, two norms
    assert folded.count(f"{4 * (256 + 16) + 2 * 1024 + 64 + 16 + 4 * 16:,}") == 3 and "linear1" not in folded, folded
    assert folded.count(f"{2 * 10 * (4 * 256 + 2 * 1024):,}") == 3, folded
    assert "&lt;b&gt;" in found._repr_html_() and "<b>" not in found._repr_html_()
    frame = found.to_pandas()
    assert list(frame.name) == ["<b>"] and frame.multiply_adds.sum() == 6000
    assert complexity(nn.Linear(2, 2)).to_pandas().multiply_adds.isna().all()
    assert found.meta().startswith("model_summary={") and "layers" in json.loads(found.meta(layers=True)[14:])


if __name__ == "__main__":
    main()

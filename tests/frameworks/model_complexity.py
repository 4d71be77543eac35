"""wattle.torch.complexity() against torch.utils.flop_counter, fvcore and torchinfo: models of torchvision and transformers.

Each difference between two counts has a rule here, and docs/complexity.md gives its reason. The models are made from their
configuration, with random weights.
"""
import functools
import logging
import math
import warnings

import torch
import torchinfo
import torchvision
import transformers
from fvcore.nn import FlopCountAnalysis
from harness import main, test
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from wattle.torch import complexity

warnings.simplefilter("ignore")
logging.getLogger("fvcore").setLevel(logging.ERROR)
torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)  # : it is one operator, which neither flop_counter nor fvcore knows

VISION = ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3", "maxvit_t",
          "mnasnet0_5", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf",
          "resnet18", "resnet34", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "squeezenet1_0",
          "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vgg11_bn", "vit_b_16", "vit_b_32", "wide_resnet50_2")
SIZES = {"inception_v3": 96, "maxvit_t": 224, "vit_b_16": 224, "vit_b_32": 224}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}
IDS = {"input_ids": torch.arange(24).reshape(2, 12)}
IMAGE = {"pixel_values": torch.zeros(2, 3, 32, 32)}
LANGUAGE = {
    # class: configuration, its values, input
    "BertModel": ("BertConfig", SMALL, IDS),
    "DistilBertModel": ("DistilBertConfig", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 100}, IDS),
    "GPT2LMHeadModel": ("GPT2Config", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}, IDS),
    "LlamaForCausalLM": ("LlamaConfig", {**SMALL, "num_key_value_heads": 2}, IDS),
    "MistralForCausalLM": ("MistralConfig", {**SMALL, "num_key_value_heads": 2}, IDS),
    "OPTForCausalLM": ("OPTConfig", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128,
                                     "vocab_size": 100, "word_embed_proj_dim": 64}, IDS),
    "Qwen2ForCausalLM": ("Qwen2Config", {**SMALL, "num_key_value_heads": 2}, IDS),
    "RobertaModel": ("RobertaConfig", SMALL, IDS),
    "T5ForConditionalGeneration": ("T5Config", {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
                                                "vocab_size": 100}, {**IDS, "decoder_input_ids": IDS["input_ids"]}),
    "ViTModel": ("ViTConfig", {**{k: v for k, v in SMALL.items() if k != "vocab_size"}, "image_size": 32, "patch_size": 8}, IMAGE),
}
#: operators of fvcore that are sums of products; the others (norms, pooling, resampling) count 0 here
PRODUCTS = ("conv", "linear", "matmul", "addmm", "bmm", "einsum", "mm", "baddbmm")


def vision_models():
    for name in VISION:
        size = SIZES.get(name, 64)
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        if name in ("vit_b_16", "vit_b_32", "maxvit_t"):
            options["weights"] = None
        yield name, getattr(torchvision.models, name)(**options).eval(), {"x": torch.zeros(1, 3, size, size)}


def language_models():
    for name, (config, values, inputs) in LANGUAGE.items():
        made = getattr(transformers, config)(**values)
        made._attn_implementation = "eager"
        yield name, getattr(transformers, name)(made).eval(), inputs


def all_models():
    yield from vision_models()
    yield from language_models()


def call(model, inputs):
    with torch.no_grad():
        return model(inputs["x"]) if "x" in inputs else model(**inputs)


def by_flop_counter(model, inputs):
    with FlopCounterMode(display=False) as counter:
        call(model, inputs)
    return counter.get_total_flops()


class Called(nn.Module):
    """A model with positional inputs, and tensors as its outputs, for torch.jit.trace."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        output = call(self.model, dict(zip(self.names, values)))
        if isinstance(output, torch.Tensor):
            return output
        return tuple(value for value in (output.values() if hasattr(output, "values") else output) if isinstance(value, torch.Tensor))


def by_fvcore(model, inputs):
    """Counts by operator, and the operators that fvcore does not count, with their calls."""
    analysis = FlopCountAnalysis(Called(model, list(inputs)), tuple(inputs.values())).unsupported_ops_warnings(False)
    return dict(analysis.by_operator()), dict(analysis.unsupported_ops())


def by_torchinfo(model, inputs):
    found = torchinfo.summary(model, input_data=inputs.get("x", inputs), verbose=0)
    return found.total_params, found.total_mult_adds


@functools.cache
def results():
    """{model: (complexity(), its modules by name, flop_counter, fvcore, torchinfo)}"""
    made = {name: (complexity(model, input_data=inputs.get("x", inputs)), dict(model.named_modules()), by_flop_counter(model, inputs),
                   by_fvcore(model, inputs), by_torchinfo(model, inputs)) for name, model, inputs in all_models()}
    assert len(made) == 40
    return made


def agree(judge):
    """judge(result) returns two counts for each model, which must be equal."""
    pairs = {name: judge(*result) for name, result in results().items()}
    different = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    assert not different, different


@test
def flop_counter(workdir):
    """torch.utils.flop_counter: twice the multiply-adds of all 40 models, those between activations included"""
    agree(lambda found, modules, flops, *_: (flops, 2 * (found.multiply_adds + found.other_multiply_adds)))


@test
def fvcore(workdir):
    """fvcore: the same sum over products of all 40 models, without norms and resampling, and without the operators that it names as
    not counted"""
    def judge(found, modules, flops, fvcore, _):
        by, unsupported = fvcore
        ours = found.multiply_adds + found.other_multiply_adds
        attention = found.other_multiply_adds if "aten::scaled_dot_product_attention" in unsupported else 0
        theirs, einsum = sum(n for name, n in by.items() if name in PRODUCTS), by.get("einsum", 0)
        # It has the operations of einsum as a text of four digits.
        return theirs if abs(theirs - ours + attention) > 0.0005 * einsum else ours - attention, ours - attention

    agree(judge)


def torchinfos_parameters(found, modules):
    """torchinfo counts a parameter once for each module that has it and is called: tied ones several times."""
    called = [p for row in found.modules if row.calls for p in modules[row.name]._parameters.values() if p is not None]
    ids = {id(p) for p in called}
    others = {id(p): p for module in modules.values() for p in module.parameters(recurse=False) if id(p) not in ids}
    return sum(p.numel() for p in (*called, *others.values()))


def by_torchinfos_rule(row, module):
    """torchinfo 1.8 counts weights and biases of modules without inner ones: of classes with Conv in the name once for each position of
    the output but its second dimension, of all others once for each item of the batch."""
    if not row.is_leaf or not row.calls:
        return 0
    weights = sum(p.numel() for name, p in module.named_parameters() if name in ("weight", "bias"))
    shape = row.output_shape
    return weights * row.calls * (math.prod(shape[:1] + shape[2:]) if "Conv" in type(module).__name__ else shape[0])


@test
def torchinfo_totals(workdir):
    """torchinfo: the same parameters of all 40 models but for tied ones; its multiply-adds follow from its rule and the layers found
    here"""
    agree(lambda found, modules, flops, fvcore, theirs: (theirs[0], torchinfos_parameters(found, modules)))
    tied = {name for name, (found, *_, theirs) in results().items() if theirs[0] != found.parameters}
    assert tied == {"GPT2LMHeadModel", "OPTForCausalLM", "T5ForConditionalGeneration"}, tied
    agree(lambda found, modules, flops, fvcore, theirs: (
        theirs[1], sum(by_torchinfos_rule(row, modules[row.name]) for row in found.modules)))


if __name__ == "__main__":
    main()

"""Number of multiply-adds of a PyTorch operator, from the shapes of its tensors.

A multiply-add is one product that is added to a sum of products. Matrix products, convolutions and operators made from
them have such sums; additions, norms, activations, gathers (embeddings) and element-wise products have none and count 0.
Operators are observed below the autograd layer, where few are left: einsum appears as bmm, nn.Linear as addmm,
nn.LSTM on a CPU as mm and addmm. Operators that look like a sum of products and are not in the table are unknown,
never 0.
"""
import math
import re
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence

import torch


class Product(NamedTuple):
    """`number` of multiply-adds between `left` and `right`."""
    number: int
    left: torch.Tensor
    right: torch.Tensor


Rule = Callable[[Sequence[Any], Any], Iterable[Product]]


def _terms(left: torch.Tensor) -> int:
    """Elements that take part: for sparse matrices the stored ones."""
    if left.layout == torch.strided:
        return int(left.numel())
    return int(left._nnz())


def _matrix_product(at: int) -> Rule:
    """(…, n, k) x (…, k, m) with the left operand at args[at]: each element of the left one meets a row of m."""
    def rule(args: Sequence[Any], out: Any) -> Iterable[Product]:
        left, right = args[at], args[at + 1]
        columns = right.shape[-1] if right.dim() > 1 else 1
        yield Product(_terms(left) * columns, left, right)
    return rule


def _convolution(args: Sequence[Any], out: torch.Tensor) -> Iterable[Product]:
    """Every weight at each position of the output, for transposed ones too, as is common (mathematically a strided transposed
    one has its weights at the positions of the input)."""
    image, weight = args[0], args[1]
    yield Product(weight.numel() * out.shape[0] * math.prod(out.shape[2:]), image, weight)


def _bilinear(args: Sequence[Any], out: torch.Tensor) -> Iterable[Product]:
    """x1' W x2 for each output feature: every weight once at each position."""
    left, weight = args[0], args[1]
    yield Product(weight.numel() * (left.numel() // left.shape[-1]), left, weight)


def _attention(args: Sequence[Any], out: Any) -> Iterable[Product]:
    """softmax(Q K') V, complete: a causal mask skips products that are counted here, as kernels without a mask do."""
    query, key, value = args[0], args[1], args[2]
    rows = query.numel() // query.shape[-1]
    yield Product(rows * key.shape[-2] * query.shape[-1], query, key)
    yield Product(rows * value.shape[-2] * value.shape[-1], query, value)


def _steps(sequence: torch.Tensor) -> int:
    """Time steps times sequences; for a packed sequence (rows, features) the existing ones."""
    return int(sequence.numel() // sequence.shape[-1])


def _cudnn_rnn(args: Sequence[Any], out: Any) -> Iterable[Product]:
    """All layers and directions in one kernel; the vectors among the weights are biases."""
    for weight in args[1]:
        if weight.dim() > 1:
            yield Product(weight.numel() * _steps(args[0]), args[0], weight)


def _onednn_rnn(args: Sequence[Any], out: Any) -> Iterable[Product]:
    """One layer in one direction: input and hidden weights."""
    for weight in args[1:3]:
        yield Product(weight.numel() * _steps(args[0]), args[0], weight)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot", "aten::_sparse_mm",
                     "aten::_int_mm"), _matrix_product(0)),
    **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addbmm", "aten::addmv", "aten::_addmm_activation",
                     "aten::_sparse_addmm", "aten::sparse_addmm"), _matrix_product(1)),
    **dict.fromkeys(("aten::convolution", "aten::_convolution", "aten::convolution_overrideable"), _convolution),
    "torchvision::deform_conv2d": _convolution,
    "aten::_trilinear": _bilinear,
    "aten::mkldnn_rnn_layer": _onednn_rnn,
    **dict.fromkeys(("aten::_cudnn_rnn", "aten::miopen_rnn"), _cudnn_rnn),
}

# : looks like a sum of products; names of operators without such sums over a weight come first
_NO_SUM = re.compile(r"^aten::(upsample_|_upsample_|_thnn_fused_|linalg_vector_norm|_pad_|_cudnn_init|_use_)")
_SUM = re.compile(r"(^|_|:)(mm|mv|bmm|addmm|addmv|baddbmm|addbmm|ger|gemm|conv[a-z0-9]*|convolution|linear|matmul|rnn"
                  r"|lstm|gru|attention|encoder|bilinear|trilinear|dot|vdot|inner|einsum|tensordot|kron|linalg|solve"
                  r"|inverse|cdist|fft|stft)(_|$)")
#: operators of other libraries that use no weights
_FOREIGN_WITHOUT_SUM = ("torchvision::nms", "torchvision::roi_align", "torchvision::roi_pool",
                        "torchvision::ps_roi_align", "torchvision::ps_roi_pool", "torchvision::_cuda_version")


def rule_of(name: str) -> Optional[Rule]:
    """The rule for an operator ("aten::mm"), or None."""
    if "scaled_dot_product" in name and not name.endswith("_backward"):
        return _attention
    return RULES.get(name.removesuffix("_"))


def is_sum_of_products(name: str) -> bool:
    """Whether an operator without a rule may hide multiply-adds."""
    namespace, _, _ = name.partition("::")
    if namespace in ("prim", "prims", "profiler", "debugprims"):
        return False
    if namespace != "aten":
        return name not in _FOREIGN_WITHOUT_SUM
    return _SUM.search(name) is not None and _NO_SUM.match(name) is None

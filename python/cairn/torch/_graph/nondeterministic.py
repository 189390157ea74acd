"""Lists operators whose kernels can give different bits if they run again with the same arguments.

For GPUs, the list is that of torch.use_deterministic_algorithms, taken from its documentation and from the alerts of
its kernels. Most of these kernels use atomic additions, whose order depends on the threads. For CPUs with several
threads, the list is ``_RACES_ON_CPU``. It was found by experiments: about 90 operators were run 25 to 60 times each with
two threads, and only the results of the operators in ``_RACES_ON_CPU`` differed.
"""

import torch
from torch.utils import _pytree as pytree

from .operators import argument, schema_name

_BY_ATOMICS = frozenset(f"aten::{name}" for name in (
    # sums at indices, and backward kernels of reads at indices
    "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_reduce", "index_put", "_index_put_impl",
    "_unsafe_index_put", "_unsafe_masked_index_put_accumulate", "put", "embedding_dense_backward", "_embedding_bag_backward",
    "_embedding_bag_dense_backward", "_embedding_bag_per_sample_weights_backward", "index_select_backward",
    "value_selecting_reduction_backward", "_segment_reduce_backward", "segment_reduce",
    # counting
    "bincount", "histc", "_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors",
    # pooling, resampling, padding
    "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "avg_pool3d_backward",
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d_backward",
    "fractional_max_pool2d_backward", "fractional_max_pool3d_backward", "max_unpool2d", "max_unpool3d",
    "upsample_linear1d_backward", "upsample_bilinear2d_backward", "_upsample_bilinear2d_aa_backward",
    "upsample_bicubic2d_backward", "_upsample_bicubic2d_aa_backward", "_upsample_lanczos2d_aa_backward",
    "upsample_trilinear3d_backward",
    "grid_sampler_2d_backward", "grid_sampler_3d_backward",
    "reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward",
    "replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward",
    # losses
    "nll_loss2d_forward", "nll_loss2d_backward", "_ctc_loss", "_ctc_loss_backward", "_cudnn_ctc_loss",
    # attention: the gradient of the queries is a sum over blocks of keys
    "_flash_attention_backward", "_efficient_attention_backward", "_cudnn_attention_backward",
    "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
    # operators that choose one of several equal elements
    "median", "nanmedian", "mode"))
_RACES_ON_CPU = frozenset(f"aten::{name}" for name in (
    "index_put", "_index_put_impl", "_unsafe_index_put", "_unsafe_masked_index_put_accumulate", "put", "index_copy",
    "max_unpool2d", "max_unpool3d"))
# Scans (prefix sums and products). On a GPU, their results can differ, but only for floating-point numbers.
_SCANS = frozenset(f"aten::{name}" for name in ("cumsum", "logcumsumexp", "cumprod"))
_CONVOLUTIONS = frozenset(f"aten::{name}" for name in (
    "convolution", "_convolution", "convolution_overrideable", "cudnn_convolution_transpose", "cudnn_convolution"))
_CONVOLUTIONS_BACKWARD = frozenset(f"aten::{name}" for name in ("convolution_backward", "convolution_backward_overrideable"))


def repeats_bitwise(node):
    """Returns whether a second run of the node gives the same bits as the first. The lists above and torch's present
    settings decide."""
    name = (schema_name(node.target) or "").removesuffix("_")
    values = [leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor)]
    if torch.are_deterministic_algorithms_enabled():
        return True
    if not any(value.device.type == "cuda" for value in values):
        return name not in _RACES_ON_CPU
    if name in _SCANS:
        return not any(value.is_floating_point() or value.is_complex() for value in values)
    if name in _CONVOLUTIONS_BACKWARD or (name in _CONVOLUTIONS and ("transpose" in name or _is_transposed(node))):
        return torch.backends.cudnn.deterministic
    return name not in _BY_ATOMICS


def _is_transposed(node):
    """Returns whether a convolution is transposed. A transposed convolution runs the kernel that computes the gradient
    of an ordinary convolution."""
    return bool(argument(node, "transposed"))

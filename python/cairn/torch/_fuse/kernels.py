"""Writes a group of operations as a separate FX graph, and has Inductor compile this graph to a kernel."""

import hashlib
import operator
import re
import weakref

import torch
from torch.utils import _pytree as pytree

from .. import _private
from .._costs.calls import made_like
from .._graph.operators import may_alias
from .._rewrite.dropout import masked_scale
from .operators import base, producer

_MOST_NAMES = 3  # largest number of operators that the name of a kernel contains


class Source:
    """The graph of one kernel. ``arguments``: nodes of the traced graph that the kernel reads. ``results``: nodes that
    it computes."""

    def __init__(self, members, results, kinds):
        self.kinds, self.results = kinds, results
        self.members = set(members)
        self.graph = torch.fx.Graph()
        self.copies = {}  # node of the traced graph -> node of the kernel's graph
        self.calls = {}  # text of a call -> its node, so that equal calls become one
        self.arguments = []
        for node in members:
            self._copy(node)
        self.operations = len(self.calls)
        self._add_symbols(members[0].graph)
        self.graph.output(tuple(self._value(node) for node in results))

    def _value(self, node):
        if node not in self.copies:
            root = base(node, self.kinds)
            if producer(root) in self.members or self.kinds.of(root) == "maker":
                self._copy(node)
            else:
                self.copies[node] = new = self.graph.placeholder(f"arg{len(self.arguments)}")
                new.meta = {"val": node.meta["val"]}
                self.arguments.append(node)
        return self.copies[node]

    def _copy(self, node):
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self._value)
        text = f"{node.target}{args}{kwargs}"
        if text not in self.calls:
            if node.target is masked_scale:
                x, mask, scale = args
                value = node.meta["val"]
                if value.device.type == "cpu":  # rounds the scale as masked_scale() does
                    scale = torch.tensor(scale, dtype=value.dtype, device="cpu").item()
                new = self.graph.call_function(torch.ops.aten.mul.Tensor, (
                    self.graph.call_function(torch.ops.aten.mul.Tensor, (x, mask)), scale))
            elif _has_wide_number(node):
                wide = [self._as(x, torch.float32) if isinstance(x, torch.fx.Node) else x for x in args]
                new = self._as(self.graph.call_function(node.target, tuple(wide), kwargs), node.meta["val"].dtype)
            else:
                new = self.graph.call_function(node.target, args, kwargs)
            self.calls[text] = new
        self.copies[node] = self.calls[text]

    def _add_symbols(self, traced):
        """Adds arguments for the symbols of sizes such as (s + 1) // 2: Inductor's kernels compute such sizes from s."""
        symbols = _private.symbols_within([*self.values(), *(node.meta["val"] for node in self.results)])
        for node in traced.find_nodes(op="placeholder") if symbols else ():
            if _private.is_symbol(node.meta.get("val"), symbols):
                self._value(node)

    def _as(self, node, dtype):
        return self.graph.call_function(torch.ops.prims.convert_element_type.default, (node, dtype))

    def values(self):
        """Returns the traced values (fake tensors and sizes) of the kernel's arguments."""
        return [node.meta["val"] for node in self.arguments]

    def text(self):
        """Returns a text that is equal for equal kernels."""
        values = [*self.values(), *(node.meta["val"] for node in self.results)]
        shapes = [_described(v) for v in values]
        calls = [(n.op, str(n.target), n.args, n.kwargs) for n in self.graph.nodes]
        return f"{shapes} {calls} {torch.get_default_dtype()}"  # operations without a dtype= use the default

    def name(self, settings):
        """Returns a name that says what the kernel computes, and is equal only for equal kernels and settings."""
        names = dict.fromkeys(_short_name(n.target) for n in self.graph.nodes
                              if n.op == "call_function" and n.target is not operator.getitem and not may_alias(n.target))
        digest = hashlib.sha256(f"{self.text()} {settings}".encode()).hexdigest()[:10]
        return "_".join(["fused", *list(names)[:_MOST_NAMES], digest])


# Operations on 16-bit tensors and a number, for which torch's kernels use the number with 32 bits. Exception: on a CPU,
# the kernels of _SUMS round the number to 16 bits first.
_PRODUCTS = {torch.ops.aten.mul.Tensor, torch.ops.aten.div.Tensor}
_SUMS = {torch.ops.aten.add.Tensor, torch.ops.aten.sub.Tensor}


def _has_wide_number(node):
    """Returns whether a node is a product or sum of a 16-bit tensor and a number that 16 bits cannot represent, and
    torch's kernel uses the unrounded number. A kernel of Inductor would round the number first."""
    value = node.meta["val"]
    if node.target not in _PRODUCTS and (node.target not in _SUMS or value.device.type == "cpu"):
        return False
    if value.dtype not in (torch.float16, torch.bfloat16) or len(node.args) != 2:
        return False
    numbers = [x for x in node.args if type(x) in (int, float)]
    tensors = [x.meta["val"] for x in node.args if isinstance(x, torch.fx.Node)]
    return (len(numbers) == 1 and len(tensors) == 1 and isinstance(tensors[0], torch.Tensor) and tensors[0].dtype == value.dtype and
            float(torch.tensor(numbers[0], dtype=value.dtype, device="cpu")) != numbers[0])


def _described(value):
    """Returns a text with shape, strides, dtype and device of a tensor. A symbolic size is followed by its hint, i.e.
    its value when the graph was traced."""
    if not isinstance(value, torch.Tensor):
        return f"{value}={_private.hint(value)}"
    sizes = [f"{size}={_private.hint(size)}" if _private.is_sym(size) else str(size) for size in (*value.shape, *value.stride())]
    return f"{value.dtype}{sizes}{value.device}"


def _short_name(target):
    name = target._schema.name.split("::")[-1] if isinstance(target, torch._ops.OpOverload) else target.__name__
    return re.sub(r"\W", "_", name).strip("_")


# Name of a kernel -> the kernel's function, or a text that says why the kernel could not be compiled. A kernel for
# symbolic sizes belongs to the ShapeEnv whose guards say for which sizes the kernel is valid.
_kernels = {}
_symbolic_kernels = weakref.WeakKeyDictionary()


def kernel_of(source, config):
    """Returns a function that takes the kernel's arguments and returns its results, or a text that says why there is no
    such function.
    ``config``: settings of Inductor."""
    name = source.name(sorted(config.items()))
    environment = _private.shape_env_of(source.values())
    kernels = _kernels if environment is None else _symbolic_kernels.setdefault(environment, {})
    if name not in kernels:
        try:
            kernels[name] = _compiled(source, name, config)
        except _private.RESTARTS:
            raise
        except Exception as error:  # a compiler can fail in any way; the operations then run one by one
            text = " ".join(str(error).split("\n", 1)[0].split())
            if _private.is_out_of_memory(error):  # a later attempt may succeed with more free memory
                return f"{name}: {type(error).__name__}: {text}"
            kernels[name] = f"{name}: {type(error).__name__}: {text}"
    return kernels[name]


# Inductor's settings for all kernels: check the layouts of arguments, keep the traced layouts of results, and run as an
# ordinary Python function.
_SETTINGS = {"size_asserts": True, "comprehensive_padding": False, "triton.cudagraphs": False, "cpp_wrapper": False}


def _compiled(source, name, config):
    module = torch.fx.GraphModule({}, source.graph)
    run = _private.compile_kernel(module, source.values(), {**config, **_SETTINGS})
    single = len(source.results) == 1
    types = [getattr(value, "dtype", None) for value in source.values()]
    for node in module.graph.nodes:
        node.meta.clear()  # otherwise, the kernel would keep the traced graph's values in memory

    def results_of(args):
        # The real types and layouts of arguments can differ from the traced ones (see Layouts), and arguments may have no
        # memory, such as tensors within autograd's vmap. Then the operations run one by one.
        if [getattr(value, "dtype", None) for value in args] != types or any(
                isinstance(value, torch.Tensor) and _private.lacks_memory(value) for value in args):
            return module.forward(*args)
        try:
            return run([*args])
        except AssertionError:
            return module.forward(*args)

    def kernel(*args):
        if _private.profiler_runs():
            with torch.profiler.record_function(name):
                results = results_of(args)
        else:
            results = results_of(args)
        return results[0] if single else tuple(results)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.runs_again = kernel.is_fused = True  # a pure function of its arguments
    wrong = _wrong(kernel, source)
    return f"{name}: {wrong}" if wrong else kernel


def _wrong(kernel, source):
    """Runs a kernel once. Returns a text that says what is wrong if its results have other layouts than the traced
    ones, or share memory; else None."""
    with _private.no_modes():
        arguments = [made_like(value) for value in source.values()]
        results = pytree.tree_leaves(kernel(*arguments))
    for result, node in zip(results, source.results):
        traced = node.meta["val"]
        sizes = [[_private.hint(size) for size in part] for part in (traced.shape, traced.stride())]
        if (result.dtype, list(result.shape), list(result.stride())) != (traced.dtype, *sizes):
            return f"another layout of {node}"
        if result.untyped_storage().nbytes() != _private.hint(traced.untyped_storage().nbytes()):
            return f"another size of {node}"
    given = {a.untyped_storage().data_ptr() for a in arguments if isinstance(a, torch.Tensor)}
    made = [tensor.untyped_storage().data_ptr() for tensor in results]
    return "results that share memory" if given.intersection(made) or len(set(made)) < len(made) else None

"""Looks into regions of torch.compiler.nested_compile_region: graphs within a graph, each of which one node calls.

A region may return some of its arguments, because its backward pass reads them. The tracer describes these results like
new tensors, although they take no memory of their own.
"""

import operator

import torch


from .. import _private
from . import operators

BEFORE_ARGUMENTS = 2  # a call's first arguments are the region's module and its name
# Keys in meta. In the meta of a region's placeholder: whether operations of the forward pass read it again. In the meta
# of a call: a list of this for all placeholders.
_AGAIN = "cairn_read_again"
_RECOMPUTES = "cairn_recomputes"  # in the meta of a region's module, and of a call: see recomputes()


def module_of(node):
    """Returns the module of the region that a node calls; None if the node calls no region."""
    if not operators.is_region(node):
        return None
    return operator.attrgetter(node.args[0].target)(node.graph.owning_module)


def is_pure(module):
    """Returns whether it is known that a region has no side effects, so that it may be called to measure it. A region
    that draws random numbers is pure in this sense."""
    return all(is_pure(module_of(n)) if operators.is_region(n) else not operators.acts(n)
               for n in module.graph.nodes if n.op == "call_function")


def text_of(module):
    """Returns the code of a region and of the regions that it calls. Names of fused kernels are digests of what the
    kernels do, so that the text identifies the region."""
    inner = [module_of(n) for n in module.graph.nodes if n.op == "call_function" and operators.is_region(n)]
    return "".join([module.code, *map(text_of, inner)])


def function_of(module):
    """Returns a function that runs a region's module and returns its results, with None in place of each result that is
    an argument."""
    returned = _returned_arguments(module)
    return lambda *args: tuple(None if i in returned else value for i, value in enumerate(module(*args)))


def prepare(graph):
    """Changes the nodes that read a region's results: in place of a result that is one of the region's arguments, they
    read the argument. Such a result becomes None in the description of the call's results (``meta["val"]``). Also
    copies what mark() has noted to the meta of the call."""
    for call in [n for n in graph.nodes if n.op == "call_function" and operators.is_region(n)]:
        module = module_of(call)
        call.meta[_RECOMPUTES] = module.meta.get(_RECOMPUTES, False)
        call.meta[_AGAIN] = [n.meta.get(_AGAIN, False) for n in module.graph.find_nodes(op="placeholder")]
        returned = _returned_arguments(module)
        for part in list(call.users):
            if part.target is operator.getitem and part.args[1] in returned:
                part.replace_all_uses_with(call.args[BEFORE_ARGUMENTS + returned[part.args[1]]])
                graph.erase_node(part)
        call.meta["val"] = tuple(None if i in returned else value for i, value in enumerate(call.meta["val"]))


def mark(backward, names, recomputes):
    """Notes in the module of a region's backward pass what it computes again. ``names``: of the placeholders that
    operations of the forward pass read when they run again. ``recomputes``: whether operations run again."""
    backward.meta[_RECOMPUTES] = recomputes
    for node in backward.graph.find_nodes(op="placeholder"):
        node.meta[_AGAIN] = node.name in names


def recomputes(node):
    """Returns whether a node calls the backward pass of a region, in which operations of the forward pass run again."""
    return node.meta.get(_RECOMPUTES, False)


def read_again(node):
    """Returns the arguments of a node that operations of the forward pass read when they run again within the region
    that the node calls."""
    return [argument for argument, again in zip(node.args[BEFORE_ARGUMENTS:], node.meta.get(_AGAIN, ()))
            if again and isinstance(argument, torch.fx.Node)]


def _returned_arguments(module):
    """Returns {index of a result: index of the argument that this result is}."""
    arguments = {node: i for i, node in enumerate(module.graph.find_nodes(op="placeholder"))}
    return {i: arguments[leaf] for i, leaf in enumerate(_private.outputs(module.graph)) if leaf in arguments}

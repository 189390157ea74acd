"""Saves the memory of gradients that the caller does not give, such as the gradient of logits if a model returns logits
and a loss.

AOTAutograd's graph has an input, the *tangent*, for the gradient of each differentiated result. If the caller gives no
gradient, autograd fills in zeros, as large as the result. This file makes tangents take no memory if they are expected
to be missing: the graph adds the number zero in their place, which gives the same bits. If the caller does give such a
gradient, the graph adds the gradient, whose memory the promised peak does not include.
"""

import torch

from .. import _private
from .._graph.layouts import is_dense

_RESHAPES = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default, torch.ops.aten.reshape.default)
WORTH_TELLING = 4096  # bytes; less memory, such as that of a list of losses, causes no warning
_MISSING = "cairn_missing"  # key in the meta of a placeholder: whether it is expected to be missing


def plus_given(x, gradient, order=None, is_first=False):
    """Returns x plus a gradient; a missing gradient counts as zeros. ``order``: the dimensions of the zeros that autograd
    would make, in the order in which they lie in memory; None: as in x. The kernel of x may have chosen another layout.
    The sum then has the layout that it has with these zeros, because its layout decides how later operations round.
    ``is_first``: whether autograd's zeros come before x in the sum."""
    if gradient is not None:
        gradient = gradient.reshape(x.shape)
        return gradient + x if is_first else x + gradient
    if order is None or _private.is_batched(x):
        return x + 0
    zeros = zeros_in_order(x.shape, order, dtype=x.dtype, device="meta")
    if zeros.stride() == x.stride():
        return x + 0
    like = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    sum_ = zeros + like if is_first else like + zeros
    return torch.add(x, 0, out=torch.empty_strided(x.shape, sum_.stride(), dtype=x.dtype, device=x.device))


plus_given.runs_again = True  # pure function of its arguments


def zeros_in_order(shape, order, **options):
    """Makes zeros of a shape, whose dimensions lie in memory in this order."""
    return torch.zeros([shape[i] for i in order], **options).permute([order.index(i) for i in range(len(order))])


def is_missing(tangent):
    """Returns whether the caller is expected not to give this gradient."""
    return tangent.meta.get(_MISSING, False)


def expect_missing(graph):
    """Marks, in place, the gradients of a joint graph that are expected to be missing. A gradient is marked only if its
    single use in the graph is to be added to the gradient that its result gets from the loss. A result counts as the
    loss if it is a single number and other results are larger."""
    tangents = [n for n in graph.find_nodes(op="placeholder") if _private.is_tangent(n)]
    tangents = [n for n in tangents if isinstance(n.meta.get("val"), torch.Tensor)]
    # Otherwise, missing gradients are not handled here (Tangents.active).
    if any(_private.result_of(n.meta["desc"], _private.output_descriptions(graph)) is None
           for n in tangents if n.meta.get("desc") is not None):
        return
    of_loss = {n for n in tangents if _private.hint(n.meta["val"].numel()) == 1}
    if not of_loss or len(of_loss) == len(tangents):
        return
    for node in graph.nodes:  # nodes are in topological order
        if any(argument in of_loss for argument in node.all_input_nodes):
            of_loss.add(node)
    for tangent in tangents:
        sum_, chain = _sum_of(tangent)
        if tangent in of_loss or sum_ is None:
            continue
        is_first = sum_.args[0] is chain[-1]
        other = sum_.args[1] if is_first else sum_.args[0]
        order = _order_of(chain[-1].meta["val"])
        if other not in of_loss or not _is_alike(other, chain[-1]) or not _is_laid_out_alike(other, sum_) or order is None:
            continue
        sum_.target, sum_.args = plus_given, (other, tangent, order, is_first)
        for view in reversed(chain[1:]):
            graph.erase_node(view)
        tangent.meta[_MISSING] = True


def drop_zeros(graph, forward_outputs, metadata):
    """Removes, in place, the zero gradients of inputs that the forward pass writes without autograd noticing, such as
    averaged or clipped weights under no_grad. Such an input then gets no gradient instead of zeros, as in eager mode.
    ``metadata`` comes from _private.compiling()."""
    output, descriptions = next(iter(reversed(graph.nodes))), _private.output_descriptions(graph)
    unseen = _private.unseen_writes(metadata, graph, forward_outputs)
    for tangent in [n for n in graph.find_nodes(op="placeholder") if _private.is_tangent(n)]:
        if _private.result_of(tangent.meta.get("desc"), descriptions[:forward_outputs]) not in unseen:
            continue
        for user in list(tangent.users):
            if user is output:
                output.args = (tuple(None if leaf is tangent else leaf for leaf in _private.outputs(graph)),)
            elif user.target is torch.ops.aten.add.Tensor and not user.kwargs and len(user.args) == 2:
                other = user.args[1] if user.args[0] is tangent else user.args[0]
                if other is not tangent and _is_alike(other, tangent):
                    user.replace_all_uses_with(other)
                    graph.erase_node(user)


def _sum_of(tangent):
    """Returns (the addition that is the only reader of the tangent, the chain of nodes before the addition: the
    tangent, and views that reshape it). The addition is None if something else reads the tangent."""
    chain = [tangent]
    while len(chain[-1].users) == 1:
        user = next(iter(chain[-1].users))
        if user.target is torch.ops.aten.add.Tensor and not user.kwargs and len(user.args) == 2:
            return user, chain
        if user.target not in _RESHAPES:
            break
        chain.append(user)
    return None, chain


def _is_alike(one, other):
    if not isinstance(one, torch.fx.Node) or not isinstance(other, torch.fx.Node):
        return False
    one, other = one.meta.get("val"), other.meta.get("val")
    return (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.dtype == other.dtype and
            one.dtype.is_floating_point and one.device == other.device and one.shape == other.shape)


def _order_of(tensor):
    """Returns the dimensions of a traced tensor in the order in which they lie in memory; None if it has gaps, or no
    strides."""
    if tensor.layout is not torch.strided:
        return None
    sizes, strides = ([_private.hint(n) for n in numbers] for numbers in (tensor.shape, tensor.stride()))
    order = sorted(range(len(sizes)), key=lambda i: (-strides[i], i))
    return order if is_dense(sizes, strides) else None


def _is_laid_out_alike(one, other):
    return [_private.hint(s) for s in one.meta["val"].stride()] == [_private.hint(s) for s in other.meta["val"].stride()]


class Tangents:
    """Handles missing and given gradients of one graph's results when the graph's backward pass runs."""

    def __init__(self, joint, forward_outputs, owner, report):
        self.owner, self.report = owner, report
        descriptions = _private.output_descriptions(joint.graph)[:forward_outputs]
        # missing: names of placeholders; others: name -> index of the result; orders: name -> as in plus_given()
        self.missing, self.others, self.orders = set(), {}, {}
        self.worth_noting = False  # whether some result's gradient has at least WORTH_TELLING bytes
        for node in joint.graph.find_nodes(op="placeholder"):
            if _private.is_tangent(node) and isinstance(value := node.meta.get("val"), torch.Tensor):
                self.worth_noting |= _private.hint(value.numel()) * value.element_size() >= WORTH_TELLING
                if is_missing(node):
                    self.missing.add(node.name)
                else:
                    self.others[node.name] = _private.result_of(node.meta.get("desc"), descriptions)
                    self.orders[node.name] = _order_of(value)
        # If it is unknown for some gradient to which result it belongs, missing gradients are not handled here, and
        # autograd fills in zeros as usual.
        self.active = bool(self.missing) and None not in self.others.values()

    def shapes(self, results):
        """Returns {name: (shape, strides, type, device)} for the gradients that are not expected to be missing."""
        return {name: (results[i].shape, results[i].stride(), results[i].dtype, results[i].device)
                for name, i in self.others.items()} if self.active else {}

    def may_be_missing(self, node):
        """Tells autograd not to replace missing gradients by zeros when it runs the backward pass of this node."""
        if self.active:
            node.set_materialize_grads(False)

    def complete(self, args, names, shapes):
        """Fills in zeros for gradients that are unexpectedly missing, and reports gradients that are unexpectedly
        given."""
        given = 0
        for i, name in enumerate(names):
            if args[i] is None and name in shapes:
                # The kernel of the result may have chosen another layout than the traced one, which autograd's zeros
                # get, because AOTAutograd copies gradients into it.
                shape, stride, dtype, device = shapes[name]
                order = self.orders[name]
                args[i] = torch.empty_strided(shape, stride, dtype=dtype, device=device).zero_() if order is None else (
                    zeros_in_order(shape, order, dtype=dtype, device=device))
            elif name in self.missing and args[i] is not None:
                given += args[i].numel() * args[i].element_size() if _private.is_batched(args[i]) else (
                    args[i].untyped_storage().nbytes())
        if self.active and given:
            from .._report import size_text
            self.report.broken_by = self.report.broken_by or "a gradient that the caller gives of a result beside the loss"
            self.owner.tell(
                f"{self.report.name}: the caller gives gradients of results beside the loss, {size_text(given)} of them, which "
                f"{size_text(self.report.promised)} as promised does not count; backend(..., differentiated=\"all\") does")

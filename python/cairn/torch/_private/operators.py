"""Finds names and overloads of operators."""

import torch


def qualified_name(given):
    """Returns the name "package::name" of an operator. ``given`` is this name, an overload, a packet of all overloads,
    or the result of torch.library.custom_op."""
    if isinstance(given, torch._ops.OpOverload):
        return given._schema.name
    return str(getattr(given, "_qualname", None) or getattr(given, "_qualified_op_name", None) or given)


def overloads(name):
    """Returns all overloads of the operator "package::name"; an empty list if there is no such operator."""
    package, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, package), operator, None) if package.isidentifier() and operator.isidentifier() else None
    return [getattr(packet, overload) for overload in packet.overloads()] if packet is not None else []

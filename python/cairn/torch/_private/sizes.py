"""Handles symbolic sizes: chooses the numbers for which a graph is planned, and sets guards that make torch compile
again if a size exceeds them."""

import weakref

import sympy
import torch
from torch.fx.experimental import proxy_tensor, symbolic_shapes
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

DATA_SIZE = 4096  # size that is assumed where data decide a size without an upper bound
_UNBOUNDED = 2**48  # a limit of this size or more, such as torch's 2**63 - 1, counts as no limit
_MOST_TRIED = 128  # number of smaller sizes that are tried if an expression of sizes is not a sum of products
_LEAST_SYMBOLIC = 2  # sizes 0 and 1 are never symbolic
_planned = weakref.WeakKeyDictionary()  # ShapeEnv -> {symbol: the number for which graphs are planned}


class OnlyPresentSizes(Exception):
    """Raised if a graph cannot be planned for larger sizes than the present ones, because a plan for larger sizes would
    not be valid for the present ones."""

    def __init__(self):
        super().__init__("smaller sizes than the planned ones need more memory")


def input_sizes(module):
    """Yields (name of the input, dimension, size) for all sizes of those inputs of a captured module that are tensors
    but not parameters. The names are the same in all variants of a function."""
    for node in module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("example_value")
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            yield from ((node.name, dimension, size) for dimension, size in enumerate(value.shape))


def bound_sizes(module, planned=None):
    """Guards the symbolic sizes of a captured module's inputs, so that torch compiles again for larger ones. Exception:
    a size that was marked by torch._dynamo.mark_dynamic must not be guarded. The graph is planned for the max= of the
    mark. If there is no max=, the size can grow beyond the plan. Returns the sizes that can grow beyond the plan, as
    (position of the input, dimension or None for a number, present size).

    ``planned(name of the input, dimension, size)`` returns the size for which to plan. ``planned`` None: the present
    size."""
    for name, dimension, size in input_sizes(module) if planned is not None else ():
        if _is_given(size) and size.node.expr.is_symbol and size.node.expr not in _marked_ranges(size.node.shape_env):
            _plan_for(size, min(max(planned(name, dimension, _present(size)), hint(size)), _upper(size)))
    unbounded, of_tensors = [], _symbols_of_tensors(module)
    for position, node in enumerate(module.graph.find_nodes(op="placeholder")):
        value = node.meta.get("example_value")
        for dimension, size in _symbolic_sizes(value):
            marked = _marked_ranges(size.node.shape_env)
            if dimension is None and not size.node.expr.free_symbols & of_tensors:
                continue  # no memory depends on this number, for example the number of a step
            if not size.node.expr.free_symbols & marked.keys():
                _limit(size, hint(size))
                if dimension is None:  # unlike sizes, numbers can be negative
                    bool(size >= min(0, hint(size)))
            elif size.node.expr in marked:
                largest = marked[size.node.expr].upper
                if largest.is_Integer:
                    _plan_for(size, largest)
                else:
                    unbounded.append((position, dimension, hint(size)))
        for size in _sizes_within(value):
            if size.node.expr.free_symbols & _marked_ranges(size.node.shape_env).keys():
                continue
            _limit(size, hint(size))
    return unbounded


def _limit(size, most):
    """Guards that a size is at most ``most``. If this leaves only one value, such as 2, torch makes the size a constant.
    AOTAutograd then handles returned views of results in another way than with a symbolic size, as ``aot_eager`` has it,
    and this can be wrong. Torch also raises an error if the user marked the size. So the guard is then about the square
    of the size, from which torch derives no bounds. The square of a number below 0 says nothing about an upper
    bound."""
    if 0 < most == size.node.shape_env.bound_sympy(size.node.expr).lower:
        bool(size * size <= most * most)
    else:
        bool(size <= most)


def _symbols_of_tensors(module):
    """Returns the symbols on which the memory of the tensors of a captured module depends."""
    leaves = (leaf for node in module.graph.nodes for leaf in torch.utils._pytree.tree_leaves(node.meta.get("example_value")))
    found = set()
    for tensor in leaves:
        if isinstance(tensor, torch.Tensor):
            layout = (*tensor.stride(), tensor.storage_offset()) if tensor.layout is torch.strided else ()
            sizes = (*tensor.shape, *layout, *_sizes_within(tensor))
            found.update(*(size.node.expr.free_symbols for size in sizes if isinstance(size, torch.SymInt)))
    return found


def plan_exactly(module):
    """Makes further plans of a captured module be for the present sizes of its inputs instead of larger ones. Returns
    whether the plans so far were for larger sizes."""
    larger = False
    for _, _, size in input_sizes(module):
        if _is_planned(size):
            larger |= hint(size) > _present(size)
            _plan_for(size, _present(size))
            _limit(size, _present(size))
    return larger


def plans_for_larger(graph):
    """Returns whether the plan of a traced graph is for larger sizes of its inputs than the present ones."""
    environment = shape_env_of(node.meta.get("val") for node in graph.find_nodes(op="placeholder"))
    planned = _planned.get(environment, {}) if environment is not None else {}
    return any(size > _hint_of(environment, symbol) for symbol, size in planned.items())


def _is_planned(size):
    return isinstance(size, torch.SymInt) and size.node.expr in _planned.get(size.node.shape_env, ()) and (
        not size.node.expr.free_symbols & _marked_ranges(size.node.shape_env).keys())


def _present(size):
    """Returns the value of a size during tracing."""
    return _hint_of(size.node.shape_env, size.node.expr)


def _upper(size):
    """Returns the largest value of a size that the guards so far permit."""
    upper = size.node.shape_env.bound_sympy(size.node.expr).upper
    return int(upper) if upper.is_Integer else _UNBOUNDED


def _plan_for(size, largest):
    _planned.setdefault(size.node.shape_env, {})[size.node.expr] = sympy.Integer(largest)


def _symbolic_sizes(value):
    """Returns (dimension, size) for each symbolic size of a captured value."""
    return [(dimension, size) for dimension, size in (
        enumerate(value.shape) if isinstance(value, torch.Tensor) else [(None, value)]) if _is_given(size)]


def _is_given(size):
    """Returns whether a size is symbolic and known before the graph runs, because it does not depend on data."""
    return isinstance(size, torch.SymInt) and not is_sized_by_data(size)


def _sizes_within(value):
    """Returns the symbolic sizes of the tensors inside a tensor subclass, such as the values and the row lengths of a
    tensor with rows of different lengths."""
    if is_traceable_wrapper_subclass(value):
        for name in value.__tensor_flatten__()[0]:
            part = getattr(value, name)
            yield from (size for _, size in _symbolic_sizes(part))
            yield from _sizes_within(part)


def _marked_ranges(shape_env):
    """Returns {symbol: range} for the sizes that the user marked with a range. Guards must not narrow this range."""
    found = {}
    for tracked in shape_env.tracked_fakes or ():
        constraints = getattr(tracked.symbolic_context, "constraint_sizes", ())
        if isinstance(tracked.fake, torch.Tensor):
            for size, constraint in zip(tracked.fake.shape, constraints):
                is_range = isinstance(constraint, symbolic_shapes.StrictMinMaxConstraint)
                if isinstance(size, torch.SymInt) and is_range and size.node.expr.is_symbol:
                    found[size.node.expr] = constraint.vr
    return found


def pin_sizes(sizes, graph):
    """Guards input sizes against any change if a smaller input would make one of the storage sizes ``sizes`` larger. An
    example is a model that pads inputs to a fixed length: the shorter the input, the larger the padding."""
    known, numbers = {}, set()  # symbol -> SymInt; symbols of numbers, which unlike sizes may be below 2
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for size in (value.shape if isinstance(value, torch.Tensor) else [value]):
            if isinstance(size, torch.SymInt) and not _from_data(size) and size.node.expr.is_symbol:
                known[size.node.expr] = size
                numbers.update({size.node.expr} if size is value else ())
    for expression in {size.node.expr for size in sizes if isinstance(size, torch.SymInt)}:
        if not expression.free_symbols <= known.keys():
            continue
        now = {symbol: hint(known[symbol]) for symbol in expression.free_symbols}
        planned = expression.subs(now)
        for symbol, size in now.items():
            if any(_exceeds(expression, {**now, symbol: less}, planned)
                   for less in _smaller(expression, min(0, size) if symbol in numbers else _LEAST_SYMBOLIC, size)):
                if symbol in _marked_ranges(known[symbol].node.shape_env):
                    raise NotImplementedError("a size that was marked dynamic makes something larger when it is smaller")
                if size != _present(known[symbol]):
                    raise OnlyPresentSizes()
                bool(known[symbol] == size)


def _exceeds(expression, sizes, planned):
    """Returns whether an expression is larger than ``planned`` for the given sizes of its symbols. Returns False if the
    expression divides by zero, because the model itself cannot run with such sizes."""
    try:
        return bool(expression.subs(sizes) > planned)
    except (TypeError, ZeroDivisionError):
        return False


def _smaller(expression, least, size):
    """Returns sizes from ``least`` to below ``size`` at which the expression may be larger than at ``size``. A sum of
    products, such as the bytes of most tensors, grows with each size. Differences, remainders and quotients may grow
    when a size falls, so for these, many sizes are returned."""
    symbols = expression.free_symbols
    if expression.is_polynomial(*symbols) and all(factor > 0 for factor in sympy.Poly(expression, *symbols).coeffs()):
        return {least, size // 2} if least < size else ()
    last = range(max(least, size - _MOST_TRIED), size)
    return sorted({*last, *range(least, size, max(1, (size - least) // _MOST_TRIED))})


def may_exceed_plan(size):
    """Returns whether a symbolic size can be larger than planned. This happens if the size grows while another size,
    which depends on data, is below the upper bound of that other size."""
    if not isinstance(size, torch.SymInt):
        return False
    expression, environment = size.node.expr, size.node.shape_env
    symbols = symbolic_shapes.free_unbacked_symbols(size)
    if not symbols or not all(_is_bounded(environment, symbol) for symbol in symbols):
        return False
    planned = hint(size)
    now = {symbol: _hint_of(environment, symbol) for symbol in expression.free_symbols}
    for symbol in symbols:
        bounds = environment.bound_sympy(symbol)
        least = int(bounds.lower) if bounds.lower.is_Integer else 0
        tried = {*_smaller(expression, max(0, least), int(bounds.upper)), int(bounds.upper)}
        if any(_exceeds(expression, {**now, symbol: value}, planned) for value in tried):
            return True
    return False


def sized_by_data(graph):
    """Returns the nodes of a traced graph that introduce an unbounded size that depends on data."""
    found, known = [], set()
    for node in graph.nodes:
        values = torch.utils._pytree.tree_leaves(node.meta.get("val"))
        sizes = [size for value in values for size in (value.shape if isinstance(value, torch.Tensor) else ())
                 if isinstance(size, torch.SymInt)]
        new = {(symbol, size.node.shape_env) for size in sizes
               for symbol in symbolic_shapes.free_unbacked_symbols(size)} - known
        known |= new
        if any(not _is_bounded(environment, symbol) for symbol, environment in new):
            found.append(node)
    return found


def _is_bounded(environment, symbol):
    upper = environment.bound_sympy(symbol).upper
    return bool(upper.is_Integer) and upper < _UNBOUNDED


def _from_data(size):
    return bool(symbolic_shapes.free_unbacked_symbols(size))


def shape_env_of(values):
    """Returns the ShapeEnv of the symbolic sizes in these values; None if all sizes are numbers."""
    return next((size.node.shape_env for value in values for size in _numbers_of(value) if is_sym(size)), None)


def _numbers_of(value):
    """Returns the numbers that describe the layout of a tensor; for a number, the number itself."""
    return (*value.shape, *value.stride(), value.storage_offset()) if isinstance(value, torch.Tensor) else (value,)


def symbols_within(values):
    """Returns the symbols that these values contain only within expressions, such as s in (s + 1) // 2. The values then
    do not say what s is."""
    numbers = [number.node.expr for value in values for number in _numbers_of(value) if is_sym(number)]
    return set().union(*(number.free_symbols for number in numbers)) - set(numbers)


def is_symbol(value, symbols):
    """Returns whether the value is a size, and one of these symbols."""
    return isinstance(value, torch.SymInt) and value.node.expr in symbols


def is_sized_by_data(size):
    """Returns whether a size depends on data, so that it is unknown until the data are known."""
    return isinstance(size, torch.SymInt) and (symbolic_shapes.is_nested_int(size) or _from_data(size))


def is_sym(value):
    """Returns whether the value is a number known only when the graph runs: a SymInt, SymFloat or SymBool."""
    return isinstance(value, proxy_tensor.py_sym_types)


def hint(value):
    """Returns the integer for which a symbolic size is planned: its maximum if the user marked it with one, else its
    value during tracing, or DATA_SIZE if it depends on data. A symbolic number that is an expression of sizes is
    computed from their hints. This function adds no guards."""
    if isinstance(value, int):
        return value
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return _number_of(value)
    if not isinstance(value, torch.SymInt):
        return int(value)
    environment = value.node.shape_env
    planned = _planned.get(environment) if environment is not None else None
    if planned:
        expression = value.node.expr.xreplace({environment.replace(symbol): size for symbol, size in planned.items()})
        return _hint_of(environment, expression)
    if hasattr(symbolic_shapes, "optimization_hint"):
        return int(symbolic_shapes.optimization_hint(value, fallback=DATA_SIZE))
    return _hint_of(environment, value.node.expr) if environment is not None else DATA_SIZE


def _number_of(value):
    kind, expression = (float if isinstance(value, torch.SymFloat) else bool), value.node.expr
    sizes = {symbol: _hint_of(value.node.shape_env, symbol) for symbol in expression.free_symbols}
    try:
        return kind(expression.xreplace(sizes))
    except TypeError:  # the number depends on data
        return kind(1)


def _hint_of(environment, expression):
    if hasattr(environment, "optimization_hint"):
        return int(environment.optimization_hint(expression, fallback=DATA_SIZE))
    known = environment.size_hint(expression, allow_none=True)
    if known is None:  # torch 2.9 has no hint for sizes that depend on data
        expression = environment.simplify(expression)
        assumed = {symbol: _assumed(environment, symbol) for symbol in expression.free_symbols if _is_of_data(symbol)}
        known = environment.size_hint(expression.xreplace(assumed), allow_none=True)
    return DATA_SIZE if known is None else int(known)


def _is_of_data(symbol):
    return symbolic_shapes.symbol_is_type(symbol, (symbolic_shapes.SymT.UNBACKED_INT, symbolic_shapes.SymT.UNBACKED_FLOAT))


def _assumed(environment, symbol):
    """Returns the value within a symbol's bounds that is nearest to DATA_SIZE."""
    bounds = environment.bound_sympy(symbol)
    largest = min(DATA_SIZE, int(bounds.upper)) if _is_bounded(environment, symbol) else DATA_SIZE
    return sympy.Integer(max(largest, int(bounds.lower)) if bounds.lower.is_Integer else largest)

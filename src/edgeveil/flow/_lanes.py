"""Rows of lanes as SIMD values, for numba.

numba switches LLVM's straight-line vectoriser off, so a short loop over the lanes of a row
becomes scalar code at less than half the speed. Here a row is one value of an LLVM vector
type, with +, -, *, `low`, `high` and `size` lane by lane. Nothing is contracted or reordered:
a lane gets the same bits at any width.

`sum_rows` fixes the order of every sum over neighbours. Entry k of a node goes to accumulator
k mod 8; after each full 64 x 8 entries the accumulators are added up as a tree, onto the
total; then the same for the full groups of 8 that remain; what is left is added one by one.
Eight independent accumulators hide the latency of an addition, and a term takes part in few
additions (docs/theory/float-error.md).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

_GROUP = 8  # accumulators
_GROUPS = 64  # groups after which they are flushed
_AHEAD = 32  # entries to prefetch ahead

_INT64, _INT32 = ir.IntType(64), ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()


class RowType(types.Type):  # type: ignore[misc]  # numba has no types
    """The numba type of one row, of float64 or float32 numbers."""

    def __init__(self, lanes: int, number: Any) -> None:
        self.lanes, self.number = lanes, number
        super().__init__(name=f"Row({lanes}, {number})")

    def vector(self) -> Any:
        """The LLVM type."""
        single = self.number == types.float32
        return ir.VectorType(ir.FloatType() if single else ir.DoubleType(), self.lanes)


@register_model(RowType)
class _RowModel(models.PrimitiveModel):  # type: ignore[misc]  # numba has no types
    def __init__(self, manager: Any, fe_type: RowType) -> None:
        super().__init__(manager, fe_type, fe_type.vector())


def _row_pointer(context: Any, builder: Any, array_type: Any, array: Any, row: RowType) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(data, ir.PointerType(row.vector()))


@intrinsic(prefer_literal=True)
def load(_typing: Any, lanes: Any, array: Any, row: Any) -> Any:
    """Row `row` of a C-contiguous (rows, lanes) array."""
    kind = RowType(lanes.literal_value, array.dtype)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows = _row_pointer(context, builder, signature.args[1], values[1], kind)
        return builder.load(builder.gep(rows, [values[2]]), align=array.dtype.bitwidth // 8)

    return kind(lanes, array, types.int64), generate


@intrinsic
def store(_typing: Any, value: Any, array: Any, row: Any) -> Any:
    """Write a row into a C-contiguous (rows, lanes) array of its kind."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows = _row_pointer(context, builder, signature.args[1], values[1], value)
        place = builder.gep(rows, [values[2]])
        builder.store(values[0], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(value, array, types.int64), generate


@intrinsic(prefer_literal=True)
def splat(_typing: Any, lanes: Any, number: Any, like: Any) -> Any:
    """The same number in every lane, as a row of the array `like`."""
    kind = RowType(lanes.literal_value, like.dtype)

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        vector, value = kind.vector(), values[1]
        if vector.element != value.type:
            value = builder.fptrunc(value, vector.element)
        row: Any = ir.Constant(vector, ir.Undefined)
        for lane in range(kind.lanes):
            row = builder.insert_element(row, value, _INT32(lane))
        return row

    return kind(lanes, types.float64, like), generate


@intrinsic
def wide(_typing: Any, row: Any) -> Any:
    """The row as float64."""
    kind = RowType(row.lanes, types.float64)

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return values[0] if kind == row else builder.fpext(values[0], kind.vector())

    return kind(row), generate


def _lanewise(build: Callable[[Any, Any, Any], Any]) -> Any:
    """Make an intrinsic of two rows."""

    @intrinsic
    def operation(_typing: Any, left: Any, right: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return build(builder, *values)

        return left(left, left), generate

    return operation


low = _lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))
high = _lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


@intrinsic
def size(_typing: Any, row: Any) -> Any:
    """Absolute values."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        zero = ir.Constant(values[0].type, [0.0] * row.lanes)
        negative = builder.fsub(zero, values[0])
        return builder.select(builder.fcmp_ordered(">", values[0], zero), values[0], negative)

    return row(row), generate


class _TwoRows(AbstractTemplate):  # type: ignore[misc]  # numba has no types
    def generic(self, args: Any, _keywords: Any) -> Any:
        both = len(args) == 2 and isinstance(args[0], RowType) and args[0] == args[1]
        return signature(args[0], *args) if both else None


for _operator, _method in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    infer_global(_operator)(_TwoRows)

    def _lower(_context: Any, builder: Any, _signature: Any, values: Any, *, method: str) -> Any:
        return getattr(builder, method)(*values)

    lower_builtin(_operator, RowType, RowType)(partial(_lower, method=_method))


@intrinsic(prefer_literal=True)
def sum_rows(
    _typing: Any,
    lanes: Any,
    g: Any,  # IN  (n, lanes) C-contiguous
    indices: Any,  # IN  (nnz) non-negative integers
    first: Any,  # IN  entries first .. last - 1 of `indices` are summed
    last: Any,
) -> Any:
    """Sum of g[indices[k]] for k in first .. last - 1, in the order given above.

    Indices of more than 16 bits mean a g beyond the cache: its rows are fetched ahead.
    """
    kind = RowType(lanes.literal_value, g.dtype)
    beyond_cache = indices.dtype.bitwidth > 16

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        g_value, index_value, start, stop = values[1:]
        row_type = kind.vector()
        zero = ir.Constant(row_type, [0.0] * kind.lanes)
        rows = _row_pointer(context, builder, signature.args[1], g_value, kind)
        index_array = context.make_array(signature.args[2])(context, builder, index_value)
        newest = builder.sub(index_array.nitems, _INT64(1))

        def pointer(k: Any) -> Any:
            index = builder.load(builder.gep(index_array.data, [k]))
            if index.type.width < 64:
                index = builder.zext(index, _INT64)
            return builder.gep(rows, [index])

        def term(k: Any) -> Any:
            return builder.load(pointer(k), align=g.dtype.bitwidth // 8)

        def fetch(k: Any) -> None:
            ahead = builder.add(k, _INT64(_AHEAD))
            inside = builder.icmp_signed("<", ahead, newest)
            place = builder.bitcast(pointer(builder.select(inside, ahead, newest)), _BYTES)
            kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            builder.call(function, [place, _INT32(0), _INT32(3), _INT32(1)])

        def up_to(begin: Any, end: Any, step: int) -> Any:
            return cgutils.for_range_slice(builder, begin, end, _INT64(step), _INT64)

        total = cgutils.alloca_once_value(builder, zero)
        builder.store(zero, total)
        sums = [cgutils.alloca_once(builder, row_type) for _ in range(_GROUP)]
        whole = builder.add(start, builder.and_(builder.sub(stop, start), _INT64(-_GROUP)))
        with up_to(start, whole, _GROUP * _GROUPS) as (chunk, _):
            for place in sums:
                builder.store(zero, place)
            end = builder.add(chunk, _INT64(_GROUP * _GROUPS))
            end = builder.select(builder.icmp_signed("<", end, whole), end, whole)
            with up_to(chunk, end, _GROUP) as (group, _):
                places = [builder.add(group, _INT64(i)) for i in range(_GROUP)]
                if beyond_cache:
                    for k in places:
                        fetch(k)
                for place, k in zip(sums, places, strict=True):
                    builder.store(builder.fadd(builder.load(place), term(k)), place)
            tree = [builder.load(place) for place in sums]
            while len(tree) > 1:
                tree = [builder.fadd(a, b) for a, b in zip(tree[::2], tree[1::2], strict=True)]
            builder.store(builder.fadd(builder.load(total), tree[0]), total)
        with up_to(whole, stop, 1) as (k, _):
            if beyond_cache:
                fetch(k)
            builder.store(builder.fadd(builder.load(total), term(k)), total)
        return builder.load(total)

    return kind(lanes, g, indices, types.int64, types.int64), generate

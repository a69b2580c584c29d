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
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = ["VERSION", "high", "load", "low", "size", "splat", "store", "sum_rows"]

# numba keeps compiled kernels until their own file changes, and would not notice a change of
# this one. What a kernel closes over is part of the key, so kernels close over this number.
VERSION = zlib.crc32(Path(__file__).read_bytes())

_GROUP = 8  # accumulators
_GROUPS = 64  # groups after which they are flushed
_AHEAD = 32  # entries to prefetch ahead

_DOUBLE, _INT64, _INT32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()


class RowType(types.Type):  # type: ignore[misc]  # numba has no types
    """The numba type of one row."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"Row({lanes})")


@register_model(RowType)
class _RowModel(models.PrimitiveModel):  # type: ignore[misc]  # numba has no types
    def __init__(self, manager: Any, fe_type: RowType) -> None:
        super().__init__(manager, fe_type, ir.VectorType(_DOUBLE, fe_type.lanes))


def _row_pointer(context: Any, builder: Any, array_type: Any, array: Any, lanes: int) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(data, ir.PointerType(ir.VectorType(_DOUBLE, lanes)))


@intrinsic(prefer_literal=True)
def load(_typing: Any, lanes: Any, array: Any, row: Any) -> Any:
    """Row `row` of a C-contiguous (rows, lanes) float64 array."""
    width = lanes.literal_value

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows = _row_pointer(context, builder, signature.args[1], values[1], width)
        return builder.load(builder.gep(rows, [values[2]]), align=8)

    return RowType(width)(lanes, array, types.int64), generate


@intrinsic
def store(_typing: Any, value: Any, array: Any, row: Any) -> Any:
    """Write a row into a C-contiguous (rows, lanes) float64 array."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows = _row_pointer(context, builder, signature.args[1], values[1], value.lanes)
        builder.store(values[0], builder.gep(rows, [values[2]]), align=8)
        return context.get_dummy_value()

    return types.void(value, array, types.int64), generate


@intrinsic(prefer_literal=True)
def splat(_typing: Any, lanes: Any, number: Any) -> Any:
    """The same number in every lane."""
    width = lanes.literal_value

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        row: Any = ir.Constant(ir.VectorType(_DOUBLE, width), ir.Undefined)
        for lane in range(width):
            row = builder.insert_element(row, values[1], _INT32(lane))
        return row

    return RowType(width)(lanes, types.float64), generate


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
    version: Any,  # VERSION: not used, but in the key of numba's cache
    g: Any,  # IN  (n, lanes) C-contiguous float64
    indices: Any,  # IN  (nnz) non-negative integers
    first: Any,  # IN  entries first .. last - 1 of `indices` are summed
    last: Any,
) -> Any:
    """Sum of g[indices[k]] for k in first .. last - 1, in the order given above.

    Indices of more than 16 bits mean a g beyond the cache: its rows are fetched ahead.
    """
    width = lanes.literal_value
    wide = indices.dtype.bitwidth > 16

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        g_value, index_value, start, stop = values[2:]
        row_type = ir.VectorType(_DOUBLE, width)
        zero = ir.Constant(row_type, [0.0] * width)
        rows = _row_pointer(context, builder, signature.args[2], g_value, width)
        index_array = context.make_array(signature.args[3])(context, builder, index_value)
        newest = builder.sub(index_array.nitems, _INT64(1))

        def pointer(k: Any) -> Any:
            index = builder.load(builder.gep(index_array.data, [k]))
            if index.type.width < 64:
                index = builder.zext(index, _INT64)
            return builder.gep(rows, [index])

        def term(k: Any) -> Any:
            return builder.load(pointer(k), align=8)

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
                if wide:
                    for k in places:
                        fetch(k)
                for place, k in zip(sums, places, strict=True):
                    builder.store(builder.fadd(builder.load(place), term(k)), place)
            tree = [builder.load(place) for place in sums]
            while len(tree) > 1:
                tree = [builder.fadd(a, b) for a, b in zip(tree[::2], tree[1::2], strict=True)]
            builder.store(builder.fadd(builder.load(total), tree[0]), total)
        with up_to(whole, stop, 1) as (k, _):
            if wide:
                fetch(k)
            builder.store(builder.fadd(builder.load(total), term(k)), total)
        return builder.load(total)

    return RowType(width)(lanes, version, g, indices, types.int64, types.int64), generate

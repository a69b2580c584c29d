"""SIMD rows for numba: a row of lanes as one value of an LLVM vector type.

A kernel works on several sources side by side; row v of its state holds their values at node v,
one source in each lane. numba disables LLVM's SLP vectoriser, so a plain loop over the lanes of a
row becomes scalar code at less than half the speed. This module gives numba a type `RowType` and:

load, store      a row from and to a C-contiguous (rows, lanes) array
splat            one number in every lane
+ - *            lane by lane, as `minimum`, `maximum`, `absolute`, `to_float64`
sum_rows         sum of the rows of a node's neighbours, the inner loop of every kernel

Nothing is contracted (fused) or reordered: a lane gets the same bits at any width.

`sum_rows` adds in a fixed order. Entry k of a node goes to accumulator k mod 8. After each full
64 x 8 entries the accumulators are summed as a tree and added to the total; the full groups of 8
that remain are treated the same way; the last entries are added one by one. Eight independent
accumulators hide the latency of an addition, and every term takes part in few additions, which
keeps the rounding error small (docs/theory/float-error.md).
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

_ACCUMULATORS = 8
_FLUSH_AFTER = 64  # entries per accumulator
_PREFETCH = 32  # entries ahead

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
    """The address of an array's data, as that of its first row."""
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
    """Write a row into a C-contiguous (rows, lanes) array of the same number type."""

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
def to_float64(_typing: Any, row: Any) -> Any:
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


minimum = _lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))
maximum = _lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


@intrinsic
def absolute(_typing: Any, row: Any) -> Any:
    """Absolute values."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        zero = ir.Constant(values[0].type, [0.0] * row.lanes)
        negative = builder.fsub(zero, values[0])
        return builder.select(builder.fcmp_ordered(">", values[0], zero), values[0], negative)

    return row(row), generate


class _TwoRows(AbstractTemplate):  # type: ignore[misc]  # numba has no types
    """The type of row + row, for numba's operators."""

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

    Indices of more than 16 bits mean that g does not fit into the cache: its rows are prefetched.

    As pseudocode, without prefetching, with entries numbered from 0::

        total = 0
        for chunk of at most 64 x 8 entries, as long as there are full groups of 8:
            sums = [0] * 8
            for k in chunk:
                sums[k % 8] += g[indices[k]]
            total += ((sums[0] + sums[1]) + (sums[2] + sums[3])) + (the same of 4 to 7)
        for k in the up to 7 entries that are left:
            total += g[indices[k]]
    """
    kind = RowType(lanes.literal_value, g.dtype)
    prefetches = indices.dtype.bitwidth > 16

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        g_value, index_value, start, stop = values[1:]
        row_type = kind.vector()
        zero = ir.Constant(row_type, [0.0] * kind.lanes)
        rows = _row_pointer(context, builder, signature.args[1], g_value, kind)
        index_array = context.make_array(signature.args[2])(context, builder, index_value)
        last_entry = builder.sub(index_array.nitems, _INT64(1))

        def pointer(k: Any) -> Any:
            """Address of row indices[k] of g."""
            index = builder.load(builder.gep(index_array.data, [k]))
            if index.type.width < 64:
                index = builder.zext(index, _INT64)
            return builder.gep(rows, [index])

        def term(k: Any) -> Any:
            """Row indices[k] of g. Blocks may be aligned to single numbers only."""
            return builder.load(pointer(k), align=g.dtype.bitwidth // 8)

        def prefetch(k: Any) -> None:
            """Start to load the row that is needed 32 entries later, or the last one."""
            ahead = builder.add(k, _INT64(_PREFETCH))
            inside = builder.icmp_signed("<", ahead, last_entry)
            address = builder.bitcast(pointer(builder.select(inside, ahead, last_entry)), _BYTES)
            kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            # for reading, into all cache levels, data
            builder.call(function, [address, _INT32(0), _INT32(3), _INT32(1)])

        def loop(begin: Any, end: Any, step: int) -> Any:
            """``for k in range(begin, end, step)``; the body is what the `with` block builds."""
            return cgutils.for_range_slice(builder, begin, end, _INT64(step), _INT64)

        def add_to(variable: Any, value: Any) -> None:
            builder.store(builder.fadd(builder.load(variable), value), variable)

        # Variables are allocated once at the function's entry, so they are set to 0 here, each time
        # that the sum is computed. LLVM keeps them in registers.
        total = cgutils.alloca_once(builder, row_type)
        builder.store(zero, total)
        sums = [cgutils.alloca_once(builder, row_type) for _ in range(_ACCUMULATORS)]
        count = builder.sub(stop, start)
        # The end of the last full group: count rounded down to a multiple of 8.
        whole = builder.add(start, builder.and_(count, _INT64(-_ACCUMULATORS)))
        chunk_size = _ACCUMULATORS * _FLUSH_AFTER
        with loop(start, whole, chunk_size) as (chunk, _):
            for accumulator in sums:
                builder.store(zero, accumulator)
            end = builder.add(chunk, _INT64(chunk_size))
            end = builder.select(builder.icmp_signed("<", end, whole), end, whole)
            with loop(chunk, end, _ACCUMULATORS) as (group, _):
                entries = [builder.add(group, _INT64(i)) for i in range(_ACCUMULATORS)]
                if prefetches:
                    for k in entries:
                        prefetch(k)
                for accumulator, k in zip(sums, entries, strict=True):
                    add_to(accumulator, term(k))
            tree = [builder.load(accumulator) for accumulator in sums]
            while len(tree) > 1:
                tree = [builder.fadd(a, b) for a, b in zip(tree[::2], tree[1::2], strict=True)]
            add_to(total, tree[0])
        with loop(whole, stop, 1) as (k, _):
            if prefetches:
                prefetch(k)
            add_to(total, term(k))
        return builder.load(total)

    return kind(lanes, g, indices, types.int64, types.int64), generate

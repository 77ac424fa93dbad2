"""Units of a network that can change places: the indices of axes, joined where they must move together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Place = tuple[int, ...]
Entry = tuple[int, Place]
"""One index of an axis: the unit that it belongs to, and its place within the unit (coarse to fine).

A unit that is one channel has the place ``()``. After flattening images, pixel p of channel u is the entry (u, (p,)).
"""
Axis = list[Entry] | None
"""The entries of an axis of a tensor; None for an axis whose order is fixed, such as samples or pixels."""


class Units:
    """A union-find structure in which a unit can also become a place within another unit.

    >>> units = Units()
    >>> channels, columns = units.fresh(1), units.fresh(2)
    >>> units.join_axes([(channels[0][0], (pixel,)) for pixel in range(2)], columns) is None
    False
    >>> [units.resolve(column) for column in columns]
    [(0, (0,)), (0, (1,))]
    """

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._within: list[Place] = []
        self._fixed: list[bool] = []

    def fresh(self, count: int, *, fixed: bool = False) -> list[Entry]:
        """New units, each with one entry."""
        first = len(self._parent)
        self._parent += range(first, first + count)
        self._within += [()] * count
        self._fixed += [fixed] * count
        return [(unit, ()) for unit in range(first, first + count)]

    def resolve(self, entry: Entry) -> Entry:
        """The unit that an entry moves with, after all joins, and its place there."""
        unit, place = entry
        parent = self._parent
        while parent[unit] != unit:
            above = parent[unit]
            if parent[above] != above:  # shorten the way
                self._within[unit] = self._within[above] + self._within[unit]
                parent[unit] = parent[above]
            place = self._within[unit] + place if self._within[unit] else place
            unit = parent[unit]
        return unit, place

    def is_fixed(self, unit: int) -> bool:
        return self._fixed[self.resolve((unit, ()))[0]]

    def fix(self, entry: Entry) -> None:
        """The unit of this entry keeps its place."""
        self._fixed[self.resolve(entry)[0]] = True

    def fix_axis(self, axis: Axis) -> None:
        for entry in axis or ():
            self.fix(entry)

    def join(self, one: Entry, other: Entry) -> None:
        """From now on the two entries move together; where that cannot be expressed, both are fixed."""
        (a, at_a), (b, at_b) = self.resolve(one), self.resolve(other)
        if a == b:
            if at_a != at_b:
                self._fixed[a] = True
        elif len(at_a) >= len(at_b) and at_a[len(at_a) - len(at_b) :] == at_b:
            self._link(b, a, at_a[: len(at_a) - len(at_b)])
        elif at_b[len(at_b) - len(at_a) :] == at_a:
            self._link(a, b, at_b[: len(at_b) - len(at_a)])
        else:
            self._fixed[a] = self._fixed[b] = True

    def _link(self, unit: int, parent: int, within: Place) -> None:
        self._parent[unit] = parent
        self._within[unit] = within
        self._fixed[parent] = self._fixed[parent] or self._fixed[unit]

    def join_axes(self, one: Axis, other: Axis) -> Axis:
        """Axes of equal length whose indices correspond."""
        if one is None or other is None:
            self.fix_axis(one)
            self.fix_axis(other)
            return None
        if one is not other:
            for a, b in zip(one, other, strict=True):
                self.join(a, b)
        return one

    def join_all(self, axes: Iterable[Axis]) -> Axis:
        """Axes of equal length whose indices correspond."""
        first, *others = axes
        for other in others:
            first = self.join_axes(first, other)
        return first

    def entries(self, axis: Axis, size: int) -> list[Entry]:
        """The entries of an axis; new fixed ones for an axis in fixed order."""
        return self.fresh(size, fixed=True) if axis is None else axis

    def join_blocks(self, axis: Sequence[Entry], blocks: Sequence[Entry]) -> None:
        """Consecutive indices of an axis become the places within one block each."""
        size = len(axis) // len(blocks)
        for index, entry in enumerate(axis):
            unit, place = blocks[index // size]
            self.join((unit, (*place, index % size) if size > 1 else place), entry)

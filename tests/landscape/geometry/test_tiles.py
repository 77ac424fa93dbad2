"""Tiles cover a grid once, coarse levels first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from valleyscope.landscape.geometry.tiles import tiles


@given(rows=some.integers(1, 60), columns=some.integers(1, 60), size=some.integers(1, 200))
def test_every_point_is_in_exactly_one_tile(rows: int, columns: int, size: int) -> None:
    found = tiles(rows, columns, size)
    count = np.zeros((rows, columns), dtype=int)
    for tile in found:
        assert 1 <= len(tile) <= size
        np.add.at(count, (tile.rows, tile.columns), 1)
    assert (count == 1).all()
    assert [tile.level for tile in found] == sorted(tile.level for tile in found)


@given(side=some.integers(9, 101), size=some.integers(1, 200))
def test_the_first_level_is_a_whole_picture_of_nine_by_nine(side: int, size: int) -> None:
    first = [tile for tile in tiles(side, side, size) if tile.level == 0]
    rows = sorted({int(row) for tile in first for row in tile.rows})
    columns = sorted({int(column) for tile in first for column in tile.columns})
    assert len(rows) == len(columns) == 9
    assert rows[0] == columns[0] == 0
    assert rows[-1] == columns[-1] == side - 1
    assert sum(map(len, first)) == 81


@pytest.mark.parametrize("field", ["rows", "columns", "size"])
def test_no_points_are_refused_by_name(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} is 0"):
        tiles(**{"rows": 3, "columns": 3, "size": 3, field: 0})

"""Long lists of small tuples, for transcripts of any length: kept in a sixth of what the tuples themselves would take.

An item is a text, a kind and three numbers: a `Span`, or a `Fragment` of one. Texts come again and again, and are kept
once.
"""

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Generic, TypeVar, overload

ItemT = TypeVar("ItemT", bound=tuple[str, StrEnum, int, int, int])
_NUMBERS = 3


class Packed(Sequence[ItemT]):
    """Items, which `item` makes of what is kept whenever they are looked at."""

    def __init__(self, item: Callable[[str, Any, int, int, int], ItemT]) -> None:
        self._item = item
        self._texts: list[str] = []
        self._kinds: list[StrEnum] = []
        self._numbers = array("i")

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> ItemT: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemT]: ...

    def __getitem__(self, index: int | slice) -> ItemT | list[ItemT]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        return self._item(
            self._texts[index], self._kinds[index], *self._numbers[_NUMBERS * index : _NUMBERS * (index + 1)]
        )

    def append(self, item: ItemT) -> None:
        """Add an item to the end."""
        text, kind, *numbers = item
        self._texts.append(sys.intern(text))
        self._kinds.append(kind)
        self._numbers.extend(numbers)

    def become(self, other: "Packed[ItemT]", length: int) -> None:
        """Be the first `length` items of `other`, of which these are the beginning, or the other way round."""
        begin = min(len(self), length)
        self.cut(begin)
        self._texts += other._texts[begin:length]
        self._kinds += other._kinds[begin:length]
        self._numbers += other._numbers[_NUMBERS * begin : _NUMBERS * length]

    def cut(self, length: int) -> None:
        """Forget what stands behind the first `length` items."""
        del self._texts[length:], self._kinds[length:], self._numbers[_NUMBERS * length :]


class PackedRows(Sequence[list[ItemT]], Generic[ItemT]):
    """Rows of items, at least one. The last is a list that may be changed; those before stay as they are."""

    def __init__(self, item: Callable[[str, Any, int, int, int], ItemT]) -> None:
        self.last: list[ItemT] = []
        self._items = Packed(item)
        self._ends: list[int] = []  # of every row but the last, among the items

    def __len__(self) -> int:
        return len(self._ends) + 1

    @overload
    def __getitem__(self, index: int) -> list[ItemT]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[ItemT]]: ...

    def __getitem__(self, index: int | slice) -> list[ItemT] | list[list[ItemT]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        return self.last if index == len(self._ends) else self._items[self._begin(index) : self._ends[index]]

    def begin(self, items: Iterable[ItemT] = ()) -> None:
        """Begin another row, with these items."""
        for item in self.last:
            self._items.append(item)
        self._ends.append(len(self._items))
        self.last = list(items)

    def cut(self, row: int) -> None:
        """Forget what is in `row` and all behind it: it is the last now, and empty."""
        self.last = []
        if row < len(self._ends):
            self._items.cut(self._begin(row))
            del self._ends[row:]

    def _begin(self, row: int) -> int:
        return self._ends[row - 1] if row else 0

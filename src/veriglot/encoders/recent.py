"""What was encoded of late: a bounded memory by content, since the same evidence comes back with every response."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veriglot.encoders.pieces import Piece

__all__ = ["Recent"]


class Recent:
    """Pieces by their text, the least recently used dropped first. Threads may share it.

    Args:
        room: bytes of vectors to keep; 0 keeps nothing.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self._held = 0
        self._pieces: OrderedDict[str, Piece] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> Piece | None:
        """The piece of `text`, or None where it is not kept."""
        with self._lock:
            piece = self._pieces.get(text)
            if piece is not None:
                self._pieces.move_to_end(text)
            return piece

    def put(self, text: str, piece: Piece) -> None:
        """Keep a piece, unless it alone is more than there is room for."""
        if piece.nbytes > self.room:
            return
        with self._lock:
            before = self._pieces.pop(text, None)
            self._held += piece.nbytes - (before.nbytes if before else 0)
            self._pieces[text] = piece
            while self._held > self.room:
                self._held -= self._pieces.popitem(last=False)[1].nbytes

    @property
    def held(self) -> int:
        """Bytes of vectors that are kept."""
        return self._held

    def __len__(self) -> int:
        return len(self._pieces)

"""The turn of a program that waits: from the words of its cell until it is told to go.

It is called while the agent still writes that the attempt starts, and gets ready beside that. Until
it is told to go it holds the cell's log, writes nothing, and starts nothing.

A module of its own, and that it is staged says that a release's program can be called; an older
one's is at work as soon as it is let in.
"""

from __future__ import annotations

from onbox.cell.wrapper.waiting import GO, Said


class Turn:
    def __init__(self, said: Said) -> None:
        self._said = said

    def may_go(self) -> bool:
        """Whether it is told to go; not where the agent is gone, or could not write it."""
        told = self._said.next()
        self._said.close()
        return told is not None and told[0] == GO

"""What run_one.sh becomes: `python -I -S begin.py attempt WORD ...`, staged on the box's own disk.

A script and no folder that is run, because that alone costs half a bare Python's start. What is not
staged is found in the agent's file, which lies beside the program.
"""

import os
import sys

OURS = ("boxcar", "onbox")


class InArchive:
    """Finds what of ours is not staged in the agent's file, which lies beside the program."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name.partition(".")[0] not in OURS:
            return None
        import zipimport

        below = name.rpartition(".")[0].replace(".", "/")
        entries = os.listdir(self._folder)  # noqa: PTH208  (without Path, here and below)
        archives = [entry for entry in entries if entry.endswith(".pyz")]
        found = (zipimport.zipimporter(f"{self._folder}/{one}/{below}") for one in archives)
        return next(filter(None, (one.find_spec(name) for one in found)), None)


def main(program: str) -> int:
    # Behind Python's own: what somebody may have left there is never imported for one of these.
    sys.path.append(program)
    sys.meta_path.append(InArchive(program.rpartition("/")[0]))  # type: ignore[arg-type]
    from onbox.cell.wrapper import words

    try:
        return words.run(sys.argv[2:])
    except Exception as error:
        from onbox.cell.wrapper import failed

        return failed.said(error)


if __name__ == "__main__":
    # At once: nothing of ours waits to be written, and taking the interpreter down takes a while.
    os._exit(main(os.path.abspath(__file__).rpartition("/")[0]))  # noqa: PTH100

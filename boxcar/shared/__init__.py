"""What the laptop, the box and a training share: the files, the wire, and how bytes reach a disk.

Standard library only, Python 3.10 and newer, and nothing else of ours is imported: this package
travels to the box inside `onbox-<digest>.pyz`. Each format has its module in `files/`, its section
in docs/formats.md and one real file of each version in tests/data/.
"""

"""Every file that the laptop and the box both read or write, and how it reaches the disk.

Standard library only, Python 3.10 and newer, and nothing of ours is imported: this package travels
to the box inside `onbox-<digest>.pyz`. Each module has its section in docs/formats.md and one real
file of each version in tests/data/.
"""

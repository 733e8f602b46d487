"""The rehearsal of a resume: one cell run twice, once killed, and what differs afterwards.

`python -m boxcar.training.rehearse` is its command line; `invoke rehearse` calls that for a cell.
"""

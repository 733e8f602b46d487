"""What a train script may import, and the check that loads what it left behind.

It travels to the box as `training-<digest>.zip`, on the training's PYTHONPATH, together with
boxcar.formats and nothing else. Without Boxcar's environment variables it works beside the script.
"""

"""A stranger's folder, read and never run: its train script, what that takes and leaves, and the
job that it makes.
"""

"""The agent that runs on the rented box: small, pure Python, and it never imports torch.

Shipped as `onbox-<digest>.pyz` and run with `python -I -S`, Python 3.10 or newer.
"""

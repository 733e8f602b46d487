"""Run by train.py with exec: `config/small.py` and `--name=value` on the command line."""

import sys
from ast import literal_eval

for arg in sys.argv[1:]:
    if "=" not in arg:
        exec(open(arg).read())
    else:
        key, value = arg.removeprefix("--").split("=", 1)
        assert key in globals(), f"unknown setting {key}"
        try:
            globals()[key] = literal_eval(value)
        except (SyntaxError, ValueError):
            globals()[key] = value

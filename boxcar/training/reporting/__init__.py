"""How a training tells what it does: on stderr, and in progress.jsonl, with numbers of a GPU."""

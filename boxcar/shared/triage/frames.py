"""What the place where an exception was raised says of it, where its own words say little."""

from __future__ import annotations

import re

_OWN_FAULT = r"(?:Type|Attribute|Name|UnboundLocal)Error"
_OUTSIDE = (
    r"(?:[\w.]+\.)?(?:OSError|IOError|Exception|RuntimeError|EOFError|\w*(?:Timeout|Connection)\w*)"
)
_LOST = r"EOFError|Connection\w*Error|BrokenPipeError|FileNotFoundError"
# By the rows that an exception's words gave it, its words, and its last frame: the row it gets.
# An empty name stands for words that no row knows.
_RULES = tuple(
    (frozenset(rows.split(",")), re.compile(words), re.compile(frame), id)
    for rows, words, frame, id in (
        (
            "NET,RESET,NOFILE,PY,",
            _LOST,
            r"\bmultiprocessing[/\\](?:\w+_)?(?:connection|managers|reduction|sharer|popen)",
            "DPW",
        ),
        # A child that reads what its parent could not write.
        ("C2,PY,", "EOFError", r"multiprocessing[/\\]spawn\.py", "DP6"),
        ("NET,RESET,", "", r"torch/distributed/[^\n]*rendezvous", "RDZV"),
        ("NET,RESET,", "", "torch/distributed/", "NCCL-S"),
        ("PY,", "KeyError", r"/os\.py\"|<frozen os>", "ENV"),
        ("PY,", "KeyError", r"/torch/distributed/(?:_shard/)?checkpoint/", "C18"),
        # Of a checkpoint that is not there some libraries say no more than what they missed first.
        (
            "NOFILE,",
            "FileNotFoundError",
            r"/torch/serialization\.py|/accelerate/accelerator\.py\"[^\n]* in load_state\b",
            "C17",
        ),
        (
            "PY,",
            "IndexError|AssertionError",
            r"/accelerate/accelerator\.py\"[^\n]* in load_state\b|\bin check_ckpt_list\b",
            "C17",
        ),
        # Of an earlier run, or of a rank that makes it at the same time.
        ("PATH,", "FileExistsError", r"[/\\]shared_memory\.py|shm_open", "STALE"),
        (
            "PY,ARGS,",
            rf"(?!{_OWN_FAULT})",
            r"/(?:argparse|registry|tyro/\w+)\.py|/(?:omegaconf|hydra|yaml|jsonargparse|absl/flags"
            r"|configobj|simple_parsing)/|/(?:training_args|configuration_\w+)\.py"
            r"|/deepspeed/[^\n]*config\w*\.py|/connectors/\w+\.py",
            "U27",
        ),
        (
            "PY,",
            rf"(?!{_OWN_FAULT})",
            r"/(?:json/decoder|csv|tarfile|zipfile|gzip|lzma|bz2|imghdr)\.py|\.pyx\""
            r"|/(?:PIL|pyarrow|h5py|lmdb|soundfile|decord|av|nibabel|pydicom|rasterio|tifffile"
            r"|imageio|cv2|SimpleITK|netCDF4|zarr|pandas/io|plyfile|trimesh)/"
            r"|/(?:npyio|_npyio_impl|format)\.py|/datasets/(?:table|arrow_\w+|packaged_modules"
            r"|features)\b",
            "BADFILE",
        ),
        ("PY,", "", r"/datasets/(?:load|builder|data_files)\.py|/data/sampler\.py", "NODATA"),
        (
            "PY,",
            rf"(?!{_OWN_FAULT}|\w+: don't know)",
            r"/torch/serialization\.py|/torch/_weights_only\w+\.py|/safetensors/"
            r"|\bpickle\.loads?\(",
            "C2",
        ),
        # Of a file that is cut off.
        (
            "SHAPE,",
            "ValueError: cannot reshape array",
            r"\b(?:fromfile|frombuffer|memmap|load\w*|read\w*)\(",
            "BADFILE",
        ),
        ("PY,", "", r"/_utils/collate\.py", "DP4"),
        # What gym's reset and step give has changed between its versions.
        (
            "PY,",
            "ValueError|TypeError",
            r"/gym(?:nasium)?/|= *\w*\.?env\w*\.(?:reset|step)\(",
            "MOD-VER",
        ),
        ("PY,", "", r"/bitsandbytes/|/op_builder/|/triton/|cpp_extension\.py", "MOD"),
        ("PY,", "Assertion|Runtime", r"/torch/cuda/__init__\.py", "U31"),
        (
            "PY,",
            _OUTSIDE,
            r"/(?:requests|urllib3|httpx|httpcore|aiohttp|botocore|s3fs|gcsfs|s3transfer)/"
            r"|/(?:http/client|socket|ssl|urllib/request)\.py",
            "NET",
        ),
        ("PY,", _OUTSIDE, r"/(?:wandb|mlflow|neptune|comet_ml|swanlab|clearml)/", "WB1"),
        (
            "PY,",
            r"(?:Runtime|Value|Index)Error",
            r"/torch/(?:nn/(?:modules/(?!module\.py)|functional\.py)|functional\.py|_tensor\.py)",
            "SHAPE",
        ),
    )
)


def id_of_frames(row_id: str, words: str, frame: str) -> str:
    """The row by the place; where that says nothing, the one by the words, '' for none."""
    family = "PY" if row_id.startswith("PY-") else row_id
    for rows, of_words, of_frame, id in _RULES:
        if family in rows and frame and of_words.match(words) and of_frame.search(frame):
            return id
    return row_id

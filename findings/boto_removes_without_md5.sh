#!/usr/bin/env bash
# Which sum boto3 sends with a removal of many objects, without Boxcar and without a store.
#
# Seen on 2026-11-29 with boto3 1.43.117 (Python 3.11, Linux). Ends with 1 if any of it is otherwise now.
#
# - `delete_objects` has a CRC32 and no Content-MD5, as it is and with `request_checksum_calculation = when_required`, which
#   takes the sums from all that a store can do without. Stores that ask for Content-MD5 (OpenStack Swift 2.34, OVH) answer
#   "Missing required header for this request: Content-MD5". s3fs' `rm(folder, recursive=True)` is such a request.
# - `delete_object`, one at a time, has neither.
#
# Takes Python 3.10 or newer as PYTHON, and 120 MB in a temporary folder.
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check boto3==1.43.117

cat >"$folder/sums.py" <<'PY'
import sys

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config

seen = {}


class Body:
    def stream(self, **_):
        return iter([b"<DeleteResult/>"])


def take(request, **_):
    seen["headers"] = {k.lower(): v for k, v in request.headers.items()}
    return AWSResponse(request.url, 200, {}, Body())


def words_of(call, **config):
    client = boto3.client(
        "s3", endpoint_url="https://store.example", region_name="us-east-1",
        aws_access_key_id="a", aws_secret_access_key="b", config=Config(**config),
    )
    client.meta.events.register("before-send.s3", take)
    call(client)
    has = seen["headers"]
    words = [n for n in ("x-amz-checksum-crc32", "content-md5") if n in has]
    return " ".join(words) or "none"


def many(client):
    client.delete_objects(Bucket="runs", Delete={"Objects": [{"Key": "a"}]})


def one(client):
    client.delete_object(Bucket="runs", Key="a")


fewer = {"request_checksum_calculation": "when_required"}
faults = 0
for what, expected, found in (
    ("many", "x-amz-checksum-crc32", words_of(many)),
    ("many, when_required", "x-amz-checksum-crc32", words_of(many, **fewer)),
    ("one", "none", words_of(one)),
):
    same = expected == found
    print(f"as seen before: {what}: {found}" if same else f"OTHERWISE NOW: {what}: {found}, was {expected}")
    faults += not same
sys.exit(faults > 0)
PY
"$folder/venv/bin/python" "$folder/sums.py"

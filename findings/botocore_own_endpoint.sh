#!/usr/bin/env bash
# Where botocore puts a bucket's name once the endpoint is not Amazon's, and what it sends over https.
#
# Seen on 2026-11-29 with botocore 1.43.117 (Python 3.11, Linux). Ends with 1 if any of it is otherwise now.
#
# - Without an endpoint the bucket is in the host's name. With AWS_ENDPOINT_URL, whatever its host, it is in the path;
#   Alibaba OSS, Tencent COS (new buckets), Volcengine TOS and Huawei OBS document that they refuse it there.
# - Only the client's own configuration or a file changes that (addressing_style: virtual): there is no variable for it.
# - A stream that is put over https is sent as `aws-chunked`; over http it is not. So a test over http does not show
#   what those stores refuse. AWS_REQUEST_CHECKSUM_CALCULATION=when_required ends it.
#
# Takes Python 3.10 or newer as PYTHON, and 40 MB in a temporary folder. Nothing is sent anywhere.
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check botocore==1.43.117
cat >"$folder/look.py" <<'END'
import io, sys
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config

style = sys.argv[1]
config = Config(s3={"addressing_style": style}) if style != "unset" else Config()
client = botocore.session.get_session().create_client("s3", region_name="cn-test", config=config)
seen = {}


def stop(request, **_):
    seen["url"] = request.url
    seen["chunked"] = b"aws-chunked" in str(request.headers.get("Content-Encoding", "")).encode()
    raw = type("Raw", (), {"stream": lambda self, *a, **k: iter([b""])})()
    return AWSResponse(request.url, 200, {"ETag": '"x"'}, raw)


client.meta.events.register("before-send.s3.PutObject", stop)
client.put_object(Bucket="lab", Key="a", Body=io.BytesIO(b"x"))
print(seen["url"], "aws-chunked" if seen["chunked"] else "plain")
END

faults=0
expect() { # WHAT EXPECTED STYLE [VARIABLE=VALUE...]
  local what="$1" expected="$2" style="$3" found
  shift 3
  found="$(env -i PATH="$PATH" HOME="$folder" AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b "$@" \
    "$folder/venv/bin/python" "$folder/look.py" "$style")"
  if [ "$expected" = "$found" ]; then
    printf 'as seen before: %s: %s\n' "$what" "$found"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$what" "$found" "$expected"
    faults=1
  fi
}

own=AWS_ENDPOINT_URL=https://store.invalid
expect 'no endpoint' 'https://lab.s3.cn-test.amazonaws.com/a aws-chunked' unset
expect 'an endpoint by its variable' 'https://store.invalid/lab/a aws-chunked' unset "$own"
expect 'auto, which is the default' 'https://store.invalid/lab/a aws-chunked' auto "$own"
expect 'virtual' 'https://lab.store.invalid/a aws-chunked' virtual "$own"
expect 'a variable of that name' 'https://store.invalid/lab/a aws-chunked' unset "$own" \
  AWS_S3_ADDRESSING_STYLE=virtual
expect 'sums when required' 'https://store.invalid/lab/a plain' unset "$own" \
  AWS_REQUEST_CHECKSUM_CALCULATION=when_required
expect 'over http' 'http://store.invalid/lab/a plain' unset AWS_ENDPOINT_URL=http://store.invalid
exit "$faults"

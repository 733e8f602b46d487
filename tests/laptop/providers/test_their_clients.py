"""The stand-ins, asked by the providers' own clients: what those understand is true to contract.

Outside CI, since the clients bring dozens of libraries:

    python3 -m venv clients && clients/bin/pip install vastai lambda-ai-cloud-api-client
    export BOXCAR_PROVIDER_CLIENTS=clients/bin/python
    .venv/bin/pytest tests/laptop/providers/test_their_clients.py

RunPod's client speaks GraphQL and cannot check a stand-in of REST v2.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rental import order_for
from stand_in_providers import KEY, stand_in

from boxcar.laptop.providers import known

PYTHON = os.environ.get("BOXCAR_PROVIDER_CLIENTS", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="needs BOXCAR_PROVIDER_CLIENTS")
LAMBDA = """
import json, sys
from lambda_ai_cloud_api_client import AuthenticatedClient
from lambda_ai_cloud_api_client.api.instances import get_instance, list_instance_types
from lambda_ai_cloud_api_client.api.instances import list_instances, terminate_instance
from lambda_ai_cloud_api_client import models
client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
boxes = list_instances.sync(client=client).data
one = get_instance.sync(id=boxes[0].id, client=client).data
kinds = list_instance_types.sync(client=client)
terminate_instance.sync(client=client, body=models.InstanceTerminateRequest([boxes[0].id]))
left = list_instances.sync(client=client).data
print(json.dumps([boxes[0].id, one.name, str(one.status.value), len(left), kinds is not None]))
"""


def said(words: list[str], home: Path, **env: str) -> str:
    there = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1"} | env
    done = subprocess.run(words, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_vast_ais_own_client_reads_offers_lists_shows_and_destroys(monkeypatch, tmp_path):
    with stand_in("vastai") as server:
        monkeypatch.setenv("VAST_URL", server.base)
        monkeypatch.setenv("VAST_API_KEY", KEY)
        for number in range(30):
            server.stranger(f"stranger {number}")
        provider = known.open_provider("vastai")
        id = provider.create(order_for(provider))

        def vastai(*words: str) -> Any:
            program = str(Path(PYTHON).with_name("vastai"))
            return said([program, *words], tmp_path, VAST_URL=server.base, VAST_API_KEY=KEY)

        offers = json.loads(vastai("search", "offers", "num_gpus>=1", "--raw"))
        assert {one["gpu_name"] for one in offers} == {"RTX 4090", "A100 SXM4"}
        shown = json.loads(vastai("show", "instance", id, "--raw"))
        assert str(shown["id"]) == id
        listed = json.loads(vastai("show", "instances", "--raw"))
        assert id in {str(one["id"]) for one in listed} and len(listed) == 31
        vastai("destroy", "instance", id, "-y")
        assert id not in server.boxes and len(server.boxes) == 30


def test_a_generated_client_of_lambda_reads_and_terminates(monkeypatch, tmp_path):
    with stand_in("lambda") as server:
        monkeypatch.setenv("LAMBDA_CLOUD_BASE_URL", server.base)
        monkeypatch.setenv("LAMBDA_API_KEY", KEY)
        provider = known.open_provider("lambda")
        order = order_for(provider)
        id = provider.create(order)
        found = json.loads(said([PYTHON, "-c", LAMBDA, server.base, KEY], tmp_path))
        assert found == [id, order.label, "booting", 0, True]

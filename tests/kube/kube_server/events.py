"""Events: what `kubectl describe` tells of an object."""

from __future__ import annotations

from .store import Object, Store, now


def tell(store: Store, about: Object, kind: str, reason: str, message: str) -> None:
    """Once for each reason and message, counted as a real cluster does."""
    meta = about["metadata"]
    for one in store.all("events", meta["namespace"]):
        same = one["involvedObject"].get("uid") == meta["uid"] and one["reason"] == reason
        if same and one["message"] == message:
            if one["lastTimestamp"] != now():
                one.update(lastTimestamp=now(), count=one["count"] + 1)
            return
    which = ("kind", "apiVersion")
    store.create(
        "events",
        {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "generateName": f"{meta['name']}.",
                "namespace": meta["namespace"],
            },
            "involvedObject": {
                **{name: about[name] for name in which},
                **{name: meta[name] for name in ("name", "namespace", "uid")},
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now(),
            "lastTimestamp": now(),
            "source": {"component": "tests"},
        },
    )

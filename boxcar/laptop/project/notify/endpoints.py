"""`notify:` of job.yaml: where news of the run goes. Values of URLs and tokens are never in it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project.job_values import EnvReference, WebhookSecret, WebhookUrl
from boxcar.shared.channels import known


class Webhook(Model):
    """Where events go. `url` may be "env:NAME"; `secret` always is."""

    url: WebhookUrl
    secret: WebhookSecret


class Robot(Model):
    """A chat whose URL is all that it takes."""

    url: EnvReference


class SignedRobot(Robot):
    """One that may be set to signed messages: `secret` is what it shows then."""

    secret: EnvReference | None = None


class Topic(Robot):
    """A topic of ntfy; `token` where its server asks for one."""

    token: EnvReference | None = None


class Bot(Model):
    """A bot of Telegram and the chat that it writes to. `url`: another door to its interface."""

    token: EnvReference
    chat: EnvReference
    url: EnvReference | None = None


def _on_the_box(value: str | None) -> str | None:
    if value is None:
        raise ValueError(
            "the token is that of your whole account. Where it may lie on each box, say so: "
            + known.LINES["autodl"]
        )
    return value


class Account(Model):
    """AutoDL's message to the account's WeChat."""

    token: EnvReference
    place: Annotated[Literal["box"] | None, AfterValidator(_on_the_box)] = Field(
        default=None, alias="from", validate_default=True
    )


Chat = Robot | Bot | Account


class Notify(Model):
    """One endpoint, under the name of what it is."""

    webhook: Webhook | None = None
    feishu: SignedRobot | None = None
    lark: SignedRobot | None = None
    dingtalk: SignedRobot | None = None
    wecom: Robot | None = None
    serverchan: Robot | None = None
    bark: Robot | None = None
    ntfy: Topic | None = None
    telegram: Bot | None = None
    slack: Robot | None = None
    discord: Robot | None = None
    autodl: Account | None = None

    @model_validator(mode="after")
    def _one(self) -> Notify:
        if len(self.model_fields_set) != 1 or (self.webhook is None and self.chat is None):
            names = ", ".join(type(self).model_fields)
            raise ValueError(f"expected one of {names}, each with a `-` of its own")
        return self

    @property
    def chat(self) -> tuple[str, Chat] | None:
        """The chat service with its settings; None for a webhook."""
        found = [(name, getattr(self, name)) for name in known.NAMES]
        return next(((name, one) for name, one in found if one is not None), None)

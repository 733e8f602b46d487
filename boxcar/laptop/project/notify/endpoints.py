"""`notify:` of job.yaml: where news of the run goes. Values of URLs and tokens are never in it."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project.job_values import (
    ENV_PREFIX,
    EnvReference,
    Time,
    WebhookSecret,
    WebhookUrl,
    reference,
)
from boxcar.shared.channels import dead_man
from boxcar.shared.sentence import _

BOX: Final = "box"
LAPTOP: Final = "laptop"
Place = Literal["box", "laptop"]
# What no box ever sends.
FROM_HERE = ("email", "apprise")


def _address(text: str) -> str:
    if text.startswith(ENV_PREFIX):
        return reference(text)
    if not re.fullmatch(r"[^\s@<>,;:]+@[^\s@<>,;:]+", text):
        raise ValueError(_('expected one address such as me@example.org, or "env:NAME"'))
    return text


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", text):
        raise ValueError(_("expected the name of a mail server, such as smtp.example.org"))
    return text


def _user(text: str) -> str:
    if text.startswith(ENV_PREFIX):
        return reference(text)
    if not text.isprintable():
        raise ValueError(_('expected a user name, or "env:NAME"'))
    return text


def _not_too_often(every_s: int) -> int:
    if every_s < dead_man.LEAST_EVERY_S:
        raise ValueError(_("expected at least 1m: such services refuse what comes more often"))
    return every_s


# Each may be "env:NAME".
MailAddress = Annotated[str, AfterValidator(_address)]
UserName = Annotated[str, AfterValidator(_user)]
HostName = Annotated[str, AfterValidator(_host)]


class Webhook(Model):
    """Where events go. `url` may be "env:NAME"; `secret` always is."""

    url: WebhookUrl
    secret: WebhookSecret


class Placed(Model):
    """`from` says who sends: the box, or this machine where somebody looks by watch or status."""

    place: Place = Field(default=BOX, alias="from")


class Robot(Placed):
    """A chat whose URL is all that it takes."""

    url: EnvReference


class SignedRobot(Robot):
    """One that may be set to signed messages: `secret` is what it shows then."""

    secret: EnvReference | None = None


class Topic(Robot):
    """A topic of ntfy; `token` where its server asks for one."""

    token: EnvReference | None = None


class Bot(Placed):
    """A bot of Telegram and the chat that it writes to. `url`: another door to its interface."""

    token: EnvReference
    chat: EnvReference
    url: EnvReference | None = None


class Account(Placed):
    """AutoDL's message to the account's WeChat. The token is that of the whole account, so it goes
    to a box only where the job says so.
    """

    token: EnvReference
    place: Place = Field(default=LAPTOP, alias="from")


class Mail(Model):
    """E-mail, by a server of one's own. Its password goes to no box."""

    to: MailAddress
    host: HostName
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    security: Literal["starttls", "ssl", "none"] = "starttls"
    user: UserName | None = None
    password: EnvReference | None = None
    sender: MailAddress | None = None
    place: Literal["laptop"] = Field(default=LAPTOP, alias="from")


class Apprise(Model):
    """Any of Apprise's services, from this machine: sent, and proven by nothing."""

    url: EnvReference
    place: Literal["laptop"] = Field(default=LAPTOP, alias="from")


class Heartbeat(Model):
    """A dead-man's service that each box tells that it gets on, at most `every` seconds."""

    url: EnvReference
    every: Annotated[Time, AfterValidator(_not_too_often)] = dead_man.EVERY_S
    place: Literal["box"] = Field(default=BOX, alias="from")


Chat = Robot | Bot | Account | Mail | Apprise


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
    email: Mail | None = None
    apprise: Apprise | None = None
    heartbeat: Heartbeat | None = None

    @model_validator(mode="after")
    def _one(self) -> Notify:
        if len(self.model_fields_set) != 1 or getattr(self, self.name) is None:
            names = ", ".join(type(self).model_fields)
            raise ValueError(_("expected one of {names}, each on its own `-`", names=names))
        return self

    @property
    def name(self) -> str:
        """What it is."""
        return next(iter(self.model_fields_set))

    @property
    def settings(self) -> Webhook | Heartbeat | Chat:
        found: Webhook | Heartbeat | Chat = getattr(self, self.name)
        return found

    @property
    def place(self) -> Place:
        return BOX if isinstance(self.settings, Webhook) else self.settings.place

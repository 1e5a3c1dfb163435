"""From a URL to a database: `mongodb://[user:password@]host:port/database[?options]`, several hosts with commas.

Every call has a limit of its own, and the driver repeats none: the callers do, as long as they may.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from pymongo import MongoClient, ReadPreference, WriteConcern
from pymongo.database import Database
from pymongo.errors import (
    ConfigurationError,
    ConnectionFailure,
    InvalidName,
    InvalidURI,
    OperationFailure,
    PyMongoError,
)

from gossamer.backends.clients.errors import DriverErrors, Rule, Said
from gossamer.model.errors import StoreUnavailableError, UsageError

Document: TypeAlias = dict[str, Any]
CONNECT_S = 3.0
CHOOSE_S = 1.0  # for a server, if the caller comes back
ANSWER_S = 20.0
_EXPECTED = "expected mongodb://host:port/database"


def name_of(url: str) -> str:
    """Return the URL of a database for people: without user, password and options."""
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0]


def open_database(url: str, choose_s: float, label: str = "") -> Database[Document]:
    """Return the database of a URL; a call waits that long for a server. Nothing is sent before the first call."""
    try:
        client: MongoClient[Document] = MongoClient(
            url,
            serverSelectionTimeoutMS=int(1000 * choose_s),
            connectTimeoutMS=int(1000 * CONNECT_S),
            socketTimeoutMS=int(1000 * ANSWER_S),
            retryWrites=False,
            retryReads=False,
            appname="gossamer",
            tz_aware=True,
        )
        majority = WriteConcern("majority", wtimeout=int(1000 * ANSWER_S))
        return client.get_default_database(write_concern=majority, read_preference=ReadPreference.PRIMARY)
    except (InvalidURI, ConfigurationError, InvalidName, ValueError) as error:
        raise UsageError(f"{label or f'store = {name_of(url)}'}: {error}; {_EXPECTED}") from error


_KIND = (PyMongoError,)
_AT_THE_START = (
    Rule(
        UsageError,
        "{label}: the server refuses user or password; expected them in the URL (with ?authSource=DATABASE if the user "
        "is defined in another database) or the password in GOSSAMER_MONGODB_PASSWORD",
        codes=(18,),
    ),
    Rule(
        UsageError,
        "{label}: no right to write to this database ({text}); expected a user with the role readWrite",
        codes=(13,),
    ),
    Rule(
        UsageError,
        "{label}: cannot be reached ({text}); expected a running server at this address",
        (ConnectionFailure,),
    ),
    Rule(UsageError, "{label}: cannot be used ({text})"),
)


def errors_at_the_start(label: str) -> DriverErrors:
    """Return how errors are raised before a crawl begins."""
    return DriverErrors(_KIND, _AT_THE_START, _said, label=label)


def errors_while_it_runs(label: str) -> DriverErrors:
    """Return how errors of a call that fails while a crawl runs are raised."""
    return DriverErrors(_KIND, (Rule(StoreUnavailableError, "{label}: {text}"),), _said, label=label)


def _said(error: BaseException) -> Said:
    """Return what the driver says, without what it repeats."""
    text = str(error)
    code = error.code if isinstance(error, OperationFailure) else None
    if isinstance(error, OperationFailure) and error.details:
        text = str(error.details.get("errmsg") or text)
    text = re.split(r" \(configured timeouts|, Timeout: |, full error", text)[0]
    text = text.replace("No servers found yet", "no answer")
    return Said(" ".join(text.split())[:200], (error,), code)

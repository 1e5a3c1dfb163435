"""Objects in an S3 bucket. See `gossamer.ports.object_store`.

Endpoint, region and credentials come from the environment, or from wherever the client library looks for them. Every
upload carries its MD5, which the server compares. The client repeats a request that failed `ATTEMPTS` times, with
growing waits; what still fails then is a StoreUnavailableError, whatever the reason: a bucket policy or a key can be
mended while a crawl waits. At the start of a crawl the same is a UsageError (`check`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from gossamer.backends.clients.errors import DriverErrors, Rule, Said
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.object_store import Part, StoredObject

CONNECT_S = 4.0
READ_S = 8.0
ATTEMPTS = 2
MAX_CONNECTIONS = 24
_REMOVED_AT_ONCE = 1000  # the limit of the API
_REFUSALS = {
    "InvalidAccessKeyId": "the access key does not exist (AWS_ACCESS_KEY_ID)",
    "SignatureDoesNotMatch": "the secret key is wrong (AWS_SECRET_ACCESS_KEY)",
    "AccessDenied": "access is denied: listing, reading, writing and deleting objects must be allowed",
    "ExpiredToken": "the session token has expired (AWS_SESSION_TOKEN)",
    "NoSuchBucket": "there is no such bucket; create it first",
    "PermanentRedirect": "the bucket is in another region (AWS_REGION)",
    "AuthorizationHeaderMalformed": "the bucket is in another region (AWS_REGION)",
}
_ERRORS = (
    Rule(FileNotFoundError, "{url}: no such object", codes=("404", "NoSuchKey", "NotFound")),
    *(Rule(StoreUnavailableError, f"{{url}}: {what}", codes=(code,)) for code, what in _REFUSALS.items()),
    Rule(StoreUnavailableError, "{url}: answered {status} {code} to {operation}", (ClientError,)),
    Rule(
        StoreUnavailableError,
        "{url}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        (NoCredentialsError, PartialCredentialsError),
    ),
    Rule(StoreUnavailableError, "{url}: cannot be reached{at} ({text})"),
)


class S3Store:
    """A bucket and a prefix. The constructor does no I/O."""

    def __init__(self, url: str, *, attempts: int = ATTEMPTS) -> None:
        self._bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._url = f"s3://{self._bucket}/{self._prefix}".rstrip("/")
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        at = f" at {endpoint}" if endpoint else ""
        self._errors = DriverErrors((BotoCoreError, ClientError), _ERRORS, _said, url=self._url, at=at)
        config = Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"total_max_attempts": attempts, "mode": "standard"},
            max_pool_connections=MAX_CONNECTIONS,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            # Servers other than Amazon's rarely have a host name per bucket.
            s3={"addressing_style": "path"} if endpoint else {},
        )
        self._client: Any = boto3.session.Session().client("s3", region_name=_region(), config=config)
        self._client.meta.events.register_last("before-call.s3", _send_body_at_once)

    @property
    def url(self) -> str:
        return self._url

    def put(self, key: str, data: bytes, metadata: Mapping[str, str] | None = None) -> StoredObject:
        with self._errors:
            answer = self._client.put_object(
                Bucket=self._bucket,
                Key=self._prefix + key,
                Body=data,
                ContentMD5=_md5(data),
                Metadata=dict(metadata or {}),
            )
        return StoredObject(key, len(data), answer.get("ETag", ""), dict(metadata or {}))

    def compose(
        self, key: str, read: Callable[[int, int], bytes], parts: Sequence[Part], metadata: Mapping[str, str]
    ) -> StoredObject:
        where = {"Bucket": self._bucket, "Key": self._prefix + key}
        with self._errors:
            upload = {"UploadId": self._client.create_multipart_upload(**where, Metadata=dict(metadata))["UploadId"]}
            try:
                done = []
                for number, part in enumerate(parts, 1):
                    tag = self._write_part(part, read, {**where, **upload, "PartNumber": number})
                    done.append({"PartNumber": number, "ETag": tag})
                answer = self._client.complete_multipart_upload(**where, **upload, MultipartUpload={"Parts": done})
            except BaseException:
                with suppress(BotoCoreError, ClientError):
                    self._client.abort_multipart_upload(**where, **upload)
                raise
        return StoredObject(key, parts[-1].end, answer.get("ETag", ""), dict(metadata))

    def _write_part(self, part: Part, read: Callable[[int, int], bytes], where: Mapping[str, Any]) -> str:
        if part.source:
            last = part.source_start + part.end - part.start - 1
            copied = self._client.upload_part_copy(
                **where,
                CopySource={"Bucket": self._bucket, "Key": self._prefix + part.source},
                CopySourceRange=f"bytes={part.source_start}-{last}",
            )
            return str(copied["CopyPartResult"]["ETag"])
        data = read(part.start, part.end)
        return str(self._client.upload_part(**where, Body=data, ContentMD5=_md5(data))["ETag"])

    def read(self, key: str, start: int, end: int) -> bytes:
        with self._errors:
            answer = self._client.get_object(
                Bucket=self._bucket, Key=self._prefix + key, Range=f"bytes={start}-{end - 1}"
            )
            data: bytes = answer["Body"].read()
            return data

    def find(self, key: str) -> StoredObject | None:
        try:
            with self._errors:
                found = self._client.head_object(Bucket=self._bucket, Key=self._prefix + key)
        except FileNotFoundError:
            return None
        return StoredObject(key, found["ContentLength"], found.get("ETag", ""), found.get("Metadata", {}))

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        with self._errors:
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            for page in pages:
                for found in page.get("Contents", ()):
                    yield StoredObject(found["Key"].removeprefix(self._prefix), found["Size"], found.get("ETag", ""))

    def remove(self, keys: Iterable[str]) -> None:
        names = [{"Key": self._prefix + key} for key in keys]
        for start in range(0, len(names), _REMOVED_AT_ONCE):
            with self._errors:
                answer = self._client.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": names[start : start + _REMOVED_AT_ONCE], "Quiet": True}
                )
            if failed := answer.get("Errors"):
                raise StoreUnavailableError(
                    f"{self._url}: {failed[0]['Key']} cannot be removed: {failed[0]['Message']}"
                )

    def abort_unfinished(self, prefix: str) -> int:
        aborted = 0
        with self._errors:
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            for page in pages:
                for found in page.get("Uploads", ()):
                    self._client.abort_multipart_upload(
                        Bucket=self._bucket, Key=found["Key"], UploadId=found["UploadId"]
                    )
                    aborted += 1
        return aborted


def check(url: str, *, is_new: bool) -> None:
    """Raise UsageError if objects cannot be listed, written, read and removed there."""
    try:
        store = S3Store(url, attempts=1)
        next(store.objects(""), None)
        key = f"check-{secrets.token_hex(8)}"
        store.put(key, b"gossamer")
        store.read(key, 0, 8)
        store.remove([key])
    except (StoreUnavailableError, FileNotFoundError) as error:
        raise UsageError(f"--store {error}") from error
    except BotoCoreError as error:  # a setting of the client library that makes no sense, as an unknown profile
        raise UsageError(f"--store {url}: {error}") from error
    except ValueError as error:
        raise UsageError(f"--store {url}: AWS_ENDPOINT_URL is not a URL: {error}") from error


def _send_body_at_once(params: dict[str, Any], **_: object) -> None:
    """Send no `Expect: 100-continue`: the client library never returns if a connection ends within the answer."""
    params["headers"].pop("Expect", None)


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _md5(data: bytes) -> str:
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _said(error: BaseException) -> Said:
    """Return the code of an answer; else the name of the error in words: `ConnectTimeoutError` is "connect timeout"."""
    if isinstance(error, ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
        return Said("", (error,), code, {"status": status, "code": code, "operation": error.operation_name})
    name = type(error).__name__.removesuffix("Error")
    return Said("".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip(), (error,))

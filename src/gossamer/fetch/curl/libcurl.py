"""Imports libcurl.

libcurl would write the keys of every TLS connection to the file that `SSLKEYLOGFILE` names, a variable
that is set for browsers. It reads the variable at its first connection; so it is removed from the
environment of this process, unless `GOSSAMER_TLS_KEYLOG` is set as well.

pycurl's stub hides its names behind a star import that mypy finds empty. So this is
the only module that imports it; its types are unknown.
"""

import os
from typing import Any, TypeAlias

import pycurl as _pycurl

if not os.environ.get("GOSSAMER_TLS_KEYLOG"):
    os.environ.pop("SSLKEYLOGFILE", None)

pycurl: Any = _pycurl
Curl: TypeAlias = Any
CurlMulti: TypeAlias = Any

__all__ = ["Curl", "CurlMulti", "pycurl"]

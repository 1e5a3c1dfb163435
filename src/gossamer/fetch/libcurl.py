"""Imports libcurl.

pycurl's stub hides its names behind a star import that mypy finds empty. So this is
the only module that imports it; its types are unknown.
"""

from typing import Any, TypeAlias

import pycurl as _pycurl

pycurl: Any = _pycurl
Curl: TypeAlias = Any
CurlMulti: TypeAlias = Any

__all__ = ["Curl", "CurlMulti", "pycurl"]

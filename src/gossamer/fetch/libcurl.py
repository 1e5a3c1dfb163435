"""Imports libcurl.

pycurl's stub hides its names behind a star import that mypy finds empty. So this is
the one place that imports it, and gives it a type that says how little is known.
"""

from typing import Any, TypeAlias

import pycurl as _pycurl

pycurl: Any = _pycurl
Curl: TypeAlias = Any
CurlMulti: TypeAlias = Any

__all__ = ["Curl", "CurlMulti", "pycurl"]

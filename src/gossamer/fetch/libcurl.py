"""Where does libcurl come from?

pycurl's own stub hides its names behind a star import that mypy finds empty; its
C module has one that types every name as Any. So this is the one place that imports it.
"""

import pycurl._pycurl as pycurl  # noqa: PLR0402  (mypy: the package does not export it)

__all__ = ["pycurl"]

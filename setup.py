"""The compiled part of the package. It is optional: where it cannot be built, Python does its work.

`packaging/wheels.py` builds wheels with it for several platforms: it sets GOSSAMER_PLATFORM to the tag of one, or to `any`
for the wheel without compiled parts.
"""

import os

from setuptools import Extension, setup

PLATFORM = os.environ.get("GOSSAMER_PLATFORM", "")


def compiled(name: str, *libraries: str) -> Extension:
    """Return the extension whose source bears its name."""
    return Extension(
        name,
        [f"src/{name.replace('.', '/')}.c"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        libraries=list(libraries),
        extra_compile_args=["-O3", "-std=c11"],
        py_limited_api=True,
        optional=not PLATFORM,  # a wheel for a platform has all of it, or is not built
    )


COMPILED = [
    compiled("gossamer.foundation._kernel"),
    compiled("gossamer.foundation._rank"),
    compiled("gossamer.foundation._words"),
    compiled("gossamer.parse.html._scan"),
    compiled("gossamer.archive._sha1"),
    compiled("gossamer.backends.local._bloom"),
    compiled("gossamer.backends.local._damage", "dl"),  # of glibc before 2.34
    compiled("gossamer.runtime.session._forced_exit"),
]
TAGS = {"py_limited_api": "cp311", **({"plat_name": PLATFORM} if PLATFORM else {})}

if PLATFORM == "any":
    setup()
else:
    setup(ext_modules=COMPILED, options={"bdist_wheel": TAGS})

"""The compiled part of the package. It is optional: where it cannot be built, Python does its work."""

from setuptools import Extension, setup


def compiled(name: str) -> Extension:
    """Return the extension whose source bears its name."""
    return Extension(
        name,
        [f"src/{name.replace('.', '/')}.c"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        extra_compile_args=["-O3", "-std=c11"],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[
        compiled("gossamer._kernel"),
        compiled("gossamer._rank"),
        compiled("gossamer._words"),
        compiled("gossamer.parse._scan"),
        compiled("gossamer.archive._sha1"),
        compiled("gossamer.backends.local._bloom"),
        compiled("gossamer.runtime._forced_exit"),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

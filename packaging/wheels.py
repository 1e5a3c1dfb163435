"""Build the wheels: for Linux on x86_64 and aarch64 with the compiled parts, and one for any system without them.

    python packaging/wheels.py [FOLDER]          (make wheels; FOLDER: dist/)

Zig compiles for both processors against glibc 2.17 (manylinux2014), whatever this machine has. Every wheel is
checked: it has all compiled parts, for the right processor, and auditwheel agrees with its tag. The wheel for this
machine is installed into a new environment in which no compiler can be found, and `gossamer doctor` must report its
compiled parts.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from zipfile import ZipFile

GLIBC = "2.17"
ARCHITECTURES = {"x86_64": 62, "aarch64": 183}  # name -> e_machine of ELF
ROOT = Path(__file__).resolve().parent.parent
PARTS = sorted(path.relative_to(ROOT / "src").with_suffix(".abi3.so") for path in (ROOT / "src").rglob("_*.c"))


def main() -> int:
    """Build all, check all."""
    folder = Path(sys.argv[1] if sys.argv[1:] else ROOT / "dist").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, machine in ARCHITECTURES.items():
        with tempfile.TemporaryDirectory(prefix="gossamer-headers-") as headers:
            wheel = build(folder, f"manylinux_2_17_{name}", compiler(name, Path(headers)))
        check_parts(wheel, machine)
        check_tag(wheel)
        if name == platform.machine():
            check_installed(wheel)
    pure = build(folder, "any", {})
    if any(name.endswith(".so") for name in ZipFile(pure).namelist()):
        raise SystemExit(f"{pure.name}: has compiled parts; expected none")
    print(f"ok   {pure.name}: no compiled parts")
    return 0


def compiler(architecture: str, headers: Path) -> dict[str, str]:
    """Return the environment in which setuptools compiles for a processor."""
    # Debian's pyconfig.h includes that of the processor, which is not there for another one. In what the stable ABI
    # uses of it (sizes of types, byte order) the two processors agree.
    include = Path(sysconfig.get_paths()["include"])
    own = include.parent / (sysconfig.get_config_var("MULTIARCH") or "") / include.name
    (headers / f"{architecture}-linux-gnu").mkdir(parents=True)
    (headers / f"{architecture}-linux-gnu" / own.name).symlink_to(own)
    zig = f"{sys.executable} -m ziglang cc -target {architecture}-linux-gnu.{GLIBC}"
    flags = {"CFLAGS": f"-g0 -I{headers}", "_PYTHON_HOST_PLATFORM": f"linux-{architecture}"}
    return {"CC": zig, "LDSHARED": f"{zig} -shared -s", **flags}


def copied_source(folder: Path) -> Path:
    """Copy what a package is built from, without earlier builds, into a new folder; return it."""
    command = ["git", "ls-files", "-z", "src", "setup.py", "pyproject.toml", "README.md", "LICENSE"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for file in filter(None, listed.split("\0")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes((ROOT / file).read_bytes())
    return folder


def build(folder: Path, tag: str, environment: dict[str, str]) -> Path:
    """Build a wheel from a copy of the source, so that no earlier build gets into it; return it."""
    with tempfile.TemporaryDirectory(prefix="gossamer-wheel-") as name:
        source, made = copied_source(Path(name) / "source"), Path(name) / "made"
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(made),
            ".",
        ]
        subprocess.run(command, cwd=source, check=True, env={**os.environ, **environment, "GOSSAMER_PLATFORM": tag})
        (wheel,) = made.glob("*.whl")
        if not wheel.stem.endswith(tag):
            raise SystemExit(f"{wheel.name}: another tag than {tag}")
        return wheel.replace(folder / wheel.name)


def check_parts(wheel: Path, machine: int) -> None:
    """Check that a wheel has all compiled parts, for the processor."""
    with ZipFile(wheel) as archive:
        there = sorted(Path(name) for name in archive.namelist() if name.endswith(".so"))
        if there != PARTS:
            raise SystemExit(f"{wheel.name}: has {there}; expected {PARTS}")
        for part in there:
            if int.from_bytes(archive.read(str(part))[18:20], "little") != machine:
                raise SystemExit(f"{wheel.name}: {part} is for another processor")
    print(f"ok   {wheel.name}: {len(there)} compiled parts, {wheel.stat().st_size:,} bytes")


def check_tag(wheel: Path) -> None:
    """Check that auditwheel finds nothing that the tag does not allow."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    told = " ".join(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    if 'consistent with the following platform tag: "manylinux_2_17' not in told and "manylinux_2_5" not in told:
        raise SystemExit(f"{wheel.name}: auditwheel says: {told}")
    print(f"ok   {wheel.name}: auditwheel agrees with its tag")


def check_installed(wheel: Path) -> None:
    """Install a wheel where there is no compiler; check that its compiled parts are used."""
    with tempfile.TemporaryDirectory(prefix="gossamer-wheel-") as name:
        venv.create(name, with_pip=True)
        tools = Path(name) / "bin"
        bare = {
            **{key: value for key, value in os.environ.items() if key != "CC"},
            "PATH": str(tools),
            "CC": "no-compiler",
        }
        install = [str(tools / "python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", str(wheel)]
        subprocess.run(install, check=True, env=bare)
        told = subprocess.run(
            [str(tools / "gossamer"), "doctor"], check=False, env=bare, cwd=name, capture_output=True, text=True
        )
    line = next((line for line in told.stdout.splitlines() if " compiled" in line), told.stderr)
    if not line.startswith("ok "):
        raise SystemExit(f"{wheel.name}: installed, but: {line}")
    print(f"{line}   (installed without a compiler)")


if __name__ == "__main__":
    sys.exit(main())

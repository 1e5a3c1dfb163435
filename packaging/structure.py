"""How is a package laid out? Counts to compare with, not limits: nothing fails because of them.

    python packaging/structure.py [FOLDER ...]        (a package's folder; without one, this project's)

| count | of |
|---|---|
| modules, lines | all of it |
| loose | modules at the root of the package |
| largest folder | modules in the folder that has most |
| one importer | modules that one other module imports, of those under 80 lines in brackets |
| packed | assignments of several names at once, of as many values |
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path

SHORT_LINES = 80
HERE = Path(__file__).resolve().parent.parent / "src" / "gossamer"


def counts_of(package: Path) -> dict[str, str]:
    """Return the counts of a package."""
    sources = [path for path in package.rglob("*.py") if not any("template" in part for part in path.parts)]
    paths = {_name(path, package): path for path in sources}
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in paths.items()}
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in paths.items()}
    modules = [name for name, path in paths.items() if path.stem != "__init__"]
    importers = defaultdict(set)
    for name, tree in trees.items():
        for imported in _imports(tree, name, is_package=paths[name].stem == "__init__"):
            importers[imported].add(name)
    single = [name for name in modules if len(importers[name]) == 1]
    folders = Counter(paths[name].parent for name in modules)
    return {
        "modules": f"{len(modules)} in {len(folders)} folders",
        "lines": str(sum(lines.values())),
        "loose": str(folders[package]),
        "largest folder": f"{folders.most_common(1)[0][1]} ({folders.most_common(1)[0][0].name})",
        "one importer": f"{len(single)} ({sum(lines[name] < SHORT_LINES for name in single)})",
        "packed": str(sum(_is_packed(node) for tree in trees.values() for node in ast.walk(tree))),
    }


def _name(path: Path, package: Path) -> str:
    return ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")


def _imports(tree: ast.Module, name: str, *, is_package: bool) -> set[str]:
    """Return every name that may be a module which this one imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            source = ".".join([*above, *(node.module.split(".") if node.module else [])])
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return found


def _is_packed(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and any(isinstance(target, ast.Tuple) for target in node.targets)
    )


def main(folders: list[str]) -> None:
    """Print a table with a column per package."""
    packages = {folder: counts_of(Path(folder)) for folder in folders or [str(HERE)]}
    print(f"| | {' | '.join(packages)} |")
    print(f"|---|{'---:|' * len(packages)}")
    for row in next(iter(packages.values())):
        print(f"| {row} | {' | '.join(counts[row] for counts in packages.values())} |")


if __name__ == "__main__":
    main(sys.argv[1:])

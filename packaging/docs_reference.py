"""The pages of the documentation that are made from the program: commands, settings, events, modules, decisions.

    make reference         # writes them

They are files of the repository, so that links lead to them wherever it is read; a test compares them with what the
program says now. As a hook of mkdocs, links from the documentation to files outside of it (tests, sources) become plain
names.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.cli.verbs import GROUPS, options_of, parser_of
from gossamer.model import events
from gossamer.settings.model import Group, Option, options

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parent.parent / "docs"
_MEMBER = re.compile(r'^    [A-Z_0-9]+ = "(\w+)"  # (.*)$', re.MULTILINE)
_FIELD = re.compile(r"^    (\w+): ([^=#\n]+?)(?: = ([^#\n]+?))?  # (.*)$", re.MULTILINE)
_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+(?:src|tests|benchmarks|deploy|README|CONTRIBUTING|CHANGELOG|examples)[^)]*\)"
)
_LISTED = 20  # settings of a verb that are named one by one
_SETTINGS_OF_A_CRAWL = sum(not option.is_table and option.group is not Group.CLUSTER for option in options())
_COUNTED = re.compile(r"%\(\w+\)s")
# Verbs with a page of their own, or a part of one.
_MORE = {
    "init": "../crawling.md#settings",
    "crawl": "../crawling.md",
    "resume": "../crawling.md#seeds-and-limits",
    "status": "../operating.md#what-binds-a-crawl-and-how-long-it-takes",
    "ui": "../operating.md#the-dashboard",
    **dict.fromkeys(("stop", "pause", "add", "set", "retry"), "../operating.md#seeing-and-steering"),
    "pace": "../operating.md#politeness",
    **dict.fromkeys(("block", "unblock"), "../operating.md#opting-out"),
    "traps": "../hostile.md",
    "notices": "../revisits.md#change-notices",
    "missing": "../handover.md#what-is-missing",
    "links": "../handover.md#links",
    "pages": "../handover.md#pages",
    "sitemap": "../handover.md#sitemaps",
    "diff": "../handover.md#differences",
    "robots": "../operating.md#politeness",
    "export": "../handover.md#export",
    "search": "../handover.md#search",
    "feed": "../handover.md#the-feed",
    "rank": "../rank.md",
    "audit": "../operating.md#proving-it",
    "verify": "../durability.md#proof",
    **dict.fromkeys(("join", "leave"), "../cluster.md"),
    "init-cluster": "../cluster.md#preparing-the-servers",
    "migrate": "../cluster.md#moving-a-crawl",
    "demo": "../tutorial.md",
    "chaos": "../durability.md#proof",
    "bench": "../performance.md#where-the-time-goes",
}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name files outside of the documentation instead of linking to them."""
    return _OUTSIDE.sub(lambda found: found.group(1), markdown)


def commands() -> Iterator[str]:
    """Yield the page with every verb: what it does, and what it takes."""
    yield "# Commands\n"
    yield "`gossamer VERB --help` says the same of one verb, `gossamer help --man` prints a manual page, and"
    yield "`gossamer completion SHELL` completes all of it. DIR is the folder of a crawl, or the URL of the ledger that"
    yield "its nodes share."
    for heading, group in GROUPS.items():
        yield f"\n## {heading[0].upper()}{heading[1:]}"
        for verb, (module, purpose) in group.items():
            yield f"\n### gossamer {verb}\n"
            yield from _verb(verb, purpose, inspect.getdoc(importlib.import_module(module)) or "")


def _verb(verb: str, purpose: str, docstring: str) -> Iterator[str]:
    parser = parser_of(verb)
    more = f" ([more]({_MORE[verb]}))" if verb in _MORE else ""
    yield f"{purpose[0].upper()}{purpose[1:]}{more}."
    if details := docstring.partition("\n\n")[2]:
        yield f"\n{details}"
    known = {option.name for option in options()}
    own = [action for action in parser._actions if action.dest not in {*known, "help", "config"}]
    taken = [action for action in options_of(parser) if action.dest in known]
    yield f"\n```text\n{parser.usage or _usage(parser)}\n```"
    if own:
        yield "\n| | |\n|---|---|"
        yield from (f"| {_invocation(action)} | {_cell(_said(action))} |" for action in own if _said(action))
    if len(taken) > _LISTED:
        fixed = ", except for those that are fixed" if len(taken) < _SETTINGS_OF_A_CRAWL else ""
        yield f"\nThe [settings](settings.md) of a crawl are options of it{fixed}, and so is `--config FILE.toml`."
    elif taken:
        names = ", ".join(f"`--{action.dest.replace('_', '-')}`" for action in taken)
        yield f"\n[Settings](settings.md) that it takes as options: {names}."


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the usage of a verb without one of its own. Not argparse's: that depends on the version of Python."""
    places = [action for action in parser._actions if not action.option_strings]
    names = [f"{action.metavar or action.dest}{'…' if action.nargs in ('*', '+') else ''}" for action in places]
    words = [f"[{name}]" if action.nargs in ("?", "*") else name for name, action in zip(names, places, strict=True)]
    return " ".join([parser.prog, *words, "[options]"])


def _invocation(action: argparse.Action) -> str:
    names = [name for name in action.option_strings if not name.startswith("--no-")]
    value = str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper())
    takes = bool(action.option_strings) and action.nargs != 0 and not isinstance(action, argparse.BooleanOptionalAction)
    return f"`{', '.join(names) or value}{f' {value}' if takes else ''}`".replace("|", "\\|")


def _said(action: argparse.Action) -> str:
    if action.help == argparse.SUPPRESS:
        return ""
    choices = f" {', '.join(map(str, action.choices))}" if action.choices and not action.help else ""
    return _COUNTED.sub("", (action.help or "").replace("%%", "%")) + choices or " "


def settings() -> Iterator[str]:
    """Yield the page with every setting, by heading."""
    yield "# Settings\n"
    yield "Each is an option of `gossamer crawl`, a key of a TOML file and a variable of the environment:"
    yield "`--max-pages 5`, `max-pages = 5`, `GOSSAMER_MAX_PAGES=5`. *Fixed* ones stay as they are in a crawl."
    yield "`gossamer init` writes a file with all of them."
    for group in Group:
        of_group = [option for option in options() if option.group is group]
        yield f"\n## {group.value[0].upper()}{group.value[1:]}\n"
        yield "| setting | what it does | default | |\n|---|---|---|---|"
        for option in of_group:
            fixed = "fixed" if option.is_fixed else ""
            yield f"| `{option.key}` | {_cell(_meaning(option))} | {_default(option)} | {fixed} |"


def _meaning(option: Option) -> str:
    choices = f" ({', '.join(option.choices)})" if option.choices else ""
    repeated = "; may be repeated" if option.is_repeatable else ""
    return option.help + choices + repeated


def _default(option: Option) -> str:
    if option.default in (None, "", ()):
        return ""
    if isinstance(option.default, bool):
        return "on" if option.default else "off"
    return f"`{_cell(', '.join(option.default) if isinstance(option.default, tuple) else str(option.default))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def decisions() -> Iterator[str]:
    """Yield the list of decisions."""
    yield "# Decisions\n\nWhy things are as they are, for engineers who would ask.\n"
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        yield f"- [{title}]({path.name})"


def event_names() -> Iterator[str]:
    """Yield the page with every event and its fields."""
    names = dict(_MEMBER.findall(inspect.getsource(events.EventName)))
    missing = {name.value for name in events.EventName} - set(names)
    fields = {field[0]: field[1:] for field in _FIELD.findall(inspect.getsource(events.Event))}
    missing |= set(events.Event.__struct_fields__) - set(fields)
    if missing:
        sys.exit(f"docs: events.py says nothing about: {', '.join(sorted(missing))}")
    yield "# Events\n"
    yield "One JSON object per line in `events/*.jsonl`. They are written when they happen, at least once; lines of one"
    yield "fetch have the same `order`.\n\n## Names\n\n| event | meaning |\n|---|---|"
    yield from (f"| `{name}` | {_cell(meaning)} |" for name, meaning in names.items())
    yield "\n## Fields\n\nThose without a default are in every line.\n"
    yield "| field | type | default | meaning |\n|---|---|---|---|"
    for name, (kind, default, meaning) in fields.items():
        yield f"| `{name}` | {_cell(kind)} | {f'`{default}`' if default else ''} | {_cell(meaning)} |"


def modules() -> Iterator[str]:
    """Yield the list of modules, by package: the first sentences of what each says of itself."""
    yield from (
        "# Modules",
        "",
        "Each with the question that it answers. How they fit together: [architecture](../architecture.md).",
    )
    source = DOCS.parent / "src" / "gossamer"
    for package in sorted({path.parent for path in source.rglob("*.py")}):
        name = package.relative_to(source).as_posix()
        yield from ("", f"## {'gossamer' if name == '.' else name}", "")
        yield from (_summary_of(package / "__init__.py"), "", "| module | |", "|---|---|")
        for path in sorted(package.glob("*.py")):
            if path.stem != "__init__":
                yield f"| `{path.stem}` | {_summary_of(path)} |"


def _summary_of(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "reference/commands.md": commands,
    "reference/settings.md": settings,
    "reference/events.md": event_names,
    "decisions/index.md": decisions,
    "reference/modules.md": modules,
}


def text_of(name: str) -> str:
    """Return a page as it should be."""
    return "\n".join(PAGES[name]()) + "\n"


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text_of(name), "utf-8")

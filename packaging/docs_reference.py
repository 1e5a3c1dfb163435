"""Pages of the documentation that are made from the program: commands, settings, events. A hook of mkdocs.

They are not files of the repository: `on_files` adds them whenever the site is built, so they say what the program
does. Links from the documentation to files outside of it (tests, sources) become plain names.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from gossamer import events
from gossamer.cli.options import GroupedHelp
from gossamer.cli.verbs import VERBS, parser_of
from gossamer.settings.model import Group, Option, options

_MEMBER = re.compile(r'^    [A-Z_0-9]+ = "(\w+)"  # (.*)$', re.MULTILINE)
_FIELD = re.compile(r"^    (\w+): ([^=#\n]+?)(?: = ([^#\n]+?))?  # (.*)$", re.MULTILINE)
_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+(?:src|tests|benchmarks|deploy|README|CONTRIBUTING|CHANGELOG|examples)[^)]*\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    os.environ["COLUMNS"] = "100"  # of the help of verbs
    makers: dict[str, Callable[[], Iterator[str]]] = {
        "reference/commands.md": commands,
        "reference/settings.md": settings,
        "reference/events.md": event_names,
        "decisions/index.md": decisions,
    }
    for name, make in makers.items():
        files.append(File.generated(config, name, content="\n".join(make()) + "\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name files outside of the documentation instead of linking to them."""
    return _OUTSIDE.sub(lambda found: found.group(1), markdown)


def commands() -> Iterator[str]:
    """Yield the page with the help of every verb."""
    yield "# Commands\n"
    yield "What `gossamer help VERB` prints. `gossamer help --man` prints the same as a manual page,"
    yield "`gossamer completion SHELL` completes it."
    for verb, (_, purpose) in VERBS.items():
        parser = parser_of(verb)
        yield f"\n## gossamer {verb}\n\n{purpose[0].upper()}{purpose[1:]}.\n\n```text"
        yield _plain(parser)
        yield "```"


def _plain(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = GroupedHelp
    return parser.format_help().strip()


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
    for path in sorted((Path(__file__).resolve().parent.parent / "docs" / "decisions").glob("*.md")):
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

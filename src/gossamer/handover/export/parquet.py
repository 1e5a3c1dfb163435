"""The pages as a table in Parquet, for DuckDB, Spark, Athena and the like.

Needs pyarrow (`pip install gossamer[parquet]`). Written in row groups of bounded size, so
memory does not grow with the crawl.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gossamer.handover.export.columns import columns, values_of
from gossamer.handover.export.documents import PageDocument
from gossamer.handover.export.output import whole_file
from gossamer.model.errors import UsageError
from gossamer.settings.extras import pip_install

ROWS_PER_GROUP = 10_000
TEXT_CHARS_PER_GROUP = 16_000_000


def write_parquet(documents: Iterable[PageDocument], out: Path, segment: str, *, with_text: bool = False) -> int:
    """Write documents as one Parquet file; return how many."""
    arrow, parquet = _pyarrow()
    shown = columns(with_text=with_text)
    schema = arrow.schema([(column.name, _type(arrow, column.kind)) for column in shown])
    count = chars = 0
    rows: list[dict[str, Any]] = []
    with whole_file(out) as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for document in documents:
            rows.append(values_of(document, segment, shown))
            chars += len(document.article.text) if with_text else 0
            count += 1
            if len(rows) >= ROWS_PER_GROUP or chars >= TEXT_CHARS_PER_GROUP:
                writer.write_table(arrow.Table.from_pylist(rows, schema))
                rows = []
                chars = 0
        if rows:
            writer.write_table(arrow.Table.from_pylist(rows, schema))
    return count


def require_pyarrow() -> None:
    """Raise unless Parquet can be written."""
    _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError(f"--format parquet needs pyarrow, which is not installed: {pip_install('parquet')}") from None
    return pyarrow, pyarrow.parquet


def _type(arrow: Any, kind: str) -> Any:  # noqa: ANN401 - pyarrow is optional
    makers = {
        "string": arrow.string,
        "int16": arrow.int16,
        "int32": arrow.int32,
        "int64": arrow.int64,
        "float": arrow.float32,
        "bool": arrow.bool_,
        "list": lambda: arrow.list_(arrow.string()),
        "map": lambda: arrow.map_(arrow.string(), arrow.string()),
        "timestamp": lambda: arrow.timestamp("ms", tz="UTC"),
    }
    return makers[kind]()

"""The style sheet of report.html, and the policy that forbids a browser to load anything else.

The policy names the sheet by its hash, so not even a style can be injected; there are no
scripts, images, fonts, frames or forms.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode

STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2430; --soft: #5d6b7c; --rule: #e2e6eb; --shade: #1b24304d;
  --main: #2563a8; --second: #c2571a; --good: #2f8f5b; --move: #7a8cc4; --client: #d9962b; --server: #c23b3b;
  --none: #8a94a1; --warn-back: #fff4df; --warn-ink: #7a4a00; }
@media screen and (prefers-color-scheme: dark) { :root {
  --page: #11161d; --card: #1a212b; --ink: #e4e9ef; --soft: #97a4b4; --rule: #2c3642; --shade: #000000b3;
  --main: #5b9de0; --second: #e68a4f; --good: #4fb77f; --move: #8f9fd6; --client: #e0aa4c; --server: #e06666;
  --none: #6f7c8b; --warn-back: #3a2d12; --warn-ink: #f3cf8e; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 56px; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1640px; margin: 0 auto; padding: 28px 20px 60px; }
header h1 { font-size: 26px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
header p { color: var(--soft); margin: 4px 0 0; }
nav { position: sticky; top: 0; z-index: 2; background: var(--page); border-bottom: 1px solid var(--rule);
  margin: 14px 0 0; padding: 8px 0; display: flex; gap: 4px 18px; overflow-x: auto; white-space: nowrap; }
a { color: var(--main); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--main); outline-offset: 2px; }
h2 { font-size: 18px; margin: 36px 0 12px; }
h3 { font-size: 14px; margin: 0 0 10px; font-weight: 600; }
h4 { font-size: 13.5px; margin: 12px 0 2px; font-weight: 600; }
.soft { color: var(--soft); font-weight: 400; }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin-top: 22px; }
.tile, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; }
.tile { padding: 12px 14px; color: inherit; display: block; }
.tile:hover { border-color: var(--main); text-decoration: none; }
.tile b { display: block; font-size: 22px; line-height: 1.3; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; display: block; }
.tile .name { color: var(--ink); }
.cards { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 14px; }
.card { padding: 14px 16px; min-width: 0; }
details.wide { grid-column: 1 / -1; }
.flow { columns: 3 440px; column-gap: 14px; }
.flow .card { break-inside: avoid; margin-bottom: 14px; }
.card p { margin: 0 0 8px; color: var(--soft); font-size: 13px; }
.card p.after { margin: 12px 0 0; }
.warn { background: var(--warn-back); color: var(--warn-ink); border-radius: 8px; padding: 10px 16px;
  margin: 18px 0 0; font-size: 14px; }
.warn p { margin: 2px 0; overflow-wrap: break-word; }
/* The shadow at the right edge is there while columns are hidden behind it: the cover moves with the table. */
.scroll { overflow-x: auto; background:
  linear-gradient(to left, var(--card) 50%, transparent) right -3px top -3px / 40px calc(100% + 6px) no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / 14px 100% no-repeat scroll; }
.scroll::-webkit-scrollbar { height: 8px; }
.scroll::-webkit-scrollbar-thumb { background: var(--none); border-radius: 4px; }
.scroll::-webkit-scrollbar-track { background: var(--rule); border-radius: 4px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; padding: 0 10px 6px 0;
  vertical-align: bottom; }
td { padding: 4px 10px 4px 0; border-top: 1px solid var(--rule); vertical-align: top; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--card); overflow-wrap: break-word; }
td.n, th.n { text-align: right; } td.n { white-space: nowrap; }
td.name { min-width: 130px; max-width: 340px; word-break: keep-all; }
td.text { min-width: 240px; }
td.m { width: 34%; min-width: 60px; padding-right: 0; vertical-align: middle; }
th:last-child, td:last-child { padding-right: 0; }
code { font: 12.5px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
ul { list-style: none; margin: 0; padding: 0; }
li { padding: 1px 0; line-height: 1.4; }
details summary { cursor: pointer; color: var(--main); font-size: 13px; padding: 2px 0; }
.none { color: var(--soft); margin: 0; }
svg.chart { display: block; width: 100%; height: auto; }
svg.chart text { fill: var(--soft); font-size: 11.5px; font-family: inherit; font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--rule); } svg .axis { stroke: var(--soft); }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke: var(--main); }
svg .line.second { stroke: var(--second); stroke-width: 1.75; }
svg .area { fill: var(--main); opacity: .13; }
svg .bar { fill: var(--main); }
svg .moment { fill: transparent; } svg .moment:hover { fill: var(--main); opacity: .25; }
svg .bar:hover { opacity: .8; }
svg.meter { display: block; width: 100%; height: 8px; }
svg.share { display: block; width: 100%; height: 18px; border-radius: 4px; margin-bottom: 12px; }
.s2 { fill: var(--good); background: var(--good); } .s3 { fill: var(--move); background: var(--move); }
.s4 { fill: var(--client); background: var(--client); } .s5 { fill: var(--server); background: var(--server); }
.s0 { fill: var(--none); background: var(--none); }
.main { background: var(--main); } .second { background: var(--second); } svg .second { background: none; }
.key { font-size: 12.5px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 0 0 8px; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px; }
footer { color: var(--soft); font-size: 12.5px; margin-top: 36px; }
@media (min-width: 1500px) { .cards { grid-template-columns: repeat(4, minmax(0, 1fr)); } }
@media (min-width: 1500px), (max-width: 1100px) { .cards svg.chart text { font-size: 14.5px; } }
@media (max-width: 760px) { .cards { grid-template-columns: minmax(0, 1fr); }
  .tiles { grid-template-columns: repeat(2, 1fr); } main { padding: 20px 12px 48px; }
  nav { position: static; flex-wrap: wrap; } html { scroll-padding-top: 8px; }
  .card { padding: 12px; } td.name { max-width: 210px; } svg.chart text { font-size: 16px; }
  table { font-size: 13px; } td, th { padding-right: 8px; } }
@media print { :root { color-scheme: light; }
  body { background: none; font-size: 12px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { padding: 0; } nav { display: none; } .card, .tile { break-inside: avoid; } .flow { columns: 2 0; }
  .cards { grid-template-columns: 1fr 1fr; } .scroll { overflow: visible; background: none; }
  table { font-size: 10.5px; } th { font-size: 10px; } td, th { padding-right: 6px; } td.name { min-width: 0; }
  code { font-size: 10px; } th:first-child, td:first-child { position: static; } }
"""


def content_policy() -> str:
    """Return the Content-Security-Policy of the page."""
    digest = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"

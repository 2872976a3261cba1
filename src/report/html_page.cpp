#include "report/html_page.h"

namespace tensordiff {

const std::string_view kChartStyle = R"(
svg { --ink: #15191f; --soft: #616b78; --rule: #e4e7eb; --good: #0a7563; --close: #a97c10;
  --bad: #c2470a; --trouble: #8a2062; --plain: #4a42c6; }
@media (prefers-color-scheme: dark) { :root:not(.light) svg { --ink: #e7eaee; --soft: #87929f;
  --rule: #242930; --good: #42bfa5; --close: #d8ae4a; --bad: #ff9257; --trouble: #ee8cc4;
  --plain: #9a96ff; } }
:root.dark svg { --ink: #e7eaee; --soft: #87929f; --rule: #242930; --good: #42bfa5;
  --close: #d8ae4a; --bad: #ff9257; --trouble: #ee8cc4; --plain: #9a96ff; }
svg text { font: 11px system-ui, "Segoe UI", Roboto, sans-serif; fill: var(--soft); }
svg .grid { stroke: var(--rule); } svg .axis { stroke: var(--soft); }
svg .good { fill: var(--good); } svg .close { fill: var(--close); } svg .bad { fill: var(--bad); }
svg .trouble { fill: var(--trouble); } svg .plain { fill: var(--plain); }
svg .dim { fill: var(--soft); } svg .mark { fill: none; stroke: var(--bad); stroke-width: 2; }
svg path { fill: none !important; stroke-width: 2; }
svg .h0 { fill: #d5e8e4; } svg .h1 { fill: #c3dfd4; } svg .h2 { fill: #b4d5b8; }
svg .h3 { fill: #bdcc93; } svg .h4 { fill: #d3c071; } svg .h5 { fill: #e6ae57; }
svg .h6 { fill: #ef9345; } svg .h7 { fill: #e9713a; } svg .h8 { fill: #d34a35; }
svg .h9 { fill: #a3203f; }
svg .s0 { fill: #4a7fd0; stroke: #4a7fd0; } svg .s1 { fill: #dd6a10; stroke: #dd6a10; }
svg .s2 { fill: #1b998b; stroke: #1b998b; } svg .s3 { fill: #b2447c; stroke: #b2447c; }
svg .s4 { fill: #8a7a12; stroke: #8a7a12; } svg .s5 { fill: #7a5bd0; stroke: #7a5bd0; }
svg .s6 { fill: #6f7b87; stroke: #6f7b87; } svg .s7 { fill: #c0392b; stroke: #c0392b; }
)";

const std::string_view kPageStyle = R"(
:root { color-scheme: light; --bg: #f3f4f6; --card: #fff; --sunken: #f8f9fa; --line: #e4e7eb;
  --text: #15191f; --text-2: #48525f; --accent: #4a42c6; --good: #0a7563; --close: #7d5a00;
  --bad: #b53a00; --trouble: #8a2062; --good-bg: #e3f3ef; --close-bg: #fbf1d9;
  --bad-bg: #fdebe0; --trouble-bg: #f9e7f1; --plain-bg: #ecebfb; }
@media (prefers-color-scheme: dark) { :root:not(.light) { color-scheme: dark; --bg: #0d0f12;
  --card: #14171b; --sunken: #101317; --line: #242930; --text: #e7eaee; --text-2: #a9b2bd;
  --accent: #9a96ff; --good: #42bfa5; --close: #d8ae4a; --bad: #ff9257; --trouble: #ee8cc4;
  --good-bg: #13302b; --close-bg: #322813; --bad-bg: #3a2114; --trouble-bg: #361a2b;
  --plain-bg: #23233f; } }
:root.dark { color-scheme: dark; --bg: #0d0f12; --card: #14171b; --sunken: #101317;
  --line: #242930; --text: #e7eaee; --text-2: #a9b2bd; --accent: #9a96ff; --good: #42bfa5;
  --close: #d8ae4a; --bad: #ff9257; --trouble: #ee8cc4; --good-bg: #13302b; --close-bg: #322813;
  --bad-bg: #3a2114; --trouble-bg: #361a2b; --plain-bg: #23233f; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text);
  font: 14px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 20px 60px; }
header { display: flex; align-items: center; gap: 14px; flex-wrap: wrap; }
h1 { font-size: 22px; margin: 0; overflow-wrap: anywhere; flex: 1; min-width: 200px; }
h2 { font-size: 16px; margin: 32px 0 10px; }
.subtitle { color: var(--text-2); margin: 4px 0 18px; overflow-wrap: anywhere; }
.badge { font-weight: 600; padding: 4px 12px; border-radius: 999px; }
.badge.plain { background: var(--plain-bg); } .good { color: var(--good); }
.close { color: var(--close); } .bad { color: var(--bad); } .trouble { color: var(--trouble); }
.dim { color: var(--text-2); }
.badge.good { background: var(--good-bg); } .badge.close { background: var(--close-bg); }
.badge.bad { background: var(--bad-bg); } .badge.trouble { background: var(--trouble-bg); }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 16px; min-width: 104px; }
.tile b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--text-2); }
.callout { background: var(--card); border: 1px solid var(--line); border-left: 4px solid;
  border-radius: 8px; padding: 14px 18px; margin: 12px 0; }
.callout.bad { border-left-color: var(--bad); } .callout.good { border-left-color: var(--good); }
.callout.close { border-left-color: var(--close); }
.callout.trouble { border-left-color: var(--trouble); }
.callout.plain { border-left-color: var(--accent); }
.callout strong { font-size: 16px; } .callout p { margin: 4px 0; color: var(--text); }
.callout ul { margin: 6px 0 0; padding-left: 18px; color: var(--text-2); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 12px 16px; margin: 12px 0; }
figure { margin: 12px 0; } figcaption { font-weight: 600; margin-bottom: 6px; }
svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; color: var(--text-2); font-weight: 600; border-bottom: 1px solid var(--line);
  padding: 6px 10px 6px 0; white-space: nowrap; position: sticky; top: 0;
  background: var(--card); }
th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid; }
th[aria-sort=ascending] button::after { content: " \2191"; }
th[aria-sort=descending] button::after { content: " \2193"; }
td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody tr:hover { background: var(--sunken); }
code { font: 12px ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
input { font: inherit; padding: 6px 10px; border: 1px solid var(--line); border-radius: 6px;
  background: var(--sunken); color: inherit; width: 100%; max-width: 340px; margin-bottom: 8px; }
.theme { font: inherit; color: var(--text-2); background: none; border: 1px solid var(--line);
  border-radius: 6px; padding: 4px 10px; cursor: pointer; }
details { margin: 12px 0; } summary { cursor: pointer; font-weight: 600; }
.note { color: var(--text-2); margin: 8px 0 0; } .hidden { display: none; }
footer { color: var(--text-2); margin-top: 40px; font-size: 12px; }
@media print { body { background: #fff; } input, .theme { display: none; }
  .card, .tile, .callout { break-inside: avoid; } }
)";

const std::string_view kPageScript = R"(
'use strict';
const root = document.documentElement;
document.querySelector('.theme').addEventListener('click', () => {
  const dark = root.classList.contains('dark') ||
    (!root.classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches);
  root.classList.toggle('dark', !dark);
  root.classList.toggle('light', dark);
});
const keyOf = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.n === undefined ? cell.textContent : Number(cell.dataset.n);
};
const compare = (x, y) => typeof x === 'number' && typeof y === 'number' ? x - y
  : typeof x === 'number' ? -1 : typeof y === 'number' ? 1
  : x.localeCompare(y, undefined, {numeric: true});
for (const table of document.querySelectorAll('table.searchable')) {
  const body = table.tBodies[0];
  table.querySelectorAll('th').forEach((head, column) => {
    head.querySelector('button').addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'descending' ? 1
        : head.getAttribute('aria-sort') === 'ascending' ? -1
        : head.classList.contains('n') ? -1 : 1;
      table.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down > 0 ? 'ascending' : 'descending');
      const rows = [...body.rows].map(row => [keyOf(row, column), row]);
      rows.sort((x, y) => down * compare(x[0], y[0]));
      body.append(...rows.map(pair => pair[1]));
    });
  });
  const search = table.closest('.card').querySelector('input');
  search.addEventListener('input', () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.classList.toggle('hidden', !words.every(word => text.includes(word)));
    }
  });
}
)";

}  // namespace tensordiff

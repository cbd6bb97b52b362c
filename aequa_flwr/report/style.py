"""The pages' style sheet. Okabe-Ito colours: readers of every colour vision tell them apart."""

CSS = """
:root {
  color-scheme: light dark;
  --text: #1b1f24; --soft: #57606a; --paper: #fff; --panel: #f4f6f8; --rule: #d0d7de;
  --gains: #0072b2; --loses: #d55e00; --ideal: #00795a; --narrow: #d55e00;
  --pink: #b0437e; --brown: #7d6608;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6e9ed; --soft: #a3acb6; --paper: #14171b; --panel: #1e2329; --rule: #3a424b;
    --gains: #56b4e9; --loses: #e69f00; --ideal: #009e73; --narrow: #e69f00;
    --pink: #cc79a7; --brown: #f0e442;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
.verdict { font-size: 1.1rem; padding: .75rem 1rem; background: var(--panel);
  border-left: .3rem solid var(--ideal); }
.verdict.failed, .verdict.interrupted { border-color: var(--loses); }
.verdict.running { border-color: var(--gains); }
.facts, .note, small { color: var(--soft); font-size: .875rem; }
.pair { display: grid; gap: 0 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.pair > * { min-width: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .75rem .35rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
thead th { font-size: .875rem; vertical-align: bottom; }
th small { display: block; font-weight: normal; }
.measure { font-weight: normal; font-size: .75rem; padding: .05rem .4rem; margin-left: .25rem;
  border: 1px solid var(--rule); border-radius: .6rem; white-space: nowrap; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit; }
th button::after { content: " \\2195"; color: var(--soft); font-weight: normal; }
th[aria-sort] button::after { color: var(--text); content: " \\25b2"; }
th[aria-sort=descending] button::after { content: " \\25bc"; }
th button:hover { text-decoration: underline; }
button:focus-visible, .scroll:focus-visible, pre:focus-visible, summary:focus-visible {
  outline: 2px solid var(--gains); outline-offset: 2px; }
pre { overflow-x: auto; padding: .75rem 1rem; background: var(--panel); margin: .5rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: .9em; }
details { margin-top: .5rem; font-size: .875rem; }
summary { cursor: pointer; }
.bars { margin: 0; max-width: 36rem; }
.bars dt { font-size: .875rem; color: var(--soft); }
.bars dd { margin: 0 0 .75rem; display: flex; gap: .75rem; align-items: center; font-weight: 600;
  font-variant-numeric: tabular-nums; }
meter { flex: 1; height: 1.1rem; min-width: 8rem; border: 0; border-radius: .3rem;
  background: var(--panel); appearance: none; }
meter::-webkit-meter-bar { background: var(--panel); border: 1px solid var(--rule); height: 1.1rem;
  border-radius: .3rem; }
meter::-webkit-meter-optimum-value { background: var(--gains); }
meter:-moz-meter-optimum::-moz-meter-bar { background: var(--gains); }
.mean { background: var(--panel); }
main:has(.compared) { max-width: 84rem; }
.compared td, .compared th { white-space: nowrap; font-size: .875rem; }
.reading { align-self: center; color: var(--text); }
td { overflow-wrap: anywhere; }
.measures td, .measures thead th + th { text-align: right; padding: .35rem 0 .35rem .75rem;
  width: 9.5rem; }
.measures thead th + th { white-space: nowrap; }
.measures td { font-weight: 600; white-space: nowrap; }
.numbers th, .numbers td { text-align: right; }
.numbers td { white-space: nowrap; }
.numbers th:first-child, .numbers td:first-child { text-align: left; }
.numbers td:last-child { white-space: normal; overflow-wrap: normal; }
.numbers td:first-child { white-space: normal; min-width: 4rem; max-width: 16rem; }
.scroll { overflow: auto; max-height: 36rem; margin-top: .75rem;
  /* A shadow at the lower edge for as long as there is more below it. */
  background: linear-gradient(transparent, var(--paper) 70%) bottom / 100% 3rem no-repeat local,
    linear-gradient(transparent, var(--rule)) bottom / 100% .8rem no-repeat scroll; }
.scroll thead th { position: sticky; top: 0; background: var(--paper); }
figure { margin: 0; max-width: 36rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 13px; fill: var(--soft); }
svg .x { text-anchor: middle; } svg .y { text-anchor: end; }
svg .grid { stroke: var(--rule); stroke-width: .7; fill: none; }
svg .line { fill: none; stroke-width: 2; pointer-events: none; }
.gains { color: var(--gains); fill: var(--gains); stroke: var(--gains); }
.loses { color: var(--loses); fill: var(--loses); }
.narrow { color: var(--narrow); fill: var(--narrow); stroke: var(--narrow); }
.placed { color: var(--loses); fill: var(--loses); fill-opacity: .55; stroke: var(--loses); }
.ideal { color: var(--ideal); stroke: var(--ideal); }
.even, .edge { color: var(--soft); stroke: var(--soft); }
polyline.narrow, polyline.ideal { stroke-dasharray: 7 4; }
polyline.even { stroke-dasharray: 1 4; }
polyline.edge { stroke-dasharray: 3 3; stroke-width: 1.5; }
.unknown { color: var(--soft); fill: var(--soft); }
.k0 { color: var(--gains); fill: var(--gains); stroke: var(--gains); }
.k1 { color: var(--loses); fill: var(--loses); stroke: var(--loses); }
.k2 { color: var(--ideal); fill: var(--ideal); stroke: var(--ideal); }
.k3 { color: var(--pink); fill: var(--pink); stroke: var(--pink); }
.k4 { color: var(--text); fill: var(--text); stroke: var(--text); }
.k5 { color: var(--brown); fill: var(--brown); stroke: var(--brown); }
polyline.d0, polyline.d1, polyline.d2, polyline.d3, polyline.d4 { stroke-width: 1.6; }
polyline.d1 { stroke-dasharray: 7 4; }
polyline.d2 { stroke-dasharray: 2 3; }
polyline.d3 { stroke-dasharray: 10 3 2 3; }
polyline.d4 { stroke-dasharray: 14 5; }
svg polyline:has(title) { pointer-events: stroke; }
svg .end { font-size: 11px; }
.crowd .gains, .crowd .loses, .crowd .unknown { fill-opacity: .3; stroke: none; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.25rem; margin: .25rem 0 0; padding: 0;
  list-style: none; font-size: .875rem; }
.legend li { min-width: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  main { padding: 1rem .75rem 3rem; }
  .measures td, .measures thead th + th { width: 5rem; padding-left: .4rem; }
  .measures td { font-size: .875rem; }
  .measures thead th, .measures thead th + th { font-size: .75rem; white-space: normal; }
  .numbers { font-size: .72rem; line-height: 1.3; }
  .numbers thead th { font-size: .64rem; }
  th:not([aria-sort]) button::after { content: none; }
  .numbers th, .numbers td { padding-right: .25rem; }
  .numbers th:last-child, .numbers td:last-child { padding-right: 0; }
}
@page { margin: 15mm; }
@media print {
  :root { --text: #000; --soft: #444; --paper: #fff; --panel: #fff; --rule: #bbb;
    --gains: #0072b2; --loses: #d55e00; --ideal: #00795a; --narrow: #d55e00;
    --pink: #b0437e; --brown: #7d6608; }
  body { font-size: 13px; }
  main { max-width: none; padding: 0; }
  .pair { grid-template-columns: 1fr 1fr; }
  figure { max-width: 26rem; }
  .scroll { overflow: visible; max-height: none; background: none; }
  th button::after, th[aria-sort] button::after { content: none; }
  details::details-content { content-visibility: visible; height: auto; }
  summary { list-style: none; }
  details { font-size: 11px; }
  .scroll th, .scroll td { padding-top: .12rem; padding-bottom: .12rem; }
  figure, tr, .verdict { break-inside: avoid; }
  h2 { break-after: avoid; }
}
"""

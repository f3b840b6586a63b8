// SPDX-License-Identifier: Apache-2.0
// Reads a trace as chrome://tracing does, by that viewer's own importer (npm: traceviewer), and prints what it has
// understood as JSON: node read_trace.js MODULES TRACE.
'use strict';
const fs = require('fs');
const path = require('path');

const [modules, file] = process.argv.slice(2);
const viewer = fs.realpathSync(path.join(modules, 'traceviewer'));
const bootstrap = path.join(viewer, 'catapult_build', 'node_bootstrap.js');
require(bootstrap);
const tracing = path.join(viewer, 'tracing');
const parts = path.join(tracing, 'third_party');
HTMLImportsLoader.addArrayToSourcePath([
  tracing, parts, path.join(parts, 'jszip'), path.join(parts, 'gl-matrix', 'dist'),
  path.join(parts, 'd3'), path.join(parts, 'chai'), path.join(parts, 'mocha'),
]);
HTMLImportsLoader.loadHTML('/tracing/importer/import.html');
HTMLImportsLoader.loadHTML('/tracing/model/model.html');
HTMLImportsLoader.loadHTML('/tracing/extras/full_config.html');

const raw = fs.readFileSync(file);
const text = (raw[0] === 0x1f ? require('zlib').gunzipSync(raw) : raw).toString();
const model = new tr.Model();
const options = new tr.importer.ImportOptions();
options.shiftWorldToZero = false;
new tr.importer.Import(model, options).importTraces([text]);

const picoseconds = (ms) => Math.round(ms * 1e9);
// Shown are whole nanoseconds; a slice says what they leave out.
const exact = (s) => {
  const begin = picoseconds(s.start) + (s.args.off || 0), end = begin + s.args.ps;
  const shownEnd = picoseconds(s.start) + picoseconds(s.duration);
  if (Math.abs(s.args.off || 0) > 500 || Math.abs(end - shownEnd) > 500) ++out.inexact;
  return [s.title, begin, s.args.ps, s.args.m, s.args];
};
const out = {warnings: model.importWarnings.map((w) => w.message), processes: {}, arrows: [], overlapping: 0, inexact: 0};
const placeOf = new Map();
for (const p of Object.values(model.processes)) {
  const process = out.processes[p.name] = {threads: {}, counters: {}};
  for (const t of Object.values(p.threads)) {
    for (const s of t.sliceGroup.slices) placeOf.set(s, p.name + ' ' + t.name);
    // Those of one row follow one another, as they are shown and as they are.
    const shown = t.sliceGroup.slices.map((s) => [s.title, picoseconds(s.start), picoseconds(s.duration)]);
    const slices = t.sliceGroup.slices.map(exact);
    for (const all of [shown, slices]) {
      all.sort((a, b) => a[1] - b[1] || a[2] - b[2]);
      all.forEach((s, i) => { if (i !== 0 && s[1] < all[i - 1][1] + all[i - 1][2]) ++out.overlapping; });
    }
    process.threads[t.name] = slices.concat(t.asyncSliceGroup.slices.map(exact));
  }
  for (const c of Object.values(p.counters)) {
    const series = c.series[0];
    process.counters[c.name] = series.samples.map((s) => [picoseconds(s.timestamp), s.value]);
  }
}
for (const f of model.flowEvents)
  out.arrows.push([placeOf.get(f.startSlice), placeOf.get(f.endSlice), picoseconds(f.start), picoseconds(f.start + f.duration)]);
process.stdout.write(JSON.stringify(out) + '\n');

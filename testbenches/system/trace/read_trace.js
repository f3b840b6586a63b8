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
const out = {warnings: model.importWarnings.map((w) => w.message), processes: {}, arrows: [], overlapping: 0};
const placeOf = new Map();
for (const p of Object.values(model.processes)) {
  const process = out.processes[p.name] = {threads: {}, counters: {}};
  for (const t of Object.values(p.threads)) {
    const slices = [];
    for (const s of t.sliceGroup.slices) {
      placeOf.set(s, p.name + ' ' + t.name);
      slices.push([s.title, picoseconds(s.start), picoseconds(s.duration), s.args.m, s.args]);
    }
    // Those of one row follow one another.
    slices.sort((a, b) => a[1] - b[1]);
    slices.forEach((s, i) => { if (i !== 0 && s[1] < slices[i - 1][1] + slices[i - 1][2]) ++out.overlapping; });
    for (const s of t.asyncSliceGroup.slices) slices.push([s.title, picoseconds(s.start), picoseconds(s.duration), s.args.m, s.args]);
    process.threads[t.name] = slices;
  }
  for (const c of Object.values(p.counters)) {
    const series = c.series[0];
    process.counters[c.name] = series.samples.map((s) => [picoseconds(s.timestamp), s.value]);
  }
}
for (const f of model.flowEvents)
  out.arrows.push([placeOf.get(f.startSlice), placeOf.get(f.endSlice), picoseconds(f.start), picoseconds(f.start + f.duration)]);
process.stdout.write(JSON.stringify(out) + '\n');

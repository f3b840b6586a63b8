// SPDX-License-Identifier: Apache-2.0
// Reads a Kanata log by the parser of the viewer Konata, and prints what it has understood as JSON:
// node read_konata.mjs MODULES KONATA LOG, with esbuild in the folder MODULES and the viewer's sources in KONATA.
import { openAsBlob } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';

const [modules, konata, log] = process.argv.slice(2);
const esbuild = createRequire(join(resolve(modules), 'package.json'))('esbuild');
const core = join(resolve(konata), 'src', 'core');
const bundle = await esbuild.build({
  stdin: {
    contents: ['onikiri_parser', 'file_line_reader', 'op_store'].map((part) => `export * from './${part}';`).join('\n'),
    resolveDir: core, loader: 'ts',
  },
  bundle: true, format: 'esm', platform: 'node', write: false, logLevel: 'error',
  // Packages that the viewer compresses with: a log that is not compressed needs none of them.
  plugins: [{
    name: 'no-packages',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, (of) => of.kind === 'entry-point' ? undefined : { path: of.path, namespace: 'none' });
      build.onLoad({ filter: /.*/, namespace: 'none' }, () => ({ contents: 'module.exports = {};', loader: 'js' }));
    },
  }],
});
const { OnikiriParser, FileLineReader, ArrayOpStore } =
  await import('data:text/javascript;base64,' + Buffer.from(bundle.outputFiles[0].text).toString('base64'));

const warnings = [];
console.warn = (text) => warnings.push(text);
const store = new ArrayOpStore();
const file = new File([await openAsBlob(log)], basename(log));
await new OnikiriParser(store).parse(new FileLineReader(file));
const ops = [];
for (let id = 0; id <= store.lastID; ++id) {
  const op = store.getOp(id);
  if (op === undefined || op === null) {
    warnings.push(`there is no op ${id}`);
    continue;
  }
  ops.push({
    id: op.id, gid: op.gid, tid: op.tid, retired: op.retired, flush: op.flush, eof: op.eof,
    from: op.fetchedCycle, until: op.retiredCycle, label: op.labelName,
    lanes: op.lanes.map((lane) => lane === null ? [] : lane.stages.map((s) => [s.name, s.startCycle, s.endCycle])),
  });
}
process.stdout.write(JSON.stringify({ warnings, ops }) + '\n');

// SPDX-License-Identifier: Apache-2.0
// The command `rnic report`: which files it takes, what it refuses and how. usage: check_program.mjs PROGRAM PACKAGES CHROMIUM
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Faults, here, rnic, scratch } from './results.mjs';

const program = resolve(process.argv[2]);
const faults = new Faults();
const folder = scratch();
const report = (...args) => rnic(program, ['report', ...args], folder);
const dataOf = (file) => JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(readFileSync(join(folder, file), 'utf8'))[1]);

mkdirSync(join(folder, 'empty'));
mkdirSync(join(folder, 'some'));
execFileSync(program, ['latency', '--sizes', '2', '--iterations', '2', '--json', 'some/a.json'], { cwd: folder, stdio: 'ignore' });

for (const [args, words] of [
  [['none'], 'none: there is no such file or folder'], [['empty'], 'empty: no results of --json or --trace'], [['some', '--output', '/nowhere/x.html'], 'cannot be written'],
  [[], 'results is required']
]) {
  const { status, errors } = report(...args);
  faults.equal([status, errors.trim().split('\n').length, errors.includes(words)], [2, 1, true], `rnic report ${args.join(' ')}: ${errors}`);
}

faults.equal(report('some').status, 0, 'a folder');
faults.expect(existsSync(join(folder, 'report.html')), 'report.html is there');
const again = report('some');
faults.expect(again.status === 2 && again.errors.includes('report.html: exists already'), `a page is not replaced: ${again.errors}`);
faults.equal(report('some', '--overwrite').status, 0, 'with --overwrite it is');
faults.equal(report('some', 'some/a.json', '-o', 'two.html').out, 'two.html: 2 results\n', 'a folder and a file');
faults.equal(dataOf('two.html').results.map((r) => r.name), ['some/a.json', 'some/a.json'], 'names of a folder and a file');
faults.expect(readFileSync(join(folder, 'report.html')).length < 1e6, 'a page with one result is below 1 MB');

// Several results in one file.
const a = JSON.parse(readFileSync(join(folder, 'some/a.json'), 'utf8'));
writeFileSync(join(folder, 'several.json'), JSON.stringify({ seed: 1, first: a, second: a }));
report('several.json', '-o', 'several.html');
faults.equal(dataOf('several.html').results.map((r) => r.name), ['several.json: first', 'several.json: second'], 'several results in one file');
faults.equal(dataOf('several.html').parameters.length, 1, 'equal parameters are there once');
faults.equal(dataOf('several.html').results[0].result.rows[0].stages, a.rows[0].stages, 'a result is in the page as it was');

// Bytes that are no UTF-8 in the name of a file.
copyFileSync(join(folder, 'some/a.json'), Buffer.concat([Buffer.from(join(folder, 'some/b')), Buffer.from([0xff]), Buffer.from('.json')]));
faults.equal([report('some', '-o', 'bytes.html').status, dataOf('bytes.html').results[1].name], [0, 'b\ufffd.json'], 'a name that is no UTF-8');

// Traces: by lines, on one line, packed, as a list.
const text = readFileSync(join(here, 'sample.trace.json'), 'utf8');
for (const [name, content] of Object.entries({
  'lines.json': text, 'one_line.json': text.replace(/\n/g, ' '), 'packed.json.gz': gzipSync(text), 'list.json': JSON.stringify(JSON.parse(text).traceEvents), 'unfinished.json': `[\n${text.split('\n').slice(1, -2).join('\n')}\n`
})) {
  writeFileSync(join(folder, name), content);
  report(name, '-o', `${name}.html`);
  const t = dataOf(`${name}.html`).results[0].result;
  faults.equal([t.command, t.events, t.from_us, t.to_us], ['trace', 16, 1, 10], `${name}: events and times`);
  faults.equal((t.buffers || []).map((c) => [c.process, c.name, c.most, c.changes]), [['s1', 'port0 priority 3 queue bytes', 70, 2], ['s1', 'port2 priority 3 queue bytes', 9000, 5]], `${name}: buffers`);
  faults.equal(((t.buffers || [])[1] || {}).points, [[1, 0], [2.5, 4096], [3, 9000], [8, 0], [10, 0]], `${name}: the curve of a buffer`);
  faults.equal((t.pauses || []).map((p) => [p.process, p.name, p.number, p.total_us, p.times]), [['s1', 'port0 peer paused priority 3', 1, 7.25, [[2.75, 10]]], ['h1 <b>one</b>', 'adapter.port1 paused priority 3', 2, 5, [[3, 5], [7, 10]]]], `${name}: pauses`);
}

// A long one: thinned, with its highest value, and sums that are of all.
const events = [];
for (let i = 0; i < 100000; ++i) {
  events.push({ name: 'queue bytes', ph: 'C', pid: 1, ts: i, args: { value: i === 77777 ? 5e6 : i % 1000 } });
  events.push({ name: 'paused priority 0', ph: 'C', pid: 1, ts: i + 0.25, args: { value: i % 2 } });
}
writeFileSync(join(folder, 'long.json'), `[${events.map((e) => JSON.stringify(e)).join(',\n')}]`);
report('long.json', '-o', 'long.html');
const long = dataOf('long.html').results[0].result;
faults.expect(long.buffers[0].points.length <= 4096 && long.buffers[0].points.length > 1000, `a long curve is thinned: ${long.buffers[0].points.length}`);
faults.expect(long.buffers[0].points.some(([at, v]) => at === 77777 && v === 5e6), 'a thinned curve has its highest value where it was');
faults.equal([long.buffers[0].changes, long.buffers[0].most], [100000, 5e6], 'changes and highest value of a long curve');
faults.expect(long.buffers[0].points.every(([at], i, all) => i === 0 || at > all[i - 1][0]), 'a thinned curve is in order');
faults.equal([long.pauses[0].number, long.pauses[0].total_us], [50000, 49999 + long.to_us - 99999.25], 'number and time of many pauses');
faults.expect(long.pauses[0].times.length <= 4096 && long.pauses[0].times.length > 0, `many pauses are put together: ${long.pauses[0].times.length}`);

faults.end();

// SPDX-License-Identifier: Apache-2.0
// Results of the real program, for the tests of its reports.
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

export const here = dirname(fileURLToPath(import.meta.url));

/** What was expected and is not so. */
export class Faults {
  constructor() {
    this.checks = 0;
    this.found = [];
  }
  expect(ok, words) {
    ++this.checks;
    if (!ok) this.found.push(words);
  }
  equal(got, wanted, words) {
    const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
    this.expect(a === b, `${words}: ${a} instead of ${b}`);
  }
  /** Says what was found, and ends the process. */
  end() {
    for (const f of this.found) console.log(`FAULT: ${f}`);
    console.log(`${this.checks - this.found.length} passed, ${this.found.length} failed`);
    process.exit(this.found.length ? 1 : 0);
  }
}

/** A folder that is gone with the process. */
export function scratch() {
  const folder = mkdtempSync(join(tmpdir(), 'rnic-report-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const load = (file) => JSON.parse(readFileSync(file, 'utf8'));

/** Status and both outputs of rnic. */
export function rnic(program, args, cwd) {
  const done = spawnSync(program, args, { cwd, encoding: 'utf8', env: { ...process.env, SYSTEMC_DISABLE_COPYRIGHT_MESSAGE: '1' } });
  return { status: done.status, out: done.stdout, errors: done.stderr };
}

const experiment = `duration_us = 400
warm_up_us = 20
[topology]
kind = "star"
hosts = 3
[[workload]]
name = "rpc"
from = ["h1", "h2"]
to = "h3"
sizes = [[64, 9], [4096, 1]]
arrivals = "poisson"
rate_mpps = 0.5
[[workload]]
name = "backup"
background = true
from = "h1"
to = "h3"
size = 65536
depth = 1
`;

/** Fills a folder with a result of each kind, and says which files must be skipped. */
export function makeResults(program, folder) {
  const make = (...args) => execFileSync(program, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  make('latency', '--sizes', '2,64,4096', '--iterations', '10', '--json', 'write.json');
  make('latency', '--verb', 'read', '--sizes', '2,64,4096', '--iterations', '10', '--set', 'adapter.clock_khz=400000', '--json', 'read.json');
  for (const qps of ['1', '4']) make('bandwidth', '--sizes', '64,4096', '--messages', '300', '--qps', qps, '--json', `rate${qps}.json`);
  writeFileSync(join(folder, 'load.toml'), experiment);
  make('run', 'load.toml', '--json', 'load.json');
  writeFileSync(join(folder, 'rates.toml'), 'experiment = "load.toml"\ncolumns = ["all.goodput_gbps", "all.rate_mpps", "all.latency.p*"]\n[axes]\n"workload.rpc.rate_mpps" = [0.1, 0.4, 0.8]\n"topology.rate_mbps" = [10000, 40000]\n');
  make('sweep', 'rates.toml', '--out', 'rates');
  // Masked atomics are refused by a workload: points that fail.
  writeFileSync(join(folder, 'three.toml'), 'experiment = "load.toml"\ncolumns = ["all.rate_mpps"]\n[axes]\n"workload.rpc.verb" = ["write", "masked_cas"]\n"workload.rpc.depth" = [1, 4]\n"parameters.adapter.clock_khz" = [300000, 427000]\n');
  rnic(program, ['sweep', 'three.toml', '--out', 'three'], folder);
  writeFileSync(join(folder, 'small.toml'), '[latency]\nsizes = [64, 4096]\niterations = 2\n');
  make('explain', 'small.toml', '--json', 'more.json');
  make('fabric', 'incast', '--json', 'incast.json');
  make('soak', '--messages', '300', '--qps', '4', '--json', 'soak.json');
  writeFileSync(join(folder, 'pauses.trace.json.gz'), gzipSync(readFileSync(join(here, 'sample.trace.json'))));
  mkdirSync(join(folder, 'more'));
  copyFileSync(join(folder, 'write.json'), join(folder, 'more', 'write.json'));
  // Names that would be code if they were not kept apart from it.
  const hostile = load(join(folder, 'write.json'));
  hostile.verb = '</script><script>window.broken = 1</script><img src=x onerror="window.broken = 2">';
  hostile.rows[0].stages[0].stage = '<!--<script>';
  writeFileSync(join(folder, 'more', '<img src=x onerror=broken=3>.json'), JSON.stringify(hostile));
  writeFileSync(join(folder, 'notes.json'), '{"a": 1}');
  writeFileSync(join(folder, 'half.json'), readFileSync(join(folder, 'write.json'), 'utf8').slice(0, 5000));
  writeFileSync(join(folder, 'cut.json.gz'), gzipSync(readFileSync(join(folder, 'write.json'))).subarray(0, 2000));
  writeFileSync(join(folder, '.hidden.json'), '{');
  return ['cut.json.gz', 'half.json', 'notes.json'];
}

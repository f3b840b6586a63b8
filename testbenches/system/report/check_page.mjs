// SPDX-License-Identifier: Apache-2.0
// What is on the page of `rnic report`, in a headless Chromium, against the JSON of results that the real program made.
// usage: check_page.mjs PROGRAM PACKAGES CHROMIUM
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { figure, open, startBrowser } from './page_in_browser.mjs';
import { Faults, load, makeResults, rnic, scratch } from './results.mjs';

const [program, packages, chromium] = process.argv.slice(2).map((p) => resolve(p));
const faults = new Faults();
const folder = scratch();
const skipped = makeResults(program, folder);
const made = rnic(program, ['report', '.', '-o', 'report.html'], folder);
faults.equal(made.status, 0, 'rnic report');
faults.equal(made.errors.split('\n').filter((l) => l).map((l) => l.split(': ').slice(0, 3).join(': ')), skipped.map((s) => `rnic: skipped: ${s}`), 'skipped files on standard error');

const file = join(folder, 'report.html');
const data = JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(readFileSync(file, 'utf8'))[1]);
const of = (name) => load(join(folder, name));
const browser = await startBrowser(packages, chromium);
const { page, seen } = await open(browser, file);

// Where each result is on the page, by the heading that names its file.
const ids = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll('main section article')].filter((a) => /^r\d+$/.test(a.id)).map((a) => [a.querySelector('h3 .of').textContent.trim(), a.id])));
faults.equal(Object.keys(ids).sort(), data.results.map((r) => r.name).sort(), 'every result has its place');
const idOf = (name) => ids[name] || 'none';

/** The figure, of which at least these texts are drawn and which has a sentence, a label and a shape. */
async function expectFigure(id, texts) {
  const f = await figure(page, id);
  faults.expect(f !== null, `figure ${id} is there`);
  if (f === null) return { series: [], tables: [], texts: [] };
  for (const text of texts) faults.expect(f.texts.includes(text), `${id}: "${text}" is drawn; there are ${f.texts.slice(0, 40).join(' | ')}`);
  faults.expect(f.says.length > 20 && f.label === `${f.title}. ${f.says}`, `${id}: its label is its sentence: ${f.label}`);
  faults.expect(f.shapes > 3, `${id}: shapes are drawn: ${f.shapes}`);
  return f;
}
const points = (f, name) => (f.series.find((s) => s.name === name) || {}).data;
const cells = (f, n = 0) => (f.tables[n] || { rows: [] }).rows;

// Latency: curves, parts of the way, stages, table.
for (const name of ['write.json', 'read.json']) {
  const { rows } = of(name), id = idOf(name);
  const curve = await expectFigure(`${id}-curve`, ['message size', name === 'write.json' ? 'latency, half round trip (µs)' : 'latency, round trip (µs)', '64 B', 'minimum', 'maximum']);
  for (const [series, key] of [['minimum', 'min_us'], ['typical (median)', 'typical_us'], ['99 %', 'p99_us'], ['maximum', 'max_us']])
    faults.equal(points(curve, series), rows.map((r) => [r.size, r[key]]), `${name}: points of ${series}`);
  faults.equal(cells(curve), rows.map((r) => [r.size, r.iterations, r.min_us, r.typical_us, r.avg_us, r.p99_us, r.max_us]), `${name}: table of latencies`);
  faults.equal(curve.tables[0].texts[0].slice(0, 2), ['2\u00a0B', '10'], `${name}: texts of the table`);
  const parts = await expectFigure(`${id}-stages`, ['2 B', '4 KiB', 'Wire', 'Adapter a', 'Adapter b']);
  for (const [i, r] of rows.entries()) {
    const sum = parts.series.reduce((a, s) => a + s.data[i], 0), table = cells(parts)[i].slice(1);
    const end = table.pop();
    faults.expect(Math.abs(sum - (parts.texts.includes('time (ns)') ? r.end_to_end_ps / 1000 : 100)) < 1e-6, `${name}, ${r.size} B: parts sum to the whole: ${sum}`);
    faults.expect(end === r.end_to_end_ps / 1000 && Math.abs(table.reduce((a, v) => a + v, 0) - end) < 1e-6, `${name}, ${r.size} B: the table's parts sum to the end-to-end time`);
  }
  const way = await expectFigure(`${id}-way`, ['time since the message was posted (ns)']);
  const stages = rows[0].stages.filter((s) => s.ps > 0);
  faults.equal(points(way, 'stage'), stages.map((s) => s.ps / 1000), `${name}: times of stages`);
  faults.equal(points(way, 'before'), stages.map((_, i) => stages.slice(0, i).reduce((a, s) => a + s.ps, 0) / 1000), `${name}: begins of stages`);
  faults.equal(cells(way).map((r) => r[3]), rows[0].stages.map((s) => s.ps), `${name}: table of stages`);
  const use = await expectFigure(`${id}-use`, ['message size', '4 KiB']);
  const resources = cells(use).map((r) => r[0]);
  faults.equal(resources.length, Object.keys(rows[0].utilisation).length, `${name}: all resources are in the table`);
  for (const r of cells(use).slice(0, 5)) faults.equal(r.slice(1), rows.map((row) => row.utilisation[r[0]]), `${name}: use of ${r[0]}`);
}
const together = await expectFigure('latency-all', ['typical latency (µs)', 'message size']);
faults.equal(together.series.length, 4, 'a curve for each result of latency');

// The size of "One message" is the user's to choose.
await page.select(`#${idOf('write.json')}-way select`, '2');
const chosen = await figure(page, `${idOf('write.json')}-way`);
faults.equal(points(chosen, 'stage').length, of('write.json').rows[2].stages.filter((s) => s.ps > 0).length, 'stages of the size that was chosen');
faults.expect(chosen.says.includes('4\u00a0KiB'), `the sentence is of the size that was chosen: ${chosen.says}`);

// Bandwidth: over sizes, over queue pairs, utilisation.
const rates = ['rate1.json', 'rate4.json'].map(of);
for (const [i, name] of ['rate1.json', 'rate4.json'].entries()) {
  const { rows } = rates[i], id = idOf(name);
  const size = await expectFigure(`${id}-size`, ['goodput (Gb/s)', 'message size']);
  faults.equal(size.series[0].data, rows.map((r) => [r.size, r.goodput_gbps]), `${name}: goodput`);
  faults.equal(cells(size), rows.map((r) => [r.size, r.qps, r.messages, r.rate_mpps, r.goodput_gbps, r.lost, r.limited_by]), `${name}: table`);
  faults.expect(rows.every((r) => size.says.includes(r.limited_by)), `${name}: what limits it is said: ${size.says}`);
  await expectBusy(id, rows[rows.length - 1], name);
}
async function expectBusy(id, row, name) {
  const busy = await expectFigure(`${id}-busy`, ['share of the time (%)', 'busy', 'blocked', 'idle']);
  for (let k = 0; k < busy.series[0].data.length; ++k) faults.expect(Math.abs(busy.series.reduce((a, s) => a + s.data[k], 0) - 100) < 1e-6, `${name}: busy, blocked and idle are all of the time`);
  for (const r of cells(busy).slice(0, 8)) {
    const blocked = Object.values(row.blocked[r[0]] || {}).reduce((a, b) => a + b, 0);
    faults.equal(r[1], row.utilisation[r[0]], `${name}: ${r[0]} is busy`);
    faults.expect(Math.abs(r[2] - Math.min(1 - r[1], blocked)) < 1e-9, `${name}: ${r[0]} is blocked ${r[2]}, not ${blocked}`);
  }
}
const qps = await expectFigure('bandwidth-qps', ['queue pairs', 'message rate (Mpps)']);
for (const [i, size] of [[0, 64], [1, 4096]]) faults.equal(qps.series[i].data, rates.map((r) => [r.rows[i].qps, r.rows[i].rate_mpps]), `rate against queue pairs of ${size} bytes`);

// A run: quantiles, histogram, flows, ports.
{
  const r = of('load.json'), id = idOf('load.json');
  const tails = await expectFigure(`${id}-tails`, ['latency (µs)', 'part of the messages that is not slower', '99 %', '99.99 %']);
  const keys = ['p50', 'p90', 'p99', 'p999', 'p9999'];
  for (const w of r.workloads) {
    const name = w.name + (w.background ? ' (background)' : '');
    faults.equal(tails.series.find((s) => s.type === 'scatter' && s.name === name).data.slice(1).map((p) => p[1]), keys.map((k) => w.latency[k]), `quantiles of ${name}`);
    const line = tails.series.find((s) => s.type === 'line' && s.name === name).data;
    faults.expect(line.every((p, i) => i === 0 || (p[0] >= line[i - 1][0])), `the curve of ${name} goes on`);
  }
  faults.equal(cells(tails).map((row) => row.slice(1)), r.workloads.map((w) => [w.latency.count, w.latency.min, w.latency.mean, ...keys.map((k) => w.latency[k]), w.latency.max]), 'table of quantiles');
  const histogram = await expectFigure(`${id}-histogram`, ['latency (µs)', 'share of the messages (%)']);
  for (const [i, w] of r.workloads.entries())
    faults.expect(Math.abs(histogram.series[i].data.reduce((a, p) => a + p[1], 0) - 100) < 1e-6, `the histogram of ${w.name} is of all messages`);
  faults.equal(cells(histogram).map((row) => row[3]), r.workloads.flatMap((w) => w.latency.histogram.map((b) => b.count)), 'bins of the histogram');
  const flows = await expectFigure(`${id}-flows`, ['goodput (Gb/s)', 'rpc: h1 to h3']);
  faults.equal(flows.series[0].data, r.workloads.flatMap((w) => w.flows.map((f) => f.goodput_gbps)), 'goodput of flows');
  await expectBusy(id, r, 'load.json');
  await expectBusy(idOf('incast.json'), of('incast.json'), 'incast.json');
  const ports = await expectFigure(`${id}-ports`, ['longest queue (bytes)', 's1 to h3']);
  faults.equal(ports.series[0].data, r.ports.map((p) => p.most_queued_bytes), 'longest queues of ports');
}

// Sweeps: load curve, heat map, failed points, parallel coordinates.
{
  const sweep = of('rates/sweep.json').points, id = idOf('rates/sweep.json');
  const load = await expectFigure(`${id}-load`, ['offered load: workload.rpc.rate_mpps (Mpps)', 'latency (µs)', '99 %']);
  const first = sweep.filter((p) => p.axes['topology.rate_mbps'] === 10000);
  faults.equal(points(load, '99\u00a0%'), first.map((p) => [p.axes['workload.rpc.rate_mpps'], p.results['all.latency.p99']]), 'latency against load');
  const map = await expectFigure(`${id}-map`, ['topology.rate_mbps (Mb/s)', 'workload.rpc.rate_mpps (Mpps)', '10,000', '0.8']);
  faults.equal(map.series[0].data.map((d) => d[2]).sort(), sweep.map((p) => p.results['all.rate_mpps']).sort(), 'cells of the heat map');
  faults.equal(cells(map).flatMap((r) => r.slice(1)).sort(), sweep.map((p) => p.results['all.rate_mpps']).sort(), 'table of the heat map');
  const lines = await expectFigure(`${id}-lines`, ['workload.rpc.rate_mpps (Mpps)']);
  faults.equal(lines.series.map((s) => s.data.length), [3, 3], 'a curve for each rate of the line');

  const three = of('three/sweep.json').points, three_id = idOf('three/sweep.json');
  const failed = three.filter((p) => p.status !== 'ok').length;
  faults.equal(failed, 4, 'points that fail');
  const crosses = await expectFigure(`${three_id}-lines`, ['failed']);
  faults.equal(points(crosses, 'failed').length, 2, 'failed points are marked on the curves');
  const holes = await figure(page, `${three_id}-map`);
  faults.equal(holes.texts.filter((t) => t === '× failed').length, holes.tables[0].texts.flat().filter((t) => t === '× failed').length, 'failed points are marked in the heat map');
  const parallel = await expectFigure(`${three_id}-parallel`, ['rpc.verb', 'all.rate_mpps']);
  faults.equal(parallel.series[0].data.length, three.length - failed, 'a line for each point that is well');
  const listed = await page.evaluate((i) => [...document.querySelectorAll(`#${i}-points tbody tr`)].map((r) => r.classList.contains('failed')), three_id);
  faults.equal(listed, three.map((p) => p.status !== 'ok'), 'failed points in the table of all');
}

// Explain, fabric, trace.
{
  const more = of('more.json');
  const gains = await expectFigure(`${idOf('more.json')}-gains`, ['gain (%)']);
  faults.equal(gains.series[0].data, more.with_more.map((r) => r.gain_percent).filter((g) => Math.abs(g) >= 0.1).sort((a, b) => b - a), 'gains by resource');
  const incast = of('incast.json');
  const flows = await expectFigure(`${idOf('incast.json')}-flows`, ['goodput (Gb/s)', '1: h1 to h9']);
  faults.equal(flows.series[0].data, incast.flows.map((f) => f.goodput_gbps), 'goodput of flows of a network');
  const times = await expectFigure(`${idOf('incast.json')}-times`, ['time of a message (µs)', 'flow']);
  faults.equal(points(times, 'typical').map((p) => p[1]), incast.flows.map((f) => f.message_us.typical), 'times of messages of a network');
  const trace = await expectFigure(`${idOf('pauses.trace.json.gz')}-timeline`, ['time (µs)', 'bytes in the buffer', 'h1 <b>one</b> port1 priority 3', 's1 port0 peer, priority 3']);
  faults.equal(points(trace, 's1 port2 priority 3'), [[1, 0], [2.5, 4096], [3, 9000], [8, 0], [10, 0], [10, 0]], 'a buffer over time');
  faults.equal(points(trace, 'paused'), [[3, 5, 0], [7, 10, 0], [2.75, 10, 1]], 'pauses over time');
  faults.equal(cells(trace, 1).map((r) => r.slice(1)), [[1, 7.25, 7.25 / 9], [2, 5, 5 / 9]], 'table of pauses');
  faults.expect((await page.$eval(`#${idOf('pauses.trace.json.gz')} .tiles`, (e) => e.textContent)).includes('2 pauses'), 'the pause that a port causes at its peer counts once');
}

// Two results side by side: per cent by an own sum.
{
  const names = await page.$$eval('#side select', (lists) => lists.map((l) => [...l.options].map((o) => o.textContent)));
  faults.equal(names.length, 3, 'lists to choose two results of a kind');
  const a = names[1].findIndex((n) => n === 'read rc'), b = names[2].findIndex((n) => n.startsWith('write rc') && !n.includes('more'));
  const [first, second] = await page.$$('#side > .controls select').then((l) => l.slice(1));
  await first.select(String(a));
  await second.select(String(b));
  const shown = await page.$$eval('#side > div > .scroll tbody tr', (rows) => rows.map((r) => [...r.children].map((c) => c.dataset.value)));
  const [read, write] = ['read.json', 'write.json'].map((n) => of(n).rows);
  for (const [i, r] of read.entries()) {
    const row = shown.find((s) => s[0] === `rows.${r.size}.typical_us (µs)`) || [];
    faults.equal([Number(row[1]), Number(row[2])], [r.typical_us, write[i].typical_us], `side by side: ${r.size} bytes`);
    faults.expect(Math.abs(Number(row[3]) - 100 * (write[i].typical_us / r.typical_us - 1)) < 1e-9, `side by side, per cent: ${row[3]}`);
  }
  await expectFigure('side-bars', ['difference of B to A (%)', 'better']);
}

// Configuration: what differs from the defaults, and the version.
{
  const text = await page.$eval(`#${idOf('read.json')}-configuration`, (e) => e.textContent);
  const rows = await page.$$eval(`#${idOf('read.json')}-configuration > .scroll tbody tr`, (all) => all.map((r) => [...r.children].slice(0, 3).map((c) => c.textContent)));
  faults.equal(rows, [['adapter.clock_khz', '400000', '427000']], 'parameters that differ');
  faults.expect(text.includes(of('read.json').version) && text.includes('adapter.clock_khz=400000'), 'version and --set of a result');
  faults.expect((await page.$eval(`#${idOf('write.json')}-configuration`, (e) => e.textContent)).includes('have the profile’s defaults'), 'a result with defaults alone');
  const opened = await page.$eval(`#${idOf('write.json')}-configuration details`, async (d) => {
    const toggled = new Promise((done) => d.addEventListener('toggle', done));
    d.open = true;
    await toggled;
    return d.querySelectorAll('tbody tr').length;
  });
  faults.equal(opened, data.parameters[data.results.find((r) => r.name === 'write.json').result.parameters].trim().split('\n').filter((l) => l.includes(' = ')).length, 'all parameters are listed');
}

// Skipped files, hostile names, no network.
faults.equal(await page.$$eval('.skipped li code', (all) => all.map((c) => c.textContent)), skipped, 'skipped files on the page');
faults.equal(await page.evaluate(() => [typeof window.broken, document.querySelectorAll('main script, main img').length]), ['undefined', 0], 'names in results are text');
faults.expect(await page.evaluate(() => document.body.textContent.includes('</script><script>window.broken = 1</script>')), 'a hostile name is shown as it is');
faults.equal(seen.said, [], 'the browser has nothing to say');
faults.equal(seen.asked.length, 1, `the page asks for itself alone: ${seen.asked.slice(0, 3)}`);
const refused = await page.evaluate(async () => {
  const broken = [];
  document.addEventListener('securitypolicyviolation', (e) => broken.push(e.effectiveDirective));
  await fetch('http://127.0.0.1:9/').catch(() => 0);
  const image = new Image();
  image.src = 'http://127.0.0.1:9/x.png';
  const script = document.createElement('script');
  script.textContent = 'window.broken = 4';
  document.body.append(image, script);
  await new Promise((done) => setTimeout(done, 200));
  return [broken.sort(), window.broken];
});
faults.equal(refused, [['connect-src', 'img-src', 'script-src-elem'], null], 'its policy forbids network and other scripts');
await page.close();

// Both themes: accessibility by axe-core; headings in order; the switch.
const axe = readFileSync(createRequire(join(packages, 'package.json')).resolve('axe-core/axe.min.js'), 'utf8');
for (const theme of ['light', 'dark']) {
  const { page: p } = await open(browser, file, { theme });
  faults.equal(await p.evaluate(() => document.documentElement.dataset.theme), theme, 'the theme is the system’s');
  await p.$$eval('details', (all) => all.slice(0, 12).forEach((d) => { d.open = true; }));
  // The policy lets no script in; the debugger's is none of the page's.
  await p.evaluate(axe);
  const { violations } = await p.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  for (const v of violations) faults.expect(false, `${theme}: ${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160)).join(' ; ')}`);
  faults.expect(violations.length === 0, `${theme}: axe-core finds nothing`);
  const levels = await p.$$eval('h1, h2, h3, h4', (all) => all.map((h) => Number(h.tagName[1])));
  faults.expect(levels[0] === 1 && levels.every((l, i) => i === 0 || l <= levels[i - 1] + 1), `${theme}: headings are in order`);
  const colour = () => p.$eval('#latency-all svg text', (t) => getComputedStyle(t).fill);
  const before = await colour();
  await p.click('#theme');
  faults.expect(await p.evaluate(() => document.documentElement.dataset.theme) !== theme && await colour() !== before, `${theme}: the switch changes page and figures`);
  await p.close();
}

// By keyboard alone: to the results, the theme, the contents, a list, a table.
{
  const { page: p } = await open(browser, file);
  const at = () => p.evaluate(() => { const e = document.activeElement; return e.id || `${e.tagName.toLowerCase()} ${(e.getAttribute('href') || e.textContent || '').slice(0, 40)}`; });
  const passed = [];
  for (let i = 0; i < 60; ++i) {
    await p.keyboard.press('Tab');
    passed.push(await at());
  }
  faults.equal(passed.slice(0, 4), ['a #main', 'patterns', 'theme', 'a #summary'], 'order of the first stops');
  faults.expect(passed.some((s) => s.startsWith('select-')), 'lists are reached');
  faults.expect(passed.some((s) => s.startsWith('summary The numbers')), `tables are reached: ${passed.slice(-6)}`);
  const outline = await p.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  faults.equal(outline, 'solid', 'where the keyboard is, is seen');
  while (!(await at()).startsWith('summary')) await p.keyboard.press('Tab');
  await p.keyboard.press('Enter');
  faults.expect(await p.evaluate(() => document.activeElement.parentElement.open), 'Enter opens a table');
  await p.keyboard.press('Tab');
  faults.equal(await p.evaluate(() => document.activeElement.getAttribute('role')), 'group', 'a table is reached, and can be scrolled');
  await p.close();
}

// A narrow screen, a page without results of a kind, patterns on bars.
{
  const { page: p } = await open(browser, file, { width: 360, height: 740 });
  faults.expect(await p.evaluate(() => document.documentElement.scrollWidth <= 360), 'at 360 pixels nothing sticks out');
  const wide = await p.$$eval('.plot svg', (all) => all.filter((s) => s.getBoundingClientRect().right > 360).length);
  faults.equal(wide, 0, 'at 360 pixels figures are within the screen');
  await p.click('#patterns');
  faults.expect(await p.$eval(`#${idOf('write.json')}-stages svg`, (s) => s.querySelectorAll('pattern').length > 3), 'bars have patterns');
  await p.close();
}

await browser.close();
faults.end();

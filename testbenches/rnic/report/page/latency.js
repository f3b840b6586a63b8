// SPDX-License-Identifier: Apache-2.0
// Results of `rnic latency`.
import { axis, figure, isDark, tip } from './charts.js';
import { curves, lyingBars, names, sizeAxis } from './curves.js';
import { el, select, table, tiles } from './dom.js';
import { bytes, exact, number, percent, us } from './numbers.js';
import { keyOf, partsOf } from './parts.js';
import { utilisation } from './utilisation.js';

const statistics = [['min_us', 'minimum'], ['typical_us', 'typical (median)'], ['avg_us', 'average'], ['p99_us', '99 %'], ['max_us', 'maximum']];
const rowsOf = (entry) => (entry.result.rows || []).filter((r) => typeof r.typical_us === 'number');
const ns = (ps) => `${number(ps / 1000, 5)} ns`;

const wayOf = (verb) => (/read|cas|fadd/.test(verb || '') ? 'round trip' : 'half round trip');

export const kind = {
  title: 'Latency',
  label: (entry) => `${entry.result.verb} ${entry.result.transport}`,

  summary(entry) {
    const rows = rowsOf(entry);
    if (rows.length === 0) return 'no sizes measured.';
    const first = rows[0], last = rows[rows.length - 1];
    const parts = partsOf([first.stages || []]);
    const sums = parts.map((p) => [p.name, (first.stages || []).filter((s) => keyOf(s) === p.key).reduce((a, s) => a + s.ps, 0)]).sort((a, b) => b[1] - a[1]);
    const where = sums.length ? ` Most of the smallest message’s time is in ${sums[0][0]} (${percent(sums[0][1] / first.end_to_end_ps)})${sums[1] ? ` and ${sums[1][0]} (${percent(sums[1][1] / first.end_to_end_ps)})` : ''}.` : '';
    const to = rows.length > 1 ? `, ${us(last.typical_us)} for ${bytes(last.size)}` : '';
    return `typical latency (${wayOf(entry.result.verb)}) ${us(first.typical_us)} for ${bytes(first.size)}${to}.${where}`;
  },

  together(entries) {
    const y = { log: true };
    const f = figure({
      id: 'latency-all', title: 'Latency over message size',
      says: () => `Typical latency of ${entries.map((e) => e.label).join(', ')}; lower is better.`,
      controls: [select('Scale of latency', [['log', 'logarithmic'], ['linear', 'linear']], 'log', (v) => { y.log = v === 'log'; f.update(); })],
      option: (t) => curves(t, {
        x: sizeAxis, y: { name: 'typical latency (µs)', text: us, log: y.log },
        series: entries.map((e) => ({ name: e.label, points: rowsOf(e).map((r) => [r.size, r.typical_us]) }))
      }),
      table: table('Typical latency in µs by message size', [
        { name: 'size', value: (size) => size, text: bytes },
        ...entries.map((e) => ({ name: `${e.label} (µs)`, value: (size) => (rowsOf(e).find((r) => r.size === size) || {}).typical_us, text: exact }))
      ], [...new Set(entries.flatMap((e) => rowsOf(e).map((r) => r.size)))].sort((a, b) => a - b))
    });
    return [f.root];
  },

  show(entry) {
    const rows = rowsOf(entry);
    if (rows.length === 0) return [];
    return [headline(rows, entry), curve(entry, rows), stacked(entry, rows), way(entry, rows), utilisation(entry, rows, (r) => bytes(r.size), 'message size')];
  }
};

function headline(rows, entry) {
  const best = rows.reduce((a, b) => (b.typical_us < a.typical_us ? b : a)), last = rows[rows.length - 1];
  return tiles([
    { label: `shortest, ${bytes(best.size)}`, value: number(best.typical_us), unit: 'µs', note: wayOf(entry.result.verb) },
    last !== best && { label: `${bytes(last.size)}`, value: number(last.typical_us), unit: 'µs' },
    { label: '99 % above the minimum, at most', value: number(100 * Math.max(...rows.map((r) => r.p99_us / r.min_us - 1)), 2), unit: '%' },
    { label: 'messages of each size', value: number(rows[0].iterations) }
  ]);
}

function curve(entry, rows) {
  const y = { log: true };
  const f = figure({
    id: `${entry.id}-curve`, title: 'Minimum to maximum over message size',
    says: `Minimum, typical value, 99 % and maximum of ${number(rows[0].iterations)} messages of each size.`,
    controls: [select('Scale of latency', [['log', 'logarithmic'], ['linear', 'linear']], 'log', (v) => { y.log = v === 'log'; f.update(); })],
    option: (t) => curves(t, {
      x: sizeAxis, y: { name: `latency, ${wayOf(entry.result.verb)} (µs)`, text: us, log: y.log },
      series: statistics.filter(([key]) => key !== 'avg_us').map(([key, name]) => ({ name, points: rows.map((r) => [r.size, r[key]]) }))
    }),
    table: table(`Latency of ${entry.label} in µs`, [
      { name: 'size', value: (r) => r.size, text: bytes }, { name: 'messages', value: (r) => r.iterations, text: exact },
      ...statistics.map(([key, name]) => ({ name: `${name} (µs)`, value: (r) => r[key], text: exact }))
    ], rows)
  });
  return f.root;
}

function stacked(entry, rows) {
  const withStages = rows.filter((r) => (r.stages || []).length);
  if (withStages.length === 0) return null;
  const parts = partsOf(withStages.map((r) => r.stages));
  const sum = (r, p) => r.stages.filter((s) => keyOf(s) === p.key).reduce((a, s) => a + s.ps, 0);
  const spread = Math.max(...withStages.map((r) => r.end_to_end_ps)) / Math.min(...withStages.map((r) => r.end_to_end_ps));
  const choice = { unit: spread > 3 ? 'share' : 'time' };
  const f = figure({
    id: `${entry.id}-stages`, title: 'Where the time of a typical message goes',
    says: () => `Each bar is a message size; its parts are in the order of the way from one host to the other and sum to the end-to-end time${choice.unit === 'share' ? ', which stands behind the bar' : ''}.`,
    height: 90 + 30 * withStages.length,
    controls: [select('Bars show', [['share', 'share of the time'], ['time', 'time']], choice.unit, (v) => { choice.unit = v; f.update(); })],
    option: (t, width) => lyingBars(t, width, {
      bars: withStages.map((r) => bytes(r.size)),
      parts: parts.map((p) => ({
        name: p.name, colour: p.colour(t.dark),
        values: withStages.map((r) => (choice.unit === 'share' ? 100 * sum(r, p) / r.end_to_end_ps : sum(r, p) / 1000))
      })),
      title: choice.unit === 'share' ? 'share of the end-to-end time (%)' : 'time (ns)',
      text: (v) => (choice.unit === 'share' ? `${number(v, 3)} %` : `${number(v, 5)} ns`),
      max: choice.unit === 'share' ? 100 : undefined, ends: withStages.map((r) => us(r.end_to_end_ps / 1e6))
    }),
    table: table('Time in each part of the way, in ns', [
      { name: 'size', value: (r) => r.size, text: bytes },
      ...parts.map((p) => ({ name: `${p.name} (ns)`, value: (r) => sum(r, p) / 1000, text: exact })),
      { name: 'end to end (ns)', value: (r) => r.end_to_end_ps / 1000, text: exact }
    ], withStages)
  });
  return f.root;
}

/** One message, stage by stage. */
function way(entry, rows) {
  const withStages = rows.filter((r) => (r.stages || []).length);
  if (withStages.length === 0) return null;
  const parts = partsOf(withStages.map((r) => r.stages));
  const choice = { row: withStages[0] };
  const stagesOf = (r) => {
    let at = 0;
    return r.stages.map((s) => {
      const from = at;
      at += s.ps;
      return { ...s, from, part: parts.find((p) => p.key === keyOf(s)) };
    }).filter((s) => s.ps > 0);
  };
  const longest = () => stagesOf(choice.row).reduce((a, b) => (b.ps > a.ps ? b : a));
  const f = figure({
    id: `${entry.id}-way`, title: 'One message, stage by stage',
    says: () => `A typical message of ${bytes(choice.row.size)} takes ${us(choice.row.end_to_end_ps / 1e6)}; its longest stage is ${longest().stage} of ${longest().block} (${ns(longest().ps)}). A stage that the message went through more than once has the sum.`,
    height: () => 70 + 20 * stagesOf(choice.row).length,
    controls: [select('Message size', withStages.map((r, i) => [i, bytes(r.size)]), 0, (v) => { choice.row = withStages[Number(v)]; f.update(); })],
    option: (t, width) => {
      const stages = stagesOf(choice.row);
      const label = (s) => (width < 560 ? s.stage : `${s.block.replace('.adapter.', ' ').replace('.', ' ')} · ${s.stage}`);
      return {
        tooltip: {
          trigger: 'axis', axisPointer: { type: 'shadow' },
          formatter: (shown) => {
            const s = stages[shown[0].dataIndex];
            return tip(`${s.block} · ${s.stage}`, [[s.part.colour(isDark()), 'takes', ns(s.ps)], [null, 'begins at', ns(s.from)],
              ...(s.wait && s.wait !== 'none' ? [[null, 'waits for', s.wait]] : [])]);
          }
        },
        legend: null, grid: { top: 4, right: 64 },
        xAxis: axis(t, 'time since the message was posted (ns)', { max: choice.row.end_to_end_ps / 1000, axisLabel: { formatter: number } }),
        yAxis: names(t, stages.map(label), width),
        series: [
          { type: 'bar', name: 'before', stack: 'way', silent: true, itemStyle: { color: 'transparent', decal: { symbol: 'none' } }, data: stages.map((s) => s.from / 1000) },
          {
            type: 'bar', name: 'stage', stack: 'way', barMinHeight: 1, barCategoryGap: '20%',
            data: stages.map((s) => ({ value: s.ps / 1000, itemStyle: { color: s.part.colour(t.dark) } })),
            label: { show: true, position: 'right', color: t.soft, fontSize: 11, formatter: (r) => number(r.value, 4) }
          }
        ]
      };
    },
    table: () => table(`Stages of a message of ${bytes(choice.row.size)}`, [
      { name: 'stage', value: (s) => s.stage }, { name: 'block', value: (s) => s.block },
      { name: 'waits for', value: (s) => (s.wait === 'none' ? null : s.wait) },
      { name: 'time (ps)', value: (s) => s.ps, text: exact }
    ], choice.row.stages)
  });
  const key = el('ul', { class: 'key', 'aria-label': 'Colours of the parts of the way' },
    parts.map((p) => {
      const mark = el('i', { class: 'swatch', 'aria-hidden': 'true' });
      mark.style.setProperty('--day', p.colour(false));
      mark.style.setProperty('--night', p.colour(true));
      return el('li', {}, mark, p.name);
    }));
  f.root.querySelector('figcaption').append(key);
  return f.root;
}

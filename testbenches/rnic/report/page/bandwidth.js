// SPDX-License-Identifier: Apache-2.0
// Results of `rnic bandwidth`.
import { figure } from './charts.js';
import { curves, sizeAxis } from './curves.js';
import { select, table, tiles } from './dom.js';
import { bytes, count, exact, gbps, mpps, number, percent } from './numbers.js';
import { utilisation } from './utilisation.js';

const rowsOf = (entry) => (entry.result.rows || []).filter((r) => typeof r.goodput_gbps === 'number');
const qpsOf = (entry) => (rowsOf(entry)[0] || {}).qps;
const metrics = {
  goodput_gbps: { name: 'goodput (Gb/s)', text: gbps, title: 'Goodput' },
  rate_mpps: { name: 'message rate (Mpps)', text: mpps, title: 'Message rate' }
};
const metricSelect = (choice, changed) => select('Show', Object.entries(metrics).map(([key, m]) => [key, m.title]), choice.metric, changed);

export const kind = {
  title: 'Bandwidth',
  label: (entry) => `${entry.result.verb} ${entry.result.transport}${qpsOf(entry) ? `, ${count(qpsOf(entry), 'QP')}` : ''}${entry.result.bidirectional ? ', both ways' : ''}`,

  summary(entry) {
    const rows = rowsOf(entry);
    if (rows.length === 0) return 'no sizes measured.';
    const best = rows.reduce((a, b) => (b.goodput_gbps > a.goodput_gbps ? b : a)), fastest = rows.reduce((a, b) => (b.rate_mpps > a.rate_mpps ? b : a));
    return `best goodput ${gbps(best.goodput_gbps)} at ${bytes(best.size)}, limited by ${best.limited_by || 'nothing named'}; highest rate ${mpps(fastest.rate_mpps)} at ${bytes(fastest.size)}, limited by ${fastest.limited_by || 'nothing named'}.`;
  },

  together(entries) {
    return [overSize(entries, 'bandwidth-all'), overQueuePairs(entries)];
  },

  show(entry) {
    const rows = rowsOf(entry);
    if (rows.length === 0) return [];
    const best = rows.reduce((a, b) => (b.goodput_gbps > a.goodput_gbps ? b : a)), fastest = rows.reduce((a, b) => (b.rate_mpps > a.rate_mpps ? b : a));
    return [
      tiles([
        { label: `best goodput, ${bytes(best.size)}`, value: number(best.goodput_gbps), unit: 'Gb/s', note: best.limited_by && `limited by ${best.limited_by}` },
        { label: `highest rate, ${bytes(fastest.size)}`, value: number(fastest.rate_mpps), unit: 'Mpps', note: fastest.limited_by && `limited by ${fastest.limited_by}` },
        { label: 'queue pairs', value: number(rows[0].qps), note: `depth ${rows[0].depth}` }
      ]),
      overSize([entry], `${entry.id}-size`), standstills(entry, rows),
      utilisation(entry, rows, (r) => bytes(r.size), 'message size')
    ];
  }
};

function overSize(entries, id) {
  const choice = { metric: 'goodput_gbps' };
  const f = figure({
    id, title: 'Rate over message size',
    says: () => `${metrics[choice.metric].title} of ${entries.map((e) => e.label).join('; ')}; higher is better.${entries.length === 1 ? ` Limited by ${[...new Set(rowsOf(entries[0]).map((r) => r.limited_by))].join(', then ')}.` : ''}`,
    controls: [metricSelect(choice, (v) => { choice.metric = v; f.update(); })],
    option: (t) => curves(t, {
      x: sizeAxis, y: { name: metrics[choice.metric].name, text: metrics[choice.metric].text, log: false },
      series: entries.map((e) => ({ name: e.label, points: rowsOf(e).map((r) => [r.size, r[choice.metric]]) }))
    }),
    table: table('Rates by message size', [
      { name: 'size', value: (r) => r.size, text: bytes },
      entries.length > 1 && { name: 'of', value: (r) => r.label },
      { name: 'queue pairs', value: (r) => r.qps }, { name: 'messages', value: (r) => r.messages, text: exact },
      { name: 'rate (Mpps)', value: (r) => r.rate_mpps, text: exact }, { name: 'goodput (Gb/s)', value: (r) => r.goodput_gbps, text: exact },
      { name: 'lost', value: (r) => r.lost, text: exact }, { name: 'limited by', value: (r) => r.limited_by }
    ].filter((c) => c), entries.flatMap((e) => rowsOf(e).map((r) => ({ ...r, label: e.label }))))
  });
  return f.root;
}

function overQueuePairs(entries) {
  const rows = entries.flatMap((e) => rowsOf(e).map((r) => ({ ...r, of: `${e.result.verb} ${e.result.transport}${e.result.bidirectional ? ', both ways' : ''}, ${bytes(r.size)}` })));
  const groups = [...new Set(rows.map((r) => r.of))].map((of) => rows.filter((r) => r.of === of).sort((a, b) => a.qps - b.qps))
    .filter((g) => new Set(g.map((r) => r.qps)).size > 1);
  if (groups.length === 0) return null;
  const choice = { metric: 'rate_mpps' };
  const f = figure({
    id: 'bandwidth-qps', title: 'Rate against queue pairs',
    says: () => `${metrics[choice.metric].title} by the number of queue pairs, a curve for each message size; higher is better.`,
    controls: [metricSelect(choice, (v) => { choice.metric = v; f.update(); })],
    option: (t) => curves(t, {
      x: { name: 'queue pairs', text: (v) => count(v, 'queue pair'), short: number }, y: { name: metrics[choice.metric].name, text: metrics[choice.metric].text, log: false },
      series: groups.map((g) => ({ name: g[0].of, points: g.map((r) => [r.qps, r[choice.metric]]) }))
    }),
    table: table('Rates by queue pairs', [
      { name: 'queue pairs', value: (r) => r.qps }, { name: 'of', value: (r) => r.of },
      { name: 'rate (Mpps)', value: (r) => r.rate_mpps, text: exact }, { name: 'goodput (Gb/s)', value: (r) => r.goodput_gbps, text: exact },
      { name: 'limited by', value: (r) => r.limited_by }
    ], groups.flat())
  });
  return f.root;
}

function standstills(entry, rows) {
  const reasons = [...new Set(rows.flatMap((r) => Object.keys(r.standstills || {})))];
  if (reasons.length === 0) return null;
  return table('What a queue pair stood still for, % of the time', [
    { name: 'for', value: (reason) => reason },
    ...rows.map((r) => ({ name: bytes(r.size), value: (reason) => (r.standstills || {})[reason], text: (v) => percent(v) }))
  ], reasons);
}

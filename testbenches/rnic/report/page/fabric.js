// SPDX-License-Identifier: Apache-2.0
// Results of `rnic fabric`.
import { figure, look, tip } from './charts.js';
import { curves, lyingBars } from './curves.js';
import { el, table, tiles } from './dom.js';
import { bytes, count, exact, gbps, number, percent, us } from './numbers.js';
import { ports } from './ports.js';
import { utilisation } from './utilisation.js';

const flowsOf = (entry) => (entry.result.flows || []).map((f) => ({ ...f, title: `${f.name}: ${f.from} to ${f.to}` }));
const times = [['min', 'minimum'], ['typical', 'typical'], ['p99', '99 %'], ['max', 'maximum']];

export const kind = {
  title: 'Networks',
  label: (entry) => `${(entry.result.network || {}).kind || 'fabric'}, ${count(((entry.result.network || {}).hosts || []).length, 'host')}`,

  summary(entry) {
    const r = entry.result, flows = flowsOf(entry);
    if (flows.length === 0) return 'no flows.';
    const slowest = flows.reduce((a, b) => (b.goodput_gbps < a.goodput_gbps ? b : a));
    return `${count(flows.length, 'flow')} with ${gbps(r.goodput_gbps)} together, the slowest ${gbps(slowest.goodput_gbps)} (${slowest.from} to ${slowest.to}); fairness ${number(r.fairness, 4)} (Jain).${(r.standstills || []).length ? ` Deadlock: ${count(r.standstills.length, 'ring')} of waiting ports.` : ''}`;
  },

  show(entry) {
    const r = entry.result, flows = flowsOf(entry);
    if (flows.length === 0) return [];
    const shown = flows.slice(0, 40);
    return [
      tiles([
        { label: 'goodput of all', value: number(r.goodput_gbps), unit: 'Gb/s' }, { label: 'fairness (Jain)', value: number(r.fairness, 4) },
        { label: 'flows', value: number(flows.length) }, { label: 'simulated', value: number((r.network || {}).simulated_us), unit: 'µs' }
      ]),
      figure({
        id: `${entry.id}-flows`, title: 'Goodput of each flow',
        says: `${count(flows.length, 'flow')}${shown.length < flows.length ? `, of which the first ${shown.length} are drawn` : ''}; equal bars are a fair share.`,
        height: 64 + 26 * shown.length,
        option: (t, width) => lyingBars(t, width, {
          bars: shown.map((f) => f.title), parts: [{ name: 'goodput', colour: t.colours[0], values: shown.map((f) => f.goodput_gbps) }],
          title: 'goodput (Gb/s)', text: gbps, ends: shown.map((f) => number(f.goodput_gbps))
        }),
        table: table('Flows', [
          { name: 'flow', value: (f) => f.title }, { name: 'verb', value: (f) => f.verb }, { name: 'size', value: (f) => f.size, text: bytes },
          { name: 'completed', value: (f) => f.completed, text: exact }, { name: 'goodput (Gb/s)', value: (f) => f.goodput_gbps, text: exact },
          ...times.map(([key, name]) => ({ name: `${name} (µs)`, value: (f) => (f.message_us || {})[key], text: exact })),
          { name: 'complete after (µs)', value: (f) => f.completion_us, text: exact }, { name: 'failure', value: (f) => f.failure }
        ], flows)
      }).root,
      messageTimes(entry, shown.filter((f) => f.message_us)), ports(entry), standing(r),
      utilisation(entry, [r], () => 'the run', 'run')
    ];
  }
};

function messageTimes(entry, flows) {
  if (flows.length === 0) return null;
  return figure({
    id: `${entry.id}-times`, title: 'Time of a message by flow', says: 'From its post to its completion: minimum, typical, 99 % and maximum of each flow; lower is better.',
    option: (t) => {
      const option = curves(t, {
        x: { name: 'flow', text: String, log: false }, y: { name: 'time of a message (µs)', text: us },
        series: times.map(([key, name]) => ({ name, points: flows.map((f, i) => [i, f.message_us[key]]) }))
      });
      return {
        ...option, xAxis: { ...option.xAxis, type: 'category', data: flows.map((f) => f.title), axisLabel: { ...option.xAxis.axisLabel, formatter: (v) => v, rotate: flows.length > 6 ? 40 : 0 } },
        series: option.series.map((s, n) => ({ ...s, type: 'scatter', symbolSize: 10, itemStyle: { color: look(t, n).color, opacity: 1 } })),
        tooltip: { trigger: 'axis', formatter: (rows) => tip(flows[rows[0].dataIndex].title, rows.map((r) => [r.color, r.seriesName, us(r.value[1])])) }
      };
    }
  }).root;
}

function standing(r) {
  const blocking = (r.head_of_line_blocking || []).filter((b) => b.part > 0);
  return [
    blocking.length ? table('Head-of-line blocking', [
      { name: 'flow', value: (b) => `${b.flow}: ${b.from} to ${b.to}` }, { name: 'stopped by the queue of', value: (b) => b.behind },
      { name: 'part of the time', value: (b) => b.part, text: (v) => percent(v) }
    ], blocking) : null,
    (r.standstills || []).length ? el('div', { class: 'alarm', role: 'note' }, el('strong', {}, 'Deadlock. '),
      r.standstills.map((s) => `${s.ways.join(', ')} wait for each other in priority ${s.priority} since ${us(s.since_us)}. `)) : null
  ];
}

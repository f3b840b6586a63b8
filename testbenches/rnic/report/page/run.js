// SPDX-License-Identifier: Apache-2.0
// Results of `rnic run`.
import { figure, look, tip } from './charts.js';
import { curves, lyingBars } from './curves.js';
import { table, tiles } from './dom.js';
import { count, exact, gbps, isNumber, mpps, number, quantileList, quantileName, us } from './numbers.js';
import { ports } from './ports.js';
import { utilisation } from './utilisation.js';

const has = (l) => l && l.count > 0 && isNumber(l.p50);
const workloadsOf = (entry) => entry.result.workloads || [];
/** Its messages are answered, and its latencies are halves of round trips. */
const isAnswered = (w) => w.loop === 'ping-pong';
/** All workloads with latencies; and what is measured of all together, where it says more. */
function measuredOf(entry) {
  const list = workloadsOf(entry).map((w) => ({ ...w, name: w.name + (w.background ? ' (background)' : '') + (isAnswered(w) ? ' (half round trip)' : '') }));
  return (list.filter((w) => !w.background).length > 1 && entry.result.all ? [...list, { ...entry.result.all, name: 'all without background', isSum: true }] : list).filter((w) => has(w.latency));
}
const flowsOf = (entry) => workloadsOf(entry).flatMap((w) => (w.flows || []).map((f) => ({ ...f, workload: w.name, name: `${w.name}: ${f.from} to ${f.to}` })));

export const kind = {
  title: 'Runs under load',
  label: (entry) => workloadsOf(entry).map((w) => w.name).join(' + ') || 'run',

  summary(entry) {
    const all = entry.result.all || {};
    const l = all.latency || {};
    const failed = workloadsOf(entry).filter((w) => w.failure);
    const answered = workloadsOf(entry).filter(isAnswered).map((w) => w.name);
    return `${mpps(all.rate_mpps)}, ${gbps(all.goodput_gbps)}${has(l) ? `; latency ${us(l.p50)} at 50\u00a0%, ${us(l.p99)} at 99\u00a0%, ${us(l.p9999)} at 99.99\u00a0%` : ''}.${all.unfinished ? ` ${count(all.unfinished, 'message')} unfinished: the quantiles are of the others.` : ''}${failed.length ? ` Failed: ${failed.map((w) => `${w.name}: ${w.failure}`).join('; ')}.` : ''}${answered.length ? ` Messages of ${answered.join(', ')} are answered: latencies are halves of round trips.` : ''}`;
  },

  together(entries) {
    const some = entries.map((e) => ({ e, l: (e.result.all || {}).latency })).filter((x) => has(x.l));
    if (some.length < 2) return [];
    return [tails('run-all', 'Tails of all runs', some.map((x) => ({ name: x.e.label, latency: x.l })))];
  },

  show(entry) {
    const measured = measuredOf(entry);
    const all = entry.result.all || {};
    const l = all.latency || {};
    return [
      tiles([
        { label: 'messages', value: number(all.completed), note: all.unfinished ? `${number(all.unfinished)} unfinished` : null },
        { label: 'rate', value: number(all.rate_mpps), unit: 'Mpps' }, { label: 'goodput', value: number(all.goodput_gbps), unit: 'Gb/s' },
        has(l) && { label: 'latency, 50 %', value: number(l.p50), unit: 'µs' }, has(l) && { label: 'latency, 99 %', value: number(l.p99), unit: 'µs' },
        has(l) && { label: 'latency, 99.99 %', value: number(l.p9999), unit: 'µs' }
      ]),
      measured.length ? tails(`${entry.id}-tails`, 'Latency up to 99.99 %', measured) : null,
      measured.length ? histogram(entry, measured) : null, goodputs(entry), ports(entry),
      utilisation(entry, [entry.result], () => 'the run', 'run')
    ];
  }
};

/** How many of 1 / (1 - part): the axis on which 99, 99.9 and 99.99 % are equally far apart. */
const beyond = (part) => 1 / (1 - part);
const partName = (v) => `${number(100 * (1 - 1 / v), 6)} %`;

/** Quantiles from the histogram, up to 99.99 %: [1 / (1 - part), latency]. */
function curveOf(latency) {
  const points = [];
  let seen = 0;
  for (const bin of latency.histogram || []) {
    seen += bin.count;
    const part = seen / latency.count;
    if (part < 0.9999 && seen < latency.count) points.push([beyond(part), Math.min(bin.to_us, latency.max)]);
  }
  return points;
}

function tails(id, title, measured) {
  return figure({
    id, title,
    says: `Marks are the exact quantiles; the lines between them follow the histogram. ${measured.map((w) => `${w.name}: ${us(w.latency.p50)} at 50\u00a0%, ${us(w.latency.p9999)} at 99.99\u00a0%`).join('; ')}.`,
    option: (t) => {
      const option = curves(t, {
        x: { name: 'part of the messages that is not slower', text: partName, short: partName, min: 1, max: 10000 }, y: { name: 'latency (µs)', text: us },
        series: measured.map((w) => ({ name: w.name, points: [[1, w.latency.min], ...quantileList.map(([key, part]) => [beyond(part), w.latency[key]])] }))
      });
      const exactOnes = option.series.map((s) => ({ ...s, type: 'scatter', areaStyle: undefined, itemStyle: { ...s.itemStyle, opacity: 1 } }));
      const lines = option.series.map((s, n) => ({
        ...s, data: [...curveOf(measured[n].latency), ...s.data].sort((a, b) => a[0] - b[0] || a[1] - b[1]),
        showSymbol: false, tooltip: { show: false }, step: false
      }));
      return {
        ...option, xAxis: { ...option.xAxis, type: 'log', logBase: 10, min: 1, max: 10000 }, series: [...lines, ...exactOnes],
        tooltip: {
          trigger: 'axis',
          formatter: (rows) => {
            const marks = rows.filter((r) => r.componentSubType === 'scatter');
            const some = marks.length ? marks : rows;
            return tip(partName(some[0].value[0]), some.map((r) => [r.color, r.seriesName, us(r.value[1])]));
          }
        }
      };
    },
    table: table('Quantiles of latency in µs', [
      { name: 'workload', value: (w) => w.name }, { name: 'messages', value: (w) => w.latency.count, text: exact },
      { name: 'minimum (µs)', value: (w) => w.latency.min, text: exact }, { name: 'mean (µs)', value: (w) => w.latency.mean, text: exact },
      ...quantileList.map(([key]) => ({ name: `${quantileName(key)} (µs)`, value: (w) => w.latency[key], text: exact })),
      { name: 'maximum (µs)', value: (w) => w.latency.max, text: exact }
    ], measured)
  }).root;
}

function histogram(entry, measured) {
  const workloads = measured.filter((w) => !w.isSum);
  const steps = (l) => {
    const points = [];
    let end = null;
    for (const b of l.histogram || []) {
      if (end !== null && b.from_us > end * 1.0001) points.push([end, 0]);
      points.push([b.from_us, 100 * b.count / l.count]);
      end = b.to_us;
    }
    if (end !== null) points.push([end, 0]);
    return points;
  };
  return figure({
    id: `${entry.id}-histogram`, title: 'Histogram of latency',
    says: `Share of the messages in each of 20 bins a decade. ${workloads.map((w) => `${w.name}: ${us(w.latency.min)} to ${us(w.latency.max)}, ${count(w.latency.count, 'message')}`).join('; ')}.`,
    option: (t) => curves(t, {
      x: { name: 'latency (µs)', text: us, short: number }, y: { name: 'share of the messages (%)', text: (v) => `${number(v, 3)} %`, log: false, min: 0 },
      series: workloads.map((w) => ({ name: w.name, points: steps(w.latency), step: 'end', quiet: true, area: true }))
    }),
    table: table('Histogram of latency', [
      { name: 'workload', value: (b) => b.name }, { name: 'from (µs)', value: (b) => b.from_us, text: exact },
      { name: 'to (µs)', value: (b) => b.to_us, text: exact }, { name: 'messages', value: (b) => b.count, text: exact }
    ], workloads.flatMap((w) => (w.latency.histogram || []).map((b) => ({ ...b, name: w.name }))))
  }).root;
}

function goodputs(entry) {
  const flows = flowsOf(entry);
  if (flows.length === 0) return null;
  const shown = flows.slice(0, 40);
  const colourOf = (t, f) => look(t, workloadsOf(entry).findIndex((w) => w.name === f.workload)).color;
  return figure({
    id: `${entry.id}-flows`, title: 'Goodput of each flow',
    says: `${count(flows.length, 'pair')} of hosts${shown.length < flows.length ? `, of which the first ${shown.length} are drawn` : ''}; together ${gbps(flows.reduce((a, f) => a + f.goodput_gbps, 0))} with background.`,
    height: 80 + 26 * shown.length,
    option: (t, width) => {
      const option = lyingBars(t, width, {
        bars: shown.map((f) => f.name), parts: [{ name: 'goodput', colour: t.colours[0], values: shown.map((f) => f.goodput_gbps) }],
        title: 'goodput (Gb/s)', text: gbps, ends: shown.map((f) => number(f.goodput_gbps))
      });
      option.series[0].data = shown.map((f) => ({ value: f.goodput_gbps, itemStyle: { color: colourOf(t, f) } }));
      return option;
    },
    table: table('Flows', [
      { name: 'flow', value: (f) => f.name }, { name: 'completed', value: (f) => f.completed, text: exact }, { name: 'unfinished', value: (f) => f.unfinished, text: exact },
      { name: 'lost', value: (f) => f.lost, text: exact },
      { name: 'rate (Mpps)', value: (f) => f.rate_mpps, text: exact }, { name: 'goodput (Gb/s)', value: (f) => f.goodput_gbps, text: exact },
      ...quantileList.map(([key]) => ({ name: `${quantileName(key)} (µs)`, value: (f) => (f.latency || {})[key], text: exact }))
    ], flows)
  }).root;
}


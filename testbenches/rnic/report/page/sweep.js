// SPDX-License-Identifier: Apache-2.0
// Results of `rnic sweep`.
import { figure, ramp, tip } from './charts.js';
import { curves, heatMap } from './curves.js';
import { el, select, table, tiles } from './dom.js';
import { count, exact, isNumber, lowerIsBetter, number, quantileList, quantileName, unitOf, us, withUnit } from './numbers.js';

/** Points with their axes and results. Where each has one size, the fields of all sizes are one: "rows.rate_mpps". */
function pointsOf(entry) {
  const points = (entry.result.points || []).map((p) => ({ ...p, axes: p.axes || {}, results: p.results || {}, failed: p.status !== 'ok' }));
  const row = /^rows\.(\d+)\./;
  const sizesOf = (p) => new Set(Object.keys(p.results).map((key) => (row.exec(key) || [])[1]).filter((size) => size));
  const all = points.map(sizesOf);
  if (all.some((s) => s.size > 1) || new Set(all.flatMap((s) => [...s])).size < 2) return points;
  return points.map((p) => ({ ...p, results: Object.fromEntries(Object.entries(p.results).map(([key, v]) => [key.replace(row, 'rows.'), v])) }));
}
const byValue = (a, b) => (isNumber(a) && isNumber(b) ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true }));
const unique = (list) => [...new Set(list)].sort(byValue);
const withText = (name, v) => (unitOf(name) && isNumber(v) ? `${number(v)}\u00a0${unitOf(name)}` : number(v));
const meanings = { qps: 'queue pairs', sizes: 'message size', size: 'message size', depth: 'messages under way' };
const axisTitle = (name) => (meanings[name.split('.').pop()] ? `${meanings[name.split('.').pop()]}: ${withUnit(name)}` : withUnit(name));
/** The end of an axis's name, for titles. */
const short = (name) => name.replace(/^(parameters|set)\./, '').replace(/^workload\./, '');

/** What varies, with its values; axes that have one value are none. */
function axesOf(points) {
  const namesOfAll = [...new Set(points.flatMap((p) => Object.keys(p.axes)))];
  return namesOfAll.map((name) => ({ name, values: unique(points.map((p) => p.axes[name])), ok: new Set(points.filter((p) => !p.failed).map((p) => p.axes[name])) })).filter((a) => a.values.length > 1);
}

const metricsOf = (points) => [...new Set(points.flatMap((p) => Object.keys(p.results).filter((key) => isNumber(p.results[key]))))];
/** What a reader wants first: rates for bandwidths and runs, then anything. */
const firstMetric = (metrics) => [/rate_mpps$/, /goodput_gbps$/, /typical_us$/].map((p) => metrics.find((m) => p.test(m))).find((m) => m) || metrics[0];
const loadAxis = (axes) => axes.find((a) => /(rate_mpps|load_gbps)$/.test(a.name) && a.values.every(isNumber));

export const kind = {
  title: 'Sweeps',
  label: (entry) => entry.name.replace(/\/?sweep\.json$/, '').split('/').pop() || 'sweep',

  summary(entry) {
    const points = pointsOf(entry), axes = axesOf(points), metrics = metricsOf(points), failed = points.filter((p) => p.failed);
    const m = firstMetric(metrics), some = points.filter((p) => isNumber(p.results[m]));
    const best = some.length ? some.reduce((a, b) => ((lowerIsBetter(m) ? b.results[m] < a.results[m] : b.results[m] > a.results[m]) ? b : a)) : null;
    const at = best ? axes.map((a) => `${short(a.name)} ${withText(a.name, best.axes[a.name])}`).join(', ') : '';
    return `${count(points.length, 'point')} over ${axes.map((a) => a.name).join(', ') || 'nothing'}${failed.length ? `, ${failed.length} of them failed` : ''}${best ? `; best ${m} ${withText(m, best.results[m])} at ${at}` : ''}.`;
  },

  show(entry) {
    const points = pointsOf(entry), axes = axesOf(points), metrics = metricsOf(points), failed = points.filter((p) => p.failed);
    return [
      tiles([{ label: 'points', value: number(points.length), note: failed.length ? `${failed.length} failed` : 'all ok' },
        ...axes.map((a) => ({ label: a.name, value: number(a.values.length), unit: 'values', note: `${withText(a.name, a.values[0])} to ${withText(a.name, a.values[a.values.length - 1])}` }))]),
      loadCurve(entry, points, axes, metrics),
      metrics.length && axes.length ? lines(entry, points, axes, metrics) : null,
      metrics.length && axes.length > 1 ? map(entry, points, axes, metrics) : null,
      metrics.length && axes.length > 2 ? parallel(entry, points, axes, metrics) : null,
      failed.length ? el('div', { class: 'alarm', role: 'note' }, el('strong', {}, `${count(failed.length, 'point')} failed. `), failed.slice(0, 5).map((p) => `Point ${p.point}: ${p.error || p.status}. `)) : null,
      everyPoint(entry, points, metrics)
    ];
  }
};

/** At first the first value with a point that did not fail. */
const heldAt = (a, choice) => choice.held[a.name] ?? Math.max(0, a.values.findIndex((v) => a.ok.has(v)));

/** Lists with which the axes that a chart does not show are held at one value each. */
function held(axes, choice, changed) {
  return axes.map((a) => select(a.name, a.values.map((v, i) => [i, withText(a.name, v)]), heldAt(a, choice), (i) => { choice.held[a.name] = Number(i); changed(); }));
}
const isHeld = (axes, choice) => (p) => axes.every((a) => p.axes[a.name] === a.values[heldAt(a, choice)]);
const heldText = (axes, choice) => (axes.length ? ` At ${axes.map((a) => `${short(a.name)} ${withText(a.name, a.values[heldAt(a, choice)])}`).join(', ')}.` : '');

function loadCurve(entry, points, axes, metrics) {
  const load = loadAxis(axes);
  const known = quantileList.map(([key]) => key).map((key) => [key, metrics.find((m) => m === `all.latency.${key}`) || metrics.find((m) => m.endsWith(`latency.${key}`))]).filter(([, m]) => m);
  if (!load || known.length === 0) return null;
  const rest = axes.filter((a) => a !== load), choice = { held: {} };
  const some = () => points.filter((p) => !p.failed && isHeld(rest, choice)(p)).sort((a, b) => a.axes[load.name] - b.axes[load.name]);
  const shown = known.filter(([key]) => ['p50', 'p99', 'p9999'].includes(key)).length >= 2 ? known.filter(([key]) => ['p50', 'p99', 'p9999'].includes(key)) : known;
  const f = figure({
    id: `${entry.id}-load`, title: 'Latency against load',
    says: () => {
      const list = some();
      const [key, m] = shown[Math.min(1, shown.length - 1)];
      return list.length ? `Latency by the load that is offered. The ${quantileName(key)} quantile goes from ${us(list[0].results[m])} at ${withText(load.name, list[0].axes[load.name])} to ${us(list[list.length - 1].results[m])} at ${withText(load.name, list[list.length - 1].axes[load.name])}.${heldText(rest, choice)}` : `No points.${heldText(rest, choice)}`;
    },
    controls: held(rest, choice, () => f.update()),
    option: (t) => curves(t, {
      x: { name: `offered load: ${withUnit(load.name)}`, text: (v) => withText(load.name, v), short: number, log: false, fit: true }, y: { name: 'latency (µs)', text: us },
      series: shown.map(([key, m]) => ({ name: quantileName(key), points: some().filter((p) => isNumber(p.results[m])).map((p) => [p.axes[load.name], p.results[m]]) }))
    }),
    table: () => table('Latency against load', [
      { name: withUnit(load.name), value: (p) => p.axes[load.name], text: exact }, ...known.map(([key, m]) => ({ name: `${quantileName(key)} (µs)`, value: (p) => p.results[m], text: exact }))
    ], some())
  });
  return f.root;
}

function lines(entry, points, axes, metrics) {
  const choice = { metric: firstMetric(metrics), x: (axes.find((a) => /qps$/.test(a.name)) || loadAxis(axes) || axes.find((a) => a.values.every(isNumber)) || axes[0]).name, held: {} };
  const parts = () => {
    const x = axes.find((a) => a.name === choice.x), others = axes.filter((a) => a !== x);
    const of = others.find((a) => !a.values.every(isNumber)) || others[0];
    return { x, of, rest: others.filter((a) => a !== of) };
  };
  const controls = el('span', { class: 'controls' });
  const refill = () => {
    const focus = document.activeElement && controls.contains(document.activeElement) ? [...controls.querySelectorAll('select')].indexOf(document.activeElement) : -1;
    controls.replaceChildren(
      select('Show', metrics.map((m) => [m, withUnit(m)]), choice.metric, (m) => { choice.metric = m; f.update(); }),
      ...(axes.length > 1 ? [select('over', axes.map((a) => [a.name, a.name]), choice.x, (name) => { choice.x = name; choice.held = {}; refill(); f.update(); })] : []),
      ...held(parts().rest, choice, () => f.update()));
    if (focus >= 0 && controls.querySelectorAll('select')[focus]) controls.querySelectorAll('select')[focus].focus();
  };
  const isQueuePairs = () => /(^|\.)qps$/.test(choice.x);
  const f = figure({
    id: `${entry.id}-lines`, title: axes.some((a) => /(^|\.)qps$/.test(a.name)) ? 'Rate against queue pairs' : 'Results over one axis',
    says: () => {
      const { x, of, rest } = parts(), failed = points.filter((p) => p.failed && isHeld(rest, choice)(p)).length;
      return `${withUnit(choice.metric)} over ${isQueuePairs() ? 'the number of queue pairs' : x.name}${of ? `, a curve for each ${of.name}` : ''}; ${lowerIsBetter(choice.metric) ? 'lower' : 'higher'} is better.${heldText(rest, choice)}${failed ? ` ${count(failed, 'failed point')}: crosses at the lower edge.` : ''}`;
    },
    controls: [controls],
    option: (t) => {
      const { x, of, rest } = parts(), some = points.filter(isHeld(rest, choice)), numeric = x.values.every(isNumber);
      const at = (p) => (numeric ? p.axes[x.name] : x.values.indexOf(p.axes[x.name]));
      const series = (of ? of.values : [null]).map((v) => ({
        name: of ? `${short(of.name)} ${withText(of.name, v)}` : withUnit(choice.metric),
        points: some.filter((p) => (!of || p.axes[of.name] === v) && isNumber(p.results[choice.metric]) && !p.failed).sort((a, b) => at(a) - at(b)).map((p) => [at(p), p.results[choice.metric]])
      }));
      const spread = numeric && x.values[0] > 0 && x.values[x.values.length - 1] / x.values[0] >= 8;
      const option = curves(t, {
        x: { name: axisTitle(x.name), text: (v) => `${short(x.name)} ${withText(x.name, v)}`, short: number, log: spread, fit: true }, y: { name: withUnit(choice.metric), text: (v) => withText(choice.metric, v), log: false, fit: unitOf(choice.metric) === 'µs' }, series
      });
      const failed = some.filter((p) => p.failed);
      if (!numeric) option.xAxis = { ...option.xAxis, type: 'category', data: x.values.map((v) => number(v)), axisLabel: { ...option.xAxis.axisLabel, formatter: (v) => v } };
      if (!numeric) option.tooltip.formatter = (rows) => tip(String(x.values[rows[0].dataIndex] ?? ''), rows.map((r) => [r.color, r.seriesName, withText(choice.metric, r.value[1])]));
      if (failed.length) {
        const low = Math.min(...series.flatMap((s) => s.points.map((p) => p[1])), option.yAxis.scale ? Infinity : 0);
        option.series.push({ type: 'scatter', name: 'failed', symbol: 'path://M0,0 L10,10 M10,0 L0,10', symbolSize: 12, itemStyle: { color: t.bad, borderColor: t.bad, borderWidth: 2 }, data: failed.map((p) => [at(p), low]), tooltip: { show: false } });
        option.legend = { show: true };
        option.grid = { top: 40 };
      }
      return option;
    },
    table: () => {
      const { x, of, rest } = parts(), some = points.filter(isHeld(rest, choice));
      const cell = (row, v) => {
        const p = some.find((q) => q.axes[x.name] === row && (!of || q.axes[of.name] === v));
        return p ? (p.failed ? '× failed' : p.results[choice.metric]) : null;
      };
      return table(`${withUnit(choice.metric)} over ${x.name}`, [
        { name: withUnit(x.name), value: (row) => row, text: exact },
        ...(of ? of.values : [null]).map((v) => ({ name: of ? `${short(of.name)} ${withText(of.name, v)}` : withUnit(choice.metric), value: (row) => cell(row, v), text: exact }))
      ], x.values);
    }
  });
  refill();
  return f.root;
}

function map(entry, points, axes, metrics) {
  const y0 = axes.find((a) => a !== axes[0]);
  const choice = { metric: firstMetric(metrics), x: axes[0].name, y: y0.name, held: {} };
  const parts = () => ({ x: axes.find((a) => a.name === choice.x), y: axes.find((a) => a.name === choice.y), rest: axes.filter((a) => a.name !== choice.x && a.name !== choice.y) });
  const controls = el('span', { class: 'controls' });
  const pick = (which, other) => (name) => {
    if (choice[other] === name) choice[other] = choice[which];
    choice[which] = name;
    choice.held = {};
    refill();
    f.update();
  };
  const refill = () => {
    const focus = document.activeElement && controls.contains(document.activeElement) ? [...controls.querySelectorAll('select')].indexOf(document.activeElement) : -1;
    controls.replaceChildren(
      select('Show', metrics.map((m) => [m, withUnit(m)]), choice.metric, (m) => { choice.metric = m; f.update(); }),
      ...(axes.length > 2 ? [select('columns', axes.map((a) => [a.name, a.name]), choice.x, pick('x', 'y')), select('rows', axes.map((a) => [a.name, a.name]), choice.y, pick('y', 'x'))] : []),
      ...held(parts().rest, choice, () => f.update()));
    if (focus >= 0 && controls.querySelectorAll('select')[focus]) controls.querySelectorAll('select')[focus].focus();
  };
  const cellsOf = () => {
    const { x, y, rest } = parts();
    return points.filter(isHeld(rest, choice)).map((p) => {
      const v = p.results[choice.metric];
      const there = isNumber(v) && !p.failed;
      return [x.values.indexOf(p.axes[x.name]), y.values.indexOf(p.axes[y.name]), there ? v : null, there ? withText(choice.metric, v) : p.failed ? '× failed' : 'none'];
    });
  };
  const f = figure({
    id: `${entry.id}-map`, title: 'Heat map',
    says: () => {
      const { x, y, rest } = parts(), cells = cellsOf().filter((c) => c[2] !== null);
      if (cells.length === 0) return `No point has ${choice.metric}.${heldText(rest, choice)}`;
      const low = cells.reduce((a, b) => (b[2] < a[2] ? b : a)), high = cells.reduce((a, b) => (b[2] > a[2] ? b : a));
      const where = (c) => `${short(x.name)} ${withText(x.name, x.values[c[0]])}, ${short(y.name)} ${withText(y.name, y.values[c[1]])}`;
      return `${withUnit(choice.metric)}: lowest ${low[3]} at ${where(low)}; highest ${high[3]} at ${where(high)}.${heldText(rest, choice)}`;
    },
    height: () => 130 + Math.max(200, 44 * parts().y.values.length),
    controls: [controls],
    option: (t, width) => {
      const { x, y } = parts(), cells = cellsOf(), values = cells.map((c) => c[2]).filter((v) => v !== null);
      const low = Math.min(...values), high = Math.max(...values);
      return heatMap(t, width, {
        columns: x.values.map((v) => number(v)), rows: y.values.map((v) => number(v)), cells: cells.map((c) => [c[0], c[1], c[2], c[2] === null ? c[3] : width < 560 ? number(c[2], 3) : c[3]]),
        x: { name: axisTitle(x.name) }, y: { name: axisTitle(y.name), inverse: false }, low, high, logarithmic: low > 0 && high / low > 20, text: (v) => withText(choice.metric, v)
      });
    },
    table: () => {
      const { x, y } = parts(), cells = cellsOf();
      return table(`${withUnit(choice.metric)} by ${x.name} and ${y.name}`, [
        { name: y.name, value: (row) => y.values[row], text: exact },
        ...x.values.map((v, column) => ({
          name: `${short(x.name)} ${number(v)}`, value: (row) => { const c = cells.find((k) => k[0] === column && k[1] === row); return c ? c[2] ?? c[3] : null; }, text: exact
        }))
      ], y.values.map((_, row) => row));
    }
  });
  refill();
  return f.root;
}

function parallel(entry, points, axes, metrics) {
  const choice = { metric: firstMetric(metrics) };
  const ok = points.filter((p) => !p.failed);
  const f = figure({
    id: `${entry.id}-parallel`, title: 'All points at once', height: 380,
    says: () => `Each line is one of ${count(ok.length, 'point')} through its values on ${count(axes.length, 'axis', 'axes')} to ${withUnit(choice.metric)} at the right, whose height and colour show the result.`,
    controls: [select('Show', metrics.map((m) => [m, withUnit(m)]), choice.metric, (m) => { choice.metric = m; f.update(); })],
    option: (t, width) => {
      const some = ok.filter((p) => isNumber(p.results[choice.metric])), values = some.map((p) => p.results[choice.metric]);
      const low = Math.min(...values), high = Math.max(...values);
      const label = { color: t.ink, fontSize: 11, textBorderColor: t.surface, textBorderWidth: 4 };
      return {
        legend: null, grid: { show: false },
        parallel: { left: 64, right: 76, top: 44, bottom: 24, parallelAxisDefault: { nameLocation: 'end', nameGap: 14, nameTextStyle: { color: t.ink, fontSize: 11, width: Math.max(60, width / (axes.length + 1) - 12), overflow: 'truncate' }, axisLine: { lineStyle: { color: t.soft } }, axisLabel: label } },
        parallelAxis: [
          ...axes.map((a, dim) => ({ dim, name: short(a.name), type: 'category', data: a.values.map((v) => number(v)), axisLabel: label })),
          { dim: axes.length, name: choice.metric, type: 'value', scale: true, axisLabel: label }
        ],
        series: [{
          type: 'parallel', lineStyle: { width: 2, opacity: some.length > 300 ? 0.3 : 0.75 },
          data: some.map((p) => {
            const part = high > low ? (p.results[choice.metric] - low) / (high - low) : 0;
            return { value: [...axes.map((a) => number(p.axes[a.name])), p.results[choice.metric]], lineStyle: { color: ramp(t)[2 + Math.round(part * 7)] } };
          })
        }]
      };
    }
  });
  return f.root;
}

function everyPoint(entry, points, metrics) {
  const names = [...new Set(points.flatMap((p) => Object.keys(p.axes)))], texts = [...new Set(points.flatMap((p) => Object.keys(p.results).filter((k) => !isNumber(p.results[k]))))];
  return el('details', { id: `${entry.id}-points` }, el('summary', {}, `All ${points.length} points`), table(`Points of ${entry.label}`, [
    { name: 'point', value: (p) => p.point }, { name: 'status', value: (p) => (p.failed ? `× ${p.status}` : p.status) },
    ...names.map((a) => ({ name: withUnit(a), value: (p) => p.axes[a], text: exact })),
    ...[...metrics, ...texts].map((m) => ({ name: withUnit(m), value: (p) => p.results[m], text: exact })), { name: 'error', value: (p) => p.error }
  ], points));
}


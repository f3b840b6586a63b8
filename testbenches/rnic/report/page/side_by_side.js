// SPDX-License-Identifier: Apache-2.0
// Two results of one command against each other, field by field as `rnic compare` names them.
import { axis, figure, tip } from './charts.js';
import { names } from './curves.js';
import { details, el, select, table } from './dom.js';
import { count, exact, isNumber, lowerIsBetter, number, withUnit } from './numbers.js';

const leftOut = /^(command|version|seed|set|file|profile|parameters|host_parameters)(\.|$)|(^|\.)(histogram|simulator|counters)(\.|$)|^experiment\.|(^|\.)(count|port|size|qps|depth|rx_depth|outs|point|iterations|messages|offered|completed|posted|stages|from|to)(\.|$)/;

/** What tells an element of a list from the others (compare/result_fields.cpp). */
function keyOf(e) {
  if (e === null || typeof e !== 'object') return '';
  for (const key of ['name', 'id']) if (e[key] !== undefined) return String(e[key]);
  for (const [a, b] of [['from', 'to'], ['block', 'stage'], ['switch', 'port']]) if (e[a] !== undefined && e[b] !== undefined) return `${e[a]}-${e[b]}`;
  for (const key of ['resource', 'size', 'bytes', 'point']) if (e[key] !== undefined) return String(e[key]);
  return '';
}

export function fieldsOf(value, name = '', all = new Map()) {
  const before = name ? `${name}.` : '';
  if (Array.isArray(value)) {
    const known = new Set();
    value.forEach((element, n) => {
      let key = keyOf(element) || String(n);
      if (known.has(key)) key += `#${n}`;
      known.add(key);
      fieldsOf(element, before + key, all);
    });
  } else if (value !== null && typeof value === 'object') {
    for (const [key, v] of Object.entries(value)) fieldsOf(v, before + key, all);
  } else {
    all.set(name, value);
  }
  return all;
}

const headlines = /(typical_us|p99_us|goodput_gbps|rate_mpps|latency\.(p50|p99|p9999)|fairness|gain_percent|obtained)$/;
const signed = (v) => (v === null ? null : `${v > 0 ? '+' : ''}${number(v, 4)}\u00a0%`);

function differencesOf(a, b) {
  const first = fieldsOf(a.result), second = fieldsOf(b.result);
  return [...first].filter(([name, v]) => !leftOut.test(name) && isNumber(v) && isNumber(second.get(name))).map(([name, v]) => {
    const other = second.get(name);
    return { name, a: v, b: other, percent: v === other ? 0 : v === 0 ? null : 100 * (other - v) / Math.abs(v) };
  });
}

/** Groups of entries of one command with two or more. */
export function sideBySide(groups) {
  const several = groups.filter((g) => g.entries.length > 1 && g.command !== 'trace');
  if (several.length === 0) return null;
  const choice = { group: several[0], a: 0, b: 1 };
  const place = el('div', {});
  const controls = el('div', { class: 'controls' });
  const refill = () => {
    const { entries } = choice.group;
    const options = entries.map((e, i) => [i, e.label]);
    const lists = [
      several.length > 1 && select('Results of', several.map((g, i) => [i, g.title]), several.indexOf(choice.group), (i) => { choice.group = several[Number(i)]; choice.a = 0; choice.b = 1; refill(); }),
      select('Reference', options, choice.a, (i) => { choice.a = Number(i); show(); }), select('Other', options, choice.b, (i) => { choice.b = Number(i); show(); })
    ].filter((l) => l);
    const had = document.activeElement && controls.contains(document.activeElement);
    controls.replaceChildren(...lists);
    if (had) controls.querySelector('select').focus();
    show();
  };
  const show = () => {
    const a = choice.group.entries[choice.a], b = choice.group.entries[choice.b];
    const all = differencesOf(a, b), first = all.filter((d) => headlines.test(d.name)), differing = all.filter((d) => d.percent !== 0);
    const columns = [
      { name: 'field', value: (d) => withUnit(d.name) }, { name: `A: ${a.label}`, value: (d) => d.a, text: exact }, { name: `B: ${b.label}`, value: (d) => d.b, text: exact },
      { name: 'B to A (%)', value: (d) => d.percent, text: signed }
    ];
    place.replaceChildren(
      el('p', { id: 'side-words' }, `A is ${a.label} (${a.name}), B is ${b.label} (${b.name}): ${count(differing.length, 'field')} of ${number(all.length)} differ.`),
      first.length ? bars(first) : '', first.length ? table('Main figures', columns, first) : '',
      details(`All ${number(all.length)} numbers that both have`, table('All numbers', columns, all)));
    place.dispatchEvent(new CustomEvent('shown'));
  };
  refill();
  place.addEventListener('shown', () => place.querySelectorAll('figure').forEach((f) => f.redraw && f.redraw()));
  return [controls, place];
}

function bars(all) {
  const shown = all.filter((d) => d.percent !== null).slice(0, 24);
  if (shown.length === 0) return '';
  const f = figure({
    id: 'side-bars', heading: 'h3', title: 'Difference of the main figures',
    says: `B to A in per cent, ${shown.length < all.length ? `the first ${shown.length} of ${all.length}` : 'all of them'}. Better and worse have different colours: lower is better for latencies, higher for rates.`,
    height: 84 + 24 * shown.length,
    option: (t, width) => ({
      legend: { show: true, data: ['better', 'worse'] }, grid: { top: 40, right: 60 },
      tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, formatter: (rows) => { const d = shown[rows[0].dataIndex]; return tip(withUnit(d.name), [[null, 'A', exact(d.a)], [null, 'B', exact(d.b)], [null, 'B to A', signed(d.percent)]]); } },
      xAxis: axis(t, 'difference of B to A (%)', { axisLabel: { formatter: (v) => number(v) } }), yAxis: names(t, shown.map((d) => withUnit(d.name)), width),
      series: ['better', 'worse'].map((name, n) => ({
        type: 'bar', name, stack: 'all', itemStyle: { color: t.colours[n] },
        data: shown.map((d) => ((d.percent < 0) === lowerIsBetter(d.name) ? 'better' : 'worse') === name ? { value: d.percent } : null),
        label: { show: true, position: 'right', color: t.ink, fontSize: 11, formatter: (r) => (r.value === null || r.value === undefined || r.value === 0 ? '' : signed(r.value)) }
      }))
    })
  });
  f.root.redraw = f.update;
  return f.root;
}

// SPDX-License-Identifier: Apache-2.0
// Traces (--trace): buffers and pauses over time.
import { axis, figure, look, tip } from './charts.js';
import { nameRoom } from './curves.js';
import { el, select, table, tiles } from './dom.js';
import { about_bytes, count, exact, number, percent, us } from './numbers.js';

const most = 8;
/** What the chart says anyhow is not part of a name. */
const nameOf = (s) => `${s.process} ${s.name.replace(/^adapter\./, '').replace(/ peer paused/, ' peer,').replace(/ paused(?= |$)/, '').replace(/ queue bytes$/, '').replace(/ bytes$/, '')}`.trim();
/** What a port does to its peer is the peer's pause, a cable's length later: it counts once. */
const ownPauses = (r) => (r.pauses || []).filter((p) => !/ peer paused/.test(p.name));
const sum = (list, key) => list.reduce((a, p) => a + p[key], 0);
const spanOf = (r) => Math.max(0, r.to_us - r.from_us);
const filled = (r) => (r.buffers || []).filter((c) => c.most > 0).sort((a, b) => b.most - a.most);

export const kind = {
  title: 'Timeline of buffers and pauses',
  label: (entry) => entry.name.split('/').pop().replace(/\.json(\.gz)?$/, ''),

  summary(entry) {
    const r = entry.result, top = filled(r)[0], longest = [...ownPauses(r)].sort((a, b) => b.total_us - a.total_us)[0];
    return `${us(spanOf(r))}; ${top ? `fullest buffer ${nameOf(top)}, ${about_bytes(top.most)}` : 'no buffer was filled'}; ${longest && longest.number ? `longest paused ${nameOf(longest)}, ${us(longest.total_us)} in ${count(longest.number, 'pause')}` : 'no pauses'}.`;
  },

  show(entry) {
    const r = entry.result;
    if ((r.buffers || []).length + (r.pauses || []).length === 0) return [el('p', {}, 'The trace has no counters of buffers or pauses.')];
    const top = filled(r)[0];
    return [
      tiles([{ label: 'time', value: number(spanOf(r)), unit: 'µs' }, { label: 'events in the trace', value: number(r.events) },
        top && { label: 'fullest buffer', value: about_bytes(top.most), note: nameOf(top) },
        { label: 'paused, all together', value: number(sum(ownPauses(r), 'total_us')), unit: 'µs', note: count(sum(ownPauses(r), 'number'), 'pause') }]),
      timeline(entry)
    ];
  }
};

const rounded = (v) => Number(v.toFixed(3));

/** The value of a curve of steps at a time. */
function at(points, time) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= time) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : points[low - 1][1];
}

function timeline(entry) {
  const r = entry.result, all = filled(r), pauses = (r.pauses || []).filter((p) => p.number > 0).sort((a, b) => / peer paused/.test(a.name) - / peer paused/.test(b.name) || b.total_us - a.total_us);
  const shownPauses = pauses.slice(0, 24);
  const choice = { from: r.from_us, to: r.to_us, which: 'fullest' };
  const shown = () => (choice.which === 'fullest' ? all.slice(0, most) : [all[Number(choice.which)]]).filter((c) => c);
  const input = (label, key) => {
    const id = `${entry.id}-${key}`;
    return el('span', { class: 'control' }, el('label', { for: id }, label), el('input', {
      id, type: 'number', step: 'any', value: rounded(choice[key]),
      change: (e) => {
        const v = Number(e.target.value);
        const valid = Number.isFinite(v) && e.target.value !== '' && (key === 'from' ? v < choice.to : v > choice.from);
        if (valid) choice[key] = v;
        else e.target.value = rounded(choice[key]);
        f.update();
      }
    }));
  };
  const thinned = all.some((c) => c.changes > c.points.length) || pauses.some((p) => p.number > p.times.length);
  const rowsTop = 300, rowHeight = 22;
  const f = figure({
    id: `${entry.id}-timeline`, title: 'Buffers and pauses over time',
    says: () => `Above, how full ${choice.which === 'fullest' && all.length > most ? `the ${most} fullest of ${all.length} buffers` : 'the buffers'} were; below, when each port was paused${shownPauses.length < pauses.length ? ` (${shownPauses.length} of ${pauses.length})` : ''}.${thinned ? ' Long curves are thinned: lowest and highest values stay, and short gaps between pauses may not show; the table counts all.' : ''}`,
    height: () => rowsTop + Math.max(1, shownPauses.length) * rowHeight + 64,
    controls: [
      select('Buffers', [['fullest', all.length > most ? `${most} fullest` : 'all'], ...all.map((c, i) => [i, nameOf(c)])], 'fullest', (v) => { choice.which = v; f.update(); }),
      input('from (µs)', 'from'), input('to (µs)', 'to'),
      el('button', { type: 'button', click: () => { choice.from = r.from_us; choice.to = r.to_us; for (const key of ['from', 'to']) document.getElementById(`${entry.id}-${key}`).value = rounded(choice[key]); f.update(); } }, 'All of it')
    ],
    option: (t, width) => {
      const left = Math.max(84, Math.min(200, nameRoom(width))), list = shown(), wide = width - left - 28;
      const time = (more) => axis(t, more.name || '', { ...more, min: choice.from, max: choice.to, splitLine: { show: false } });
      return {
        legend: { show: list.length > 1, data: list.map(nameOf) },
        // Both begin and end at one place, whatever room their labels would take.
        grid: [{ left, right: 28, outerBoundsMode: 'none', top: list.length > 1 ? 40 : 12, height: rowsTop - 60 }, { left, right: 28, outerBoundsMode: 'none', top: rowsTop + 14, height: Math.max(1, shownPauses.length) * rowHeight }],
        axisPointer: { link: [{ xAxisIndex: 'all' }] },
        tooltip: {
          trigger: 'axis',
          formatter: (rows) => {
            const when = rows[0].axisValue;
            const paused = shownPauses.filter((p) => p.times.some(([a, b]) => a <= when && when <= b));
            return tip(`at ${us(when)}`, [...list.map((c, n) => [look(t, n).color, nameOf(c), about_bytes(at(c.points, when))]), ...paused.map((p) => [t.bad, nameOf(p), 'paused'])]);
          }
        },
        xAxis: [time({ gridIndex: 0, axisLabel: { show: false } }), time({ gridIndex: 1, name: 'time (µs)', axisLabel: { formatter: (v) => number(v, 6) } })],
        yAxis: [
          axis(t, 'bytes in the buffer', { gridIndex: 0, nameGap: 58, axisLabel: { formatter: about_bytes }, min: 0 }),
          {
            gridIndex: 1, type: 'category', inverse: true, data: shownPauses.length ? shownPauses.map(nameOf) : ['no pauses'],
            axisLine: { lineStyle: { color: t.line } }, axisTick: { show: false }, axisLabel: { color: t.ink, fontSize: 11, width: left - 12, overflow: 'truncate', interval: 0 }
          }
        ],
        series: [
          ...list.map((c, n) => ({
            type: 'line', name: nameOf(c), step: 'end', showSymbol: false, data: [...c.points, [r.to_us, c.points[c.points.length - 1][1]]],
            lineStyle: { width: 1.5, color: look(t, n).color, type: look(t, n).dash }, itemStyle: { color: look(t, n).color }, areaStyle: list.length === 1 ? { opacity: 0.2 } : undefined
          })),
          {
            type: 'custom', name: 'paused', xAxisIndex: 1, yAxisIndex: 1, itemStyle: { color: t.bad }, encode: { x: [0, 1], y: 2 },
            data: shownPauses.flatMap((p, row) => p.times.map(([a, b]) => [a, b, row])),
            renderItem: (params, api) => {
              const [x1, y] = api.coord([api.value(0), api.value(2)]), x2 = api.coord([api.value(1), api.value(2)])[0];
              const from = Math.max(x1, left), to = Math.min(Math.max(x2, x1 + 1), left + wide);
              if (to < from) return null;
              return { type: 'rect', shape: { x: from, y: y - rowHeight * 0.32, width: Math.max(1, to - from), height: rowHeight * 0.64 }, style: { fill: t.bad } };
            }
          }
        ]
      };
    },
    table: [
      table('Buffers', [
        { name: 'buffer', value: nameOf }, { name: 'most (bytes)', value: (c) => c.most, text: exact }, { name: 'changes', value: (c) => c.changes, text: exact }
      ], [...(r.buffers || [])].sort((a, b) => b.most - a.most)),
      table('Pauses', [
        { name: 'port and priority', value: nameOf }, { name: 'pauses', value: (p) => p.number, text: exact }, { name: 'paused (µs)', value: (p) => p.total_us, text: exact },
        { name: 'part of the time', value: (p) => (spanOf(r) > 0 ? p.total_us / spanOf(r) : 0), text: (v) => percent(v) }
      ], [...(r.pauses || [])].sort((a, b) => b.total_us - a.total_us))
    ]
  });
  return f.root;
}

// SPDX-License-Identifier: Apache-2.0
// Results of `rnic calibrate`.
import { axis, figure, tip } from './charts.js';
import { names } from './curves.js';
import { table, tiles } from './dom.js';
import { count, exact, number } from './numbers.js';

const pointsOf = (entry) => (entry.result.points || []).map((p) => ({ ...p, title: `${p.id}, ${number(p.x)}: ${p.what}`, failed: !p.in_band }));
const signed = (v) => `${v > 0 ? '+' : ''}${number(v, 3)} %`;

export const kind = {
  title: 'Against published figures',
  label: (entry) => `${entry.result.profile}, ${entry.result.points_are || 'points'}`,
  summary(entry) {
    const all = pointsOf(entry), outside = all.filter((p) => !p.in_band);
    return `${all.length - outside.length} of ${count(all.length, 'published point')} within their bands${outside.length ? `; outside: ${outside.map((p) => p.id).join(', ')}` : ''}.`;
  },
  show(entry) {
    const all = pointsOf(entry), drawn = all.filter((p) => typeof p.error_pct === 'number');
    const worst = drawn.length ? drawn.reduce((a, b) => (Math.abs(b.error_pct) > Math.abs(a.error_pct) ? b : a)) : null;
    return [
      tiles([{ label: 'within their bands', value: `${all.filter((p) => p.in_band).length} of ${all.length}` },
        worst && { label: 'largest error', value: signed(worst.error_pct), note: `${worst.id} ${worst.what}` }]),
      drawn.length ? figure({
        id: `${entry.id}-errors`, title: 'Error against the published figure',
        says: 'Marks are the errors of the model; the bars behind them are the bands within which they must be.',
        height: 64 + 24 * drawn.length,
        option: (t, width) => ({
          legend: null, grid: { top: 8 },
          tooltip: {
            trigger: 'axis', axisPointer: { type: 'shadow' },
            formatter: (rows) => {
              const p = drawn[rows[0].dataIndex];
              return tip(p.title, [[null, 'published', `${number(p.expected)} ${p.unit}`], [null, 'model', `${number(p.obtained)} ${p.unit}`], [null, 'error', signed(p.error_pct)], [null, 'source', p.source]]);
            }
          },
          xAxis: axis(t, 'error (%)'), yAxis: names(t, drawn.map((p) => p.title), width),
          series: [
            { type: 'bar', stack: 'low', silent: true, data: drawn.map((p) => -p.band_pct), itemStyle: { color: t.idle }, barCategoryGap: '35%', name: 'band' },
            { type: 'bar', stack: 'low', silent: true, data: drawn.map((p) => p.band_pct), itemStyle: { color: t.idle }, name: 'band' },
            { type: 'scatter', name: 'error', symbolSize: 10, data: drawn.map((p, i) => ({ value: [p.error_pct, i], symbol: p.in_band ? 'circle' : 'triangle', itemStyle: { color: p.in_band ? t.colours[0] : t.bad, opacity: 1 } })) }
          ]
        })
      }).root : null,
      table('Published points', [
        { name: 'point', value: (p) => p.id }, { name: 'what', value: (p) => p.what }, { name: 'at', value: (p) => p.x, text: exact },
        { name: 'published', value: (p) => p.expected, text: exact }, { name: 'model', value: (p) => p.obtained, text: exact }, { name: 'unit', value: (p) => p.unit },
        { name: 'error (%)', value: (p) => p.error_pct, text: exact }, { name: 'band (±%)', value: (p) => p.band_pct, text: exact },
        { name: 'within', value: (p) => (p.in_band ? 'yes' : 'no') }, { name: 'source', value: (p) => p.source }
      ], all)
    ];
  }
};

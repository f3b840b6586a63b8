// SPDX-License-Identifier: Apache-2.0
// Charts that several kinds of results share.
import { axis, look, ramp, scale, tip } from './charts.js';
import { bytes, number } from './numbers.js';

/**
 * Curves over one axis of numbers. `series` are {name, points: [[x, y]], dash?, colour? (its number), step?, quiet?}.
 * x and y: {name, text(v), log?, min?, max?}.
 */
export function curves(t, { x, y, series }) {
  const xs = series.flatMap((s) => s.points.map((p) => p[0]));
  const ys = series.flatMap((s) => s.points.map((p) => p[1]));
  // Where the values themselves are few, they are the labels.
  const own = [...new Set(xs)].sort((a, b) => a - b), marks = x.base && own.length <= 24 ? { customValues: own } : {};
  const range = (a, values) => ({ ...scale(values, a.log !== false, a.base), scale: a.min === undefined && a.fit === true, ...(a.min === undefined ? {} : { min: a.min }), ...(a.max === undefined ? {} : { max: a.max }) });
  return {
    tooltip: {
      trigger: 'axis', axisPointer: { lineStyle: { color: t.soft } },
      formatter: (rows) => tip(x.text(rows[0].value[0]), rows.map((r) => [r.color, r.seriesName, y.text(r.value[1])]))
    },
    legend: { show: series.length > 1 },
    grid: { top: series.length > 1 ? 40 : 12 },
    xAxis: axis(t, x.name, { ...range(x, xs), axisLabel: { formatter: (v) => (x.short || x.text)(v), ...marks }, axisTick: { lineStyle: { color: t.line }, ...marks }, splitLine: { show: false } }),
    yAxis: axis(t, y.name, { ...range(y, ys), axisLabel: { formatter: (v) => (y.short || number)(v) } }),
    series: series.map((s, n) => {
      const l = look(t, s.colour === undefined ? n : s.colour);
      return {
        type: 'line', name: s.name, data: s.points, step: s.step || false, showSymbol: !s.quiet, symbol: l.symbol, symbolSize: 8,
        showAllSymbol: true, lineStyle: { color: l.color, width: 2, type: s.dash || l.dash }, itemStyle: { color: l.color },
        areaStyle: s.area ? { color: l.color, opacity: 0.18 } : undefined, emphasis: { focus: 'series' }
      };
    })
  };
}

/** An axis of message sizes. */
export const sizeAxis = { name: 'message size', text: bytes, short: bytes, base: 2 };

/** Room for names of bars at the left: a part of the width. */
export const nameRoom = (width) => Math.max(90, Math.min(270, Math.round(width * 0.36)));

export function names(t, list, width, more = {}) {
  return {
    type: 'category', data: list, inverse: true, axisLine: { lineStyle: { color: t.line } }, axisTick: { show: false },
    axisLabel: { color: t.ink, fontSize: 12, width: nameRoom(width), overflow: 'truncate', interval: 0 }, ...more
  };
}

/**
 * Bars that lie, stacked: names of the bars from above, and parts {name, colour, values, decal?}. `text` of a value;
 * `ends` what is written behind each bar.
 */
export function lyingBars(t, width, { bars, parts, title, text, max, ends, short }) {
  return {
    tooltip: {
      trigger: 'axis', axisPointer: { type: 'shadow' },
      formatter: (rows) => tip(rows[0].name, rows.filter((r) => r.value).map((r) => [r.color, r.seriesName, text(r.value)]))
    },
    legend: { show: parts.length > 1 },
    grid: { top: parts.length > 1 ? 40 : 8, right: ends ? 76 : 20 },
    xAxis: axis(t, title, { max, axisLabel: { formatter: short || number } }),
    yAxis: names(t, bars, width),
    series: parts.map((p, n) => ({
      type: 'bar', name: p.name, stack: 'all', data: p.values, barCategoryGap: '28%',
      itemStyle: { color: p.colour, borderColor: t.surface, borderWidth: parts.length > 1 ? 1 : 0 },
      label: ends && n === parts.length - 1 ? { show: true, position: 'right', color: t.ink, fontSize: 12, formatter: (r) => ends[r.dataIndex] } : undefined
    }))
  };
}

/** The colour of a part of the ramp, and of text on it. */
function shade(t, part) {
  const all = ramp(t), n = Math.max(0, Math.min(all.length - 1, Math.round(part * (all.length - 1))));
  return { colour: all[n], text: (n >= 5) === t.dark ? '#101418' : '#ffffff' };
}

/**
 * A heat map: names of columns and rows, cells [column, row, value or null, text]. Cells without a value have
 * the colour of nothing and a dashed edge.
 */
export function heatMap(t, width, { columns, rows, cells, x, y, text, low, high, logarithmic = false, labels = true, scaleName }) {
  const part = (v) => (high <= low ? 1 : logarithmic ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
  const narrow = width / columns.length < 62;
  return {
    tooltip: {
      formatter: (r) => tip(`${y.name ? `${y.name} ` : ''}${rows[r.value[1]]}`, [[r.color, `${x.name} ${columns[r.value[0]]}`, cells[r.dataIndex][3]]])
    },
    legend: null,
    grid: { top: 8, right: 8, bottom: 64 },
    xAxis: { ...axis(t, x.name), type: 'category', data: columns, splitLine: { show: false }, axisTick: { show: false } },
    yAxis: { ...axis(t, y.name || ''), ...names(t, rows, width, { inverse: y.inverse !== false }) },
    visualMap: {
      type: 'continuous', show: true, min: 0, max: 1, dimension: 2, calculable: false, orient: 'horizontal', left: 'center', bottom: 0,
      itemHeight: Math.min(220, width / 3), itemWidth: 12, inRange: { color: ramp(t) }, seriesIndex: 99, textStyle: { color: t.ink },
      text: [text(high), `${scaleName || ''} ${text(low)}`]
    },
    series: [{
      type: 'heatmap', encode: { x: 0, y: 1, value: 2 },
      data: cells.map(([c, r, v, words]) => {
        const s = v === null ? null : shade(t, part(v));
        return {
          value: [c, r, v === null ? low : v],
          itemStyle: s ? { color: s.colour, borderColor: t.surface, borderWidth: 2 } : { color: t.idle, borderColor: t.bad, borderWidth: 2, borderType: 'dashed' },
          label: { show: labels && !narrow, color: s ? s.text : t.ink, formatter: words, fontSize: 11 }
        };
      }),
      emphasis: { itemStyle: { borderColor: t.ink } }
    }]
  };
}

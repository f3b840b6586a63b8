// SPDX-License-Identifier: Apache-2.0
// Figures: a chart of ECharts with its heading, a sentence that says what it shows, and its numbers as a table.
import { BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart } from 'echarts/charts';
import {
  AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, ParallelComponent, TooltipComponent,
  VisualMapComponent
} from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { details, el } from './dom.js';

use([BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent,
  LegendComponent, MarkAreaComponent, MarkLineComponent, ParallelComponent, TooltipComponent, VisualMapComponent, SVGRenderer]);

// Colours that eyes without one kind of cones tell apart, at 3:1 or more on their background; lines differ by symbol and
// dash as well.
const colours = {
  light: ['#0077bb', '#c4500c', '#00806e', '#b3245f', '#6f4a9a', '#4d7a00', '#8c564b', '#5b6770'],
  dark: ['#4fb3f6', '#ff9e5e', '#3fd0b6', '#ff7aa8', '#c3a1f0', '#b5d65a', '#d9a28c', '#b8c4d0']
};
// From little to much, by lightness alone, away from the background.
const ramps = {
  light: ['#edf4fb', '#d3e4f3', '#b3d2ea', '#89bade', '#5f9fd0', '#3d84bf', '#2369a8', '#12508b', '#083a6b', '#04264a'],
  dark: ['#202a35', '#1f3a55', '#204c74', '#275f93', '#3374b0', '#498bc9', '#69a4dd', '#8fbdec', '#b7d6f6', '#e0effd']
};
export const ramp = (t) => (t.dark ? ramps.dark : ramps.light);
const symbols = ['circle', 'rect', 'triangle', 'diamond', 'roundRect', 'pin', 'arrow', 'emptyCircle'];
const dashes = ['solid', 'dashed', 'dotted', [8, 3, 2, 3]];

let patterns = false;
const all = [];

export const isDark = () => document.documentElement.dataset.theme === 'dark';

function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    dark: isDark(), ink: of('ink'), soft: of('soft'), line: of('line'), surface: of('surface'), accent: of('accent'), bad: of('bad'),
    idle: of('idle'), font: style.getPropertyValue('--font').trim(), colours: isDark() ? colours.dark : colours.light
  };
}

/** How the n-th of several curves looks. */
export const look = (t, n) => ({
  color: t.colours[n % t.colours.length], symbol: symbols[n % symbols.length], dash: dashes[Math.floor(n / t.colours.length) % dashes.length]
});

/** Rows of a tooltip: a heading and [colour, name, text]. */
export function tip(heading, rows) {
  return el('div', { class: 'tip' }, el('strong', {}, heading), rows.map(([colour, name, text]) => {
    const mark = el('i', { 'aria-hidden': 'true' });
    mark.style.background = colour || 'transparent';
    return el('div', {}, mark, el('span', {}, name), el('b', {}, text));
  }));
}

function base(t) {
  return {
    animation: false, backgroundColor: 'transparent', color: t.colours, textStyle: { fontFamily: t.font, color: t.ink },
    aria: { enabled: patterns, label: { enabled: false }, decal: { show: patterns } },
    tooltip: { confine: true, backgroundColor: t.surface, borderColor: t.line, textStyle: { color: t.ink, fontFamily: t.font, fontSize: 13 } },
    legend: { type: 'scroll', top: 0, left: 0, right: 0, textStyle: { color: t.ink }, pageTextStyle: { color: t.ink }, pageIconColor: t.ink, pageIconInactiveColor: t.line, inactiveColor: t.soft },
    grid: { left: 4, right: 16, top: 40, bottom: 4, outerBoundsMode: 'same', outerBoundsContain: 'all' }
  };
}

/** An axis with its title. */
export function axis(t, name, more = {}) {
  const { axisLabel = {}, ...rest } = more;
  return {
    type: 'value', name, nameLocation: 'middle', nameTextStyle: { color: t.ink, fontSize: 13 },
    axisLine: { lineStyle: { color: t.line } }, axisTick: { lineStyle: { color: t.line } }, splitLine: { lineStyle: { color: t.line } },
    axisLabel: { color: t.soft, fontSize: 12, hideOverlap: true, ...axisLabel }, ...rest
  };
}

/** A logarithmic axis whose labels are not a decade apart where the values are near each other. */
export function scale(values, logarithmic = true, base = null) {
  const positive = values.filter((v) => v > 0);
  if (!logarithmic || positive.length !== values.length || positive.length === 0) return { type: 'value' };
  const low = Math.min(...positive), high = Math.max(...positive);
  const logBase = base || (high / low > 2000 ? 10 : 2);
  const floor = (v) => logBase ** Math.floor(Math.log(v) / Math.log(logBase) + 1e-9);
  const ceil = (v) => logBase ** Math.ceil(Math.log(v) / Math.log(logBase) - 1e-9);
  return { type: 'log', logBase, min: floor(low), max: ceil(high) === floor(low) ? ceil(high) * logBase : ceil(high) };
}

/**
 * A figure. `option(t, width)` gives what differs from the base; it is asked again when the theme, the width or what the
 * user chose has changed. `says` is text, or a function that gives it; `table` an element, or a function that gives it.
 */
export function figure({ id, title, says, option, height = 340, controls = [], table, heading = 'h4' }) {
  const sentence = () => (typeof says === 'function' ? says() : says);
  const text = el('p', {}, sentence());
  const plot = el('div', { class: 'plot', role: 'img', 'aria-label': `${title}. ${sentence()}` });
  const numbers = el('div', { class: 'numbers' });
  const root = el('figure', { id }, el('figcaption', {}, el(heading, {}, title), text),
    controls.length ? el('div', { class: 'controls' }, controls) : null, plot, numbers);
  let chart, width = 0, tall = 0;
  const draw = (t = theme(), room = plot.clientWidth) => {
    if (!root.isConnected || room === 0) return;
    const high = typeof height === 'function' ? height(room) : height, changed = room !== width || high !== tall;
    width = room;
    tall = high;
    if (changed) plot.style.height = `${high}px`;
    if (!chart) chart = init(plot, null, { renderer: 'svg', width, height: high });
    else if (changed) chart.resize({ width, height: high, silent: true });
    const { tooltip, legend, grid, ...own } = option(t, width);
    const b = base(t);
    for (const x of [own.xAxis].flat()) if (x && x.name && x.nameGap === undefined) x.nameGap = 26;
    chart.setOption({
      ...b, ...own, tooltip: { ...b.tooltip, ...tooltip }, legend: legend === null ? { show: false } : { ...b.legend, ...legend },
      grid: Array.isArray(grid) ? grid : { ...b.grid, ...grid }
    }, { notMerge: true });
  };
  const update = () => {
    text.textContent = sentence();
    plot.setAttribute('aria-label', `${title}. ${sentence()}`);
    const content = [typeof table === 'function' ? table() : table].flat().filter((c) => c);
    const open = numbers.firstChild && numbers.firstChild.open;
    numbers.replaceChildren(...(content.length ? [details(el('span', {}, 'The numbers', el('span', { class: 'unseen' }, ` of: ${title}`)), content)] : []));
    if (open && numbers.firstChild) numbers.firstChild.open = true;
    draw();
  };
  update();
  new ResizeObserver(() => { if (plot.clientWidth !== width && plot.clientWidth !== 0) draw(); }).observe(plot);
  all.push({ id, draw, room: () => plot.clientWidth, chart: () => chart });
  return { root, update };
}

export function drawAll() {
  // All sizes are read before anything is drawn, so that the browser lays the page out once.
  const t = theme(), rooms = all.map((f) => f.room());
  all.forEach((f, n) => f.draw(t, rooms[n]));
}

export function showPatterns(shown) {
  patterns = shown;
  drawAll();
}

/** What is drawn, by the figure's id: for tests. */
export const drawn = (id) => all.find((f) => f.id === id && f.chart()).chart().getOption();

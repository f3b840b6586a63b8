// SPDX-License-Identifier: Apache-2.0
// A page in a headless Chromium, and what of it tests look at.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A browser without display and without a sandbox of its own, which root cannot have. */
export async function startBrowser(packages, chromium) {
  const puppeteer = createRequire(join(packages, 'package.json'))('puppeteer-core');
  return (puppeteer.default || puppeteer).launch({ executablePath: chromium, headless: true, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-device-scale-factor=1'] });
}

/** Opens a file from disk. `seen` collects what the browser says and asks for. */
export async function open(browser, file, { theme = 'light', width = 1280, height = 900 } = {}) {
  const page = await browser.newPage();
  const seen = { said: [], asked: [] };
  page.on('console', (m) => seen.said.push(`${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => seen.said.push(`error: ${e.message}`));
  page.on('request', (r) => { if (!r.url().startsWith('data:')) seen.asked.push(r.url()); });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
  await page.setViewport({ width, height });
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector('html[data-drawn]');
  return { page, seen };
}

/** Of a figure: its series as they are drawn, the texts of its SVG, its words and the cells of its tables as data. */
export const figure = (page, id) => page.evaluate((name) => {
  const root = document.getElementById(name);
  if (!root) return null;
  const drawn = window.rnicReport.drawn(name);
  const details = root.querySelector('.numbers details');
  const tables = [...root.querySelectorAll('.numbers table')].map((t) => ({
    columns: [...t.querySelectorAll('thead th')].map((c) => c.textContent),
    rows: [...t.querySelectorAll('tbody tr')].map((r) => [...r.children].map((c) => (c.dataset.value === undefined ? null : c.classList.contains('number') ? Number(c.dataset.value) : c.dataset.value))),
    texts: [...t.querySelectorAll('tbody tr')].map((r) => [...r.children].map((c) => c.textContent))
  }));
  const svg = root.querySelector('.plot svg');
  return {
    title: root.querySelector('figcaption :is(h3, h4)').textContent, says: root.querySelector('figcaption p').textContent, label: root.querySelector('.plot').getAttribute('aria-label'),
    series: drawn.series.map((s) => ({ type: s.type, name: s.name, data: (s.data || []).map((d) => (d && d.value !== undefined ? d.value : d)) })),
    texts: svg ? [...svg.querySelectorAll('text')].map((t) => t.textContent.replace(/\u00a0/g, ' ')) : [], shapes: svg ? svg.querySelectorAll('path, rect').length : 0,
    tables, hasDetails: details !== null
  };
}, id);

// SPDX-License-Identifier: Apache-2.0
// Makes the pictures beside it from a page, which scripts/demo leaves: node renew.mjs REPORT [BUILD_FOLDER]
import { execFileSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open, startBrowser } from '../../../system/report/page_in_browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const [report, build = join(here, '../../../../build/release')] = process.argv.slice(2);
if (!report) throw new Error('usage: renew.mjs REPORT [BUILD_FOLDER]');
const browser = await startBrowser(join(resolve(build), 'npm/testbenches/system/report'), execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim());
// Where the time of a WRITE goes, and the tails of a run.
for (const [name, theme, top] of [['light', 'light', 'stages'], ['dark', 'dark', 'run']]) {
  const { page } = await open(browser, report, { theme, width: 1160, height: 920 });
  await page.evaluate((what) => {
    document.documentElement.style.scrollPaddingTop = '14px';
    const articles = [...document.querySelectorAll('#kind-latency article')];
    const write = articles.find((a) => a.querySelector('h3').textContent.startsWith('write')) || articles[0];
    (what === 'run' ? document.getElementById('kind-run') : write.querySelector('figure[id$="-stages"]')).scrollIntoView({ behavior: 'instant' });
  }, top);
  await page.screenshot({ path: join(here, `${name}.png`), optimizeForSpeed: false });
  await page.close();
}
await browser.close();

// Writes seen.json: what Chromium shows of the mails beside this file, at two
// widths and in two colour schemes, without network and scripts.
//
//	npm install playwright-core && CHROMIUM=/usr/bin/chromium node record.mjs
import fs from 'node:fs';
import path from 'node:path';
import {chromium} from 'playwright-core';

const here = import.meta.dirname;
const views = [[800, 'light'], [375, 'light'], [800, 'dark'], [375, 'dark']];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

// judge lists the texts of a document in order, and whether a person sees each.
function judge() {
  const skipped = 'script,style,head,title,template,noscript,svg,math,iframe,object,audio,video,canvas,textarea';
  const rgba = (s) => { const n = s.match(/[\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  // ground is the colour behind an element, null for a picture.
  const ground = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const s = getComputedStyle(e);
      if (s.backgroundImage !== 'none') return null;
      layers.push(rgba(s.backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reduceRight((below, c) => over(c, below), [255, 255, 255, 1]);
  };
  const shown = (rects, e, letters) => {
    for (let a = e; a; a = a.parentElement) {
      const s = getComputedStyle(a);
      if (Number(s.opacity) <= 0.05) return false;
      if (a !== e && a.tagName !== 'BODY' && a.tagName !== 'HTML' && s.display !== 'inline' && (s.overflowX !== 'visible' || s.overflowY !== 'visible')) {
        const box = a.getBoundingClientRect();
        rects = rects.filter((r) => Math.min(r.right, box.right) - Math.max(r.left, box.left) > 1 && Math.min(r.bottom, box.bottom) - Math.max(r.top, box.top) > 1);
      }
    }
    rects = rects.filter((r) => r.width > 1 && r.height > 1 && r.right + scrollX > 0 && r.bottom + scrollY > 0);
    const s = getComputedStyle(e);
    if (rects.length === 0 || s.visibility !== 'visible') return false;
    if (!letters) return true;
    const behind = ground(e), ink = rgba(s.webkitTextFillColor);
    if (parseFloat(s.fontSize) < 3 || ink[3] <= 0.02) return false;
    return !behind || over(ink, behind).some((v, i) => i < 3 && Math.abs(v - behind[i]) > 3);
  };
  const found = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.nodeType === Node.TEXT_NODE ? n.parentElement : n;
    const text = (n.nodeType === Node.TEXT_NODE ? n.data : n.tagName === 'IMG' ? n.alt : '').replace(/\s+/g, ' ').trim();
    if (!/[\p{L}\p{N}]/u.test(text) || e.closest(skipped)) continue;
    const range = document.createRange();
    range.selectNode(n);
    const letters = n.nodeType === Node.TEXT_NODE;
    found.push([text, shown([...(letters ? range.getClientRects() : n.getClientRects())], letters ? e : n, letters)]);
  }
  return found;
}

const all = {};
for (const dir of fs.readdirSync(here, {withFileTypes: true}).filter((d) => d.isDirectory() && d.name !== 'node_modules')) {
  for (const name of fs.readdirSync(path.join(here, dir.name)).filter((n) => n.endsWith('.html')).sort()) {
    const file = `${dir.name}/${name}`;
    const judged = [];
    for (const [width, colorScheme] of views) {
      const context = await browser.newContext({viewport: {width, height: 800}, colorScheme, javaScriptEnabled: false, offline: true});
      const page = await context.newPage();
      await page.route('**/*', (r) => r.abort());
      await page.setContent(fs.readFileSync(path.join(here, file), 'utf8'), {waitUntil: 'domcontentloaded'});
      judged.push(await page.evaluate(judge));
      await context.close();
    }
    const texts = judged[0].map(([text], i) => [text, judged.map((j) => j[i][1])]);
    const pick = (want) => texts.filter(([, seen]) => want(seen)).map(([text]) => text);
    all[file] = {seen: pick((s) => s[0]), elsewhere: pick((s) => !s[0] && s.some(Boolean)), hidden: pick((s) => !s.some(Boolean))};
  }
}
await browser.close();
const lines = Object.entries(all).map(([file, one]) => `${JSON.stringify(file)}: ${JSON.stringify(one)}`);
fs.writeFileSync(path.join(here, 'seen.json'), `{\n${lines.join(',\n')}\n}\n`);

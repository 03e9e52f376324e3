// Runs the protocol's own conformance suite, in its released version and in the one to
// come, against a server that lets anybody in, and compares what it says with
// inapplicable.json: every check passes but those listed there, which say why they
// cannot apply, and each of those is still there. It prints one JSON object per run.
//
//   node conformance.mjs URL
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const [url] = process.argv.slice(2);
const resolve = createRequire(import.meta.url).resolve;
const known = new Map(); // what a check that cannot apply says
for (const { says, checks } of JSON.parse(await readFile(new URL('inapplicable.json', import.meta.url), 'utf8'))) {
  checks.forEach(check => known.set(check, new RegExp(says)));
}

const runs = [
  ['conformance-released', '2025-06-18'],
  ['conformance-released', '2025-11-25'],
  ['conformance-next', '2025-06-18'],
  ['conformance-next', '2025-11-25'],
  ['conformance-next', '2026-07-28'],
];

// run returns the checks of one run: each with its scenario, id, status and message.
async function run(suite, version) {
  const out = await mkdtemp(join(tmpdir(), 'conformance-'));
  try {
    const main = join(dirname(resolve(`${suite}/package.json`)), 'dist/index.js');
    // Its status is 1 when any check fails, which some do.
    const text = await new Promise(done => execFile(process.execPath, [main, 'server', '--url', url, '--suite', 'all', '--spec-version', version, '-o', out],
      { timeout: 60_000, maxBuffer: 1 << 26 }, (_, stdout, stderr) => done(stdout + stderr)));
    const summary = text.match(/Total: (\d+) passed, (\d+) failed/);
    if (!summary) {
      throw new Error(`${suite} did not run: ${text.slice(-2000)}`);
    }
    const checks = [];
    for (const dir of await readdir(out)) {
      const scenario = dir.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
      for (const c of JSON.parse(await readFile(join(out, dir, 'checks.json'), 'utf8'))) {
        checks.push({ scenario, id: c.id, status: c.status, message: c.errorMessage ?? JSON.stringify(c.details ?? {}) });
      }
    }
    return checks;
  } finally {
    await rm(out, { recursive: true });
  }
}

let failed = false;
const seen = new Set();
for (const [suite, version] of runs) {
  const checks = await run(suite, version);
  const count = { suite, version, passed: 0, inapplicable: 0, unexpected: [] };
  for (const c of checks) {
    const entry = `${c.scenario}/${c.id}`;
    if (c.status === 'SUCCESS' || c.status === 'INFO') {
      count.passed += c.status === 'SUCCESS';
    } else if (c.status !== 'SKIPPED' && known.get(entry)?.test(c.message)) {
      seen.add(entry);
      count.inapplicable++;
    } else if (c.status !== 'SKIPPED') {
      count.unexpected.push(`${c.status} ${entry}: ${c.message.slice(0, 300)}`);
    }
  }
  // A scenario whose checks all vanished would pass unseen.
  failed ||= count.unexpected.length > 0 || count.passed === 0;
  console.log(JSON.stringify(count));
}
const stale = [...known.keys()].filter(k => !seen.has(k));
if (stale.length > 0) {
  console.log(JSON.stringify({ stale }));
  failed = true;
}
process.exit(failed ? 1 : 0);

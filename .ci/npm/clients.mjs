// Runs clients that other people wrote against a server: the official TypeScript
// clients of both generations, in both eras of the protocol, and the inspector on its
// command line. It prints one JSON object per client.
//
//   node clients.mjs URL TOKEN EXPIRED
//
// The token's account "work" has to be in mode approve and able to send. The time of
// the other token has to be over.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import dns from 'node:dns';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, token, expired] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const info = { name: 'clients', version: '1' };
const capabilities = { elicitation: {} };

const clients = {
  'sdk 1': () => [new OldClient(info, { capabilities }), OldTransport, ElicitRequestSchema],
  'client 2, with sessions': () => [new NewClient(info, { capabilities }), NewTransport, 'elicitation/create'],
  'client 2, negotiating': () => [new NewClient(info, { capabilities, versionNegotiation: { mode: 'auto' } }), NewTransport, 'elicitation/create'],
  'client 2, stateless': () => [new NewClient(info, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } }), NewTransport, 'elicitation/create'],
};

for (const [name, make] of Object.entries(clients)) {
  const [client, Transport, elicitation] = make();
  const asked = [];
  client.setRequestHandler(elicitation, async request => {
    asked.push(request.params.message);
    return { action: 'decline' };
  });
  const transport = new Transport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  const call = async (command, options) => {
    const params = { name: 'cli', arguments: { command } };
    const result = await (client instanceof OldClient ? client.callTool(params, undefined, options) : client.callTool(params, options));
    assert.equal(result.content.length, 1);
    const answer = JSON.parse(result.content[0].text);
    assert.equal(result.isError, !answer.success);
    return answer;
  };

  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(t => t.name), ['cli']);
  assert.ok((await call('help')).success);
  assert.equal((await call('nope')).error.code, 'COMMAND_NOT_FOUND');

  // Many at once, each with its own answer.
  const paths = Array.from({ length: 100 }, (_, i) => (i % 2 ? 'mail list' : 'mail get'));
  const helps = await Promise.all(paths.map(p => call(`help ${p}`)));
  helps.forEach((a, i) => assert.equal(a.data.command, paths[i]));

  // One that waits is given up, and the next is answered.
  const giveUp = new AbortController();
  const waiting = call('agent read repo:clients --wait 200s', { signal: giveUp.signal });
  setTimeout(() => giveUp.abort(), 100);
  await assert.rejects(waiting);
  assert.ok((await call('version')).success);

  // A person is asked in the client, and says no.
  const sent = await call(`mail send --to ann@example.org --subject '${name}' --body 'Shall we?'`);
  assert.equal(sent.error.code, 'PERMISSION_DENIED', JSON.stringify(sent));
  assert.equal(asked.length, 1);
  assert.match(asked[0], /Send this message\?/);

  const session = transport.sessionId ?? '';
  const version = transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.() ?? '';
  if (session) {
    await transport.terminateSession();
  }
  await client.close();
  console.log(JSON.stringify({ client: name, version, session: session !== '', calls: 106 }));
}

// Each generation, as it comes to a door that it is not let in at.
const refused = {
  'sdk 1': clients['sdk 1'],
  'client 2': clients['client 2, negotiating'],
};
const connect = async (make, at, headers) => {
  const [client, Transport] = make();
  await client.connect(new Transport(new URL(at), { requestInit: { headers } }));
};

// A name that leads here, as it does after a page of somebody else's has changed where
// its own name leads.
const lookup = dns.lookup;
const foreign = new URL(url);
foreign.hostname = 'elsewhere.example';
dns.lookup = (name, ...rest) => lookup(name === foreign.hostname ? '127.0.0.1' : name, ...rest);

for (const [name, make] of Object.entries(refused)) {
  const bad = { 'a wrong token': { Authorization: 'Bearer wrong' }, 'no token': {}, 'an expired token': { Authorization: `Bearer ${expired}` } };
  for (const [what, headers] of Object.entries(bad)) {
    await assert.rejects(connect(make, url, headers), e => (e.status ?? e.code) === 401, what);
  }
  const forbidden = reason => e => (e.status ?? e.code) === 403 && reason.test(e.data?.text ?? e.message);
  await assert.rejects(connect(make, url, { ...headers, Origin: 'https://elsewhere.example' }), forbidden(/origin|page/i));
  await assert.rejects(connect(make, foreign, headers), forbidden(/host name/));
  for (const what of [...Object.keys(bad), 'a foreign page', 'a foreign name']) {
    console.log(JSON.stringify({ client: name, refused: what }));
  }
}

const inspector = join(dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')), 'clients/launcher/build/index.js');
const inspect = async (bearer, ...args) => {
  const run = promisify(execFile)(process.execPath, [inspector, '--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${bearer}`, '--stored-auth-only', ...args],
    { timeout: 60_000 });
  run.child.stdin.end();
  return JSON.parse((await run).stdout);
};
await Promise.all(['legacy', 'modern'].map(async era => {
  const list = await inspect(token, '--protocol-era', era, '--method', 'tools/list', '--strict');
  assert.deepEqual(list.tools.map(t => t.name), ['cli']);
  const help = await inspect(token, '--protocol-era', era, '--method', 'tools/call', '--tool-name', 'cli', '--tool-arg', 'command=help mail list');
  assert.equal(JSON.parse(help.content[0].text).data.command, 'mail list');
  console.log(JSON.stringify({ client: `inspector, ${era}` }));
}));
for (const [what, bearer] of Object.entries({ 'a wrong token': 'wrong', 'an expired token': expired })) {
  await assert.rejects(inspect(bearer, '--method', 'tools/list'), e => e.code === 3 && !String(e.stdout).includes('"tools"'));
  console.log(JSON.stringify({ client: 'inspector', refused: what }));
}

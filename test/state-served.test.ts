// State files of `ruvllm serve` that are damaged while it is stopped, and conversations of a server that is killed.
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { createServeFolder, type Served, type ServedHere, type ServeProcess } from './support/serve-process.ts';

const folder = createServeFolder({ contextLength: 512 });
const memory = join(folder.data, 'memory');
const { here } = folder;
afterEach(() => (folder.killAll(), here.stopAll()));
afterAll(() => folder.dispose());

function clientOf({ url }: Served, token?: string) {
  return async (path: string, body?: unknown) => {
    const response = await fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, body: (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, never> }; // prettier-ignore
  };
}

/** Without what follows the start. */
async function healthOf(ask: ReturnType<typeof clientOf>): Promise<object> {
  const { preparing: _, ...health } = (await ask('/health')).body;
  return health;
}

async function kill({ process: child, exit }: ServeProcess): Promise<void> {
  child.kill('SIGKILL');
  await exit;
}

const chat = (session: string, content: string) => ({ model: 'tiny', session, messages: [{ role: 'user', content }], max_tokens: 2 }); // prettier-ignore

test('[MS37] turns of delivered answers survive a kill; emptied and cut databases and locks are reported, the rest is served', async () => {
  const killed = await folder.start(folder.model);
  let ask = clientOf(killed);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push((await ask('/admin/memory/add', { text: `record ${i}` })).body['id']!);
  for (let i = 0; i < 3; i++) expect((await ask('/v1/chat/completions', chat('talk', `turn ${i}`))).status).toBe(200);
  await kill(killed);

  // A cut lock: the memory is opened all the same, with every turn.
  truncateSync(join(memory, 'owner.lock'), 5);
  let server = await here.start(folder.model);
  ask = clientOf(server);
  expect(server.memory).toBe(memory);
  expect(await healthOf(ask)).toEqual({ status: 'ok' });
  const session = await ask('/admin/memory/sessions/show', { sessionId: 'talk' });
  for (let i = 0; i < 3; i++) expect(session.text).toContain(`turn ${i}`);
  const backup = await ask('/admin/memory/backup', {});
  expect(backup.status).toBe(200);
  await server.stop();

  truncateSync(join(memory, 'memory.db'), 0);
  server = await here.start(folder.model);
  ask = clientOf(server);
  expect(await healthOf(ask)).toEqual({ status: 'ok', degraded: ['memory'] });
  expect((await ask('/metrics')).text).toContain('ruvllm_state_degraded{part="memory"} 1');
  expect((await ask('/admin/live')).text).toContain('memory_degraded');
  expect((await ask('/admin/memory/audit/verify', {})).body['isIntact']).toBe(false);
  expect((await ask('/admin/memory/check', {})).body['isIntact']).toBe(false);
  expect((await ask('/v1/chat/completions', chat('talk', 'still answers'))).status).toBe(200);
  expect((await here.run('memory', 'restore')).stdout).toContain('is in use by process');
  await server.stop();

  const restored = JSON.parse((await here.run('memory', 'restore')).stdout) as { numRecords: number };
  expect(restored.numRecords).toBeGreaterThan(5);
  server = await here.start(folder.model);
  ask = clientOf(server);
  expect(await healthOf(ask)).toEqual({ status: 'ok' });
  for (const [i, id] of ids.entries()) expect((await ask('/admin/memory/get', { id })).text).toContain(`record ${i}`);
  await server.stop();

  // Both headers: nothing of the memory can be read, and the model answers.
  for (const name of ['memory.json', 'memory.json.copy']) writeFileSync(join(memory, name), '{');
  server = await here.start(folder.model);
  ask = clientOf(server);
  expect(await healthOf(ask)).toEqual({ status: 'ok', degraded: ['memory'] });
  expect((await ask('/v1/chat/completions', chat('talk', 'still answers'))).status).toBe(200);
}, 240_000);

test('[MS37] a log that lost its end brings an older rating and title back, and the loss is reported', async () => {
  rmSync(memory, { recursive: true, force: true });
  const killed = await folder.start(folder.model);
  let ask = clientOf(killed);
  const answer = await ask('/v1/chat/completions', chat('rated', 'question'));
  const requestId = String(answer.body['id']).replace('chatcmpl-', '');
  const write = async (thumbs: string, title: string, version: number): Promise<void> => {
    expect((await ask('/v1/feedback', { request_id: requestId, thumbs })).status).toBe(200);
    const saved = await ask('/v1/chats/one', { title, version, content: {} });
    expect(saved.status).toBe(200);
  };
  await write('up', 'older', 0);
  const log = join(memory, 'memory.db-wal');
  const sizeBefore = statSync(log).size;
  await write('down', 'newer', 1);
  await kill(killed);
  // A log that was written from its start again has the older values in the database.
  truncateSync(log, statSync(log).size > sizeBefore ? sizeBefore : 0);

  const server = await here.start(folder.model);
  ask = clientOf(server);
  expect((await ask(`/v1/feedback/${requestId}`)).body).toMatchObject({ verdict: 'success' });
  expect((await ask('/v1/chats/one')).body).toMatchObject({ title: 'older' });
  expect(await healthOf(ask)).toEqual({ status: 'ok', degraded: ['memory'] });
  expect((await ask('/metrics')).text).toContain('ruvllm_state_degraded{part="memory"} 1');
  const check = (await ask('/admin/memory/check', {})).body as { isIntact?: boolean; problems?: string[] };
  expect(check.isIntact).toBe(false);
  expect(check.problems!.join()).toContain('older than its last write');
}, 120_000);

test('[SP13] a damaged or missing master key is replaced, moved aside and reported; nothing sealed is lost once it is back', async () => {
  rmSync(memory, { recursive: true, force: true });
  const state = folder.environment['RUVLLM_STATE_DIR']!;
  const [keyPath, spill] = [join(state, 'master.key'), join(folder.path, 'spill')];
  const start = (): Promise<ServedHere> => here.start(folder.model, '--kv-spill', spill);
  let server = await start();
  let ask = clientOf(server);
  const { id } = (await ask('/admin/memory/add', { text: 'a sealed record' })).body;
  expect(await healthOf(ask)).toEqual({ status: 'ok' });
  await server.stop();
  const key = readFileSync(keyPath);
  const spilled = readdirSync(spill, { recursive: true });

  for (const [damage, parts] of [
    [() => truncateSync(keyPath, 0), ['memory', 'master-key', 'spill']],
    [() => truncateSync(keyPath, 16), ['memory', 'master-key', 'spill']],
    [() => rmSync(keyPath), ['memory', 'spill']],
  ] as const) {
    writeFileSync(keyPath, key);
    damage();
    const namesBefore = new Set(readdirSync(state));
    server = await start();
    ask = clientOf(server);
    expect(await healthOf(ask)).toEqual({ status: 'ok', degraded: parts });
    expect(server.memory).toBeNull();
    expect((await ask('/v1/chat/completions', chat('talk', 'still answers'))).status).toBe(200);
    expect((await ask('/admin/memory/get', { id })).status).toBe(501);
    const metrics = (await ask('/metrics')).text;
    for (const part of parts) expect(metrics).toContain(`ruvllm_state_degraded{part="${part}"} 1`);
    expect((await ask('/admin/live')).text).toContain('spill_unavailable');
    const aside = readdirSync(state).filter((name) => name.includes('.damaged-') && !namesBefore.has(name));
    expect(aside).toHaveLength(parts.length - 2);
    for (const name of aside) {
      expect(server.errorOutput).toContain(name);
      expect(key.subarray(0, 16).subarray(0, statSync(join(state, name)).size)).toEqual(
        readFileSync(join(state, name)),
      );
    }
    for (const name of ['master.key', ...aside]) expect(statSync(join(state, name)).mode & 0o777).toBe(0o600);
    expect(server.errorOutput).toContain('another master key');
    expect(readFileSync(keyPath)).toHaveLength(32);
    expect(readFileSync(keyPath).equals(key)).toBe(false);
    expect(readdirSync(spill, { recursive: true })).toEqual(spilled);
    await server.stop();
  }

  writeFileSync(keyPath, key);
  server = await start();
  ask = clientOf(server);
  expect(await healthOf(ask)).toEqual({ status: 'ok' });
  expect((await ask('/admin/memory/get', { id })).text).toContain('a sealed record');
  expect((await ask('/metrics')).text).toContain('ruvllm_state_degraded{part="spill"} 0');
}, 240_000);

test('[K9] a damaged API key record is refused and reported, and the server stays closed and serves the others', async () => {
  rmSync(memory, { recursive: true, force: true });
  const [good, bad] = [await here.keys('create', 'good', '--scope', 'admin'), await here.keys('create', 'bad')];
  writeFileSync(join(folder.data, 'api-keys', `${bad.id}.json`), '{');
  const server = await here.start(folder.model);
  expect(server.isOpen).toBe(false);
  expect((await clientOf(server)('/health')).body).toEqual({ status: 'ok', degraded: ['keys'] });
  expect((await clientOf(server, good.token)('/v1/models')).status).toBe(200);
  expect((await clientOf(server, bad.token)('/v1/models')).status).toBe(401);
  expect((await clientOf(server)('/v1/models')).status).toBe(401);
  expect(readdirSync(join(folder.data, 'api-keys')).some((name) => name.includes('.damaged-'))).toBe(true);
}, 120_000);

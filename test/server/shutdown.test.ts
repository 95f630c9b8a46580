// How `ruvllm serve` ends: on request, at a deadline, and when killed.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { readFeedback } from '../support/read-feedback.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from '../support/serve-process.ts';

let folder: ServeFolder;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 16_384 });
});
afterEach(() => folder.killAll());
afterAll(() => folder.dispose());

const messages = [{ role: 'user', content: 'hi' }];
const long = { model: 'tiny', messages, ignore_eos: true, seed: 1, stream: true };

function call(
  { url }: ServeProcess,
  method: string,
  path: string,
  { body, token }: { body?: object; token?: string } = {},
): Promise<Response> {
  return fetch(url + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function begun(response: Promise<Response>): Promise<{ rest: () => Promise<string> }> {
  const { body, status } = await response;
  expect(status).toBe(200);
  const reader = body!.getReader();
  const decoder = new TextDecoder();
  let text = decoder.decode((await reader.read()).value, { stream: true });
  return {
    async rest() {
      for (let next = await reader.read(); !next.done; next = await reader.read())
        text += decoder.decode(next.value, { stream: true });
      return text;
    },
  };
}

describe.skipIf(!isServerBuilt)('the end of ruvllm serve', () => {
  test('[E1] after the signal rejects new requests, finishes running ones, and exits with 0', async () => {
    const server = await folder.start(folder.model, '--kv-packing', 'off', '--shutdown-timeout', '600');
    const body = { ...long, max_tokens: 600 };
    const reference = await (await call(server, 'POST', '/v1/chat/completions', { body })).text();
    const stream = await begun(call(server, 'POST', '/v1/chat/completions', { body }));
    server.process.kill('SIGTERM');
    let health: Response;
    do health = await call(server, 'GET', '/health');
    while (health.status === 200);
    expect([health.status, await health.json()]).toEqual([503, { status: 'shutting down' }]);
    // Who comes right after the signal may have been waiting, and is answered.
    let refused: Response;
    do refused = await call(server, 'POST', '/v1/chat/completions', { body: { ...body, max_tokens: 1 } });
    while (refused.status === 200 && (await sleep(150, true)));
    expect(refused.status).toBe(503);
    expect(Object.fromEntries(refused.headers)).toMatchObject({ 'retry-after': '5', connection: 'close' });
    expect(await refused.json()).toMatchObject({ error: { code: 'shutting_down', type: 'server_error' } });
    const other = await call(server, 'POST', '/v1/messages', { body: { model: 'tiny', messages, max_tokens: 1 } });
    expect([other.status, other.headers.get('retry-after')]).toEqual([529, '5']);
    const strip = (text: string): string => text.replaceAll(/"(id|created|timings)":("[^"]*"|\d+|\{[^}]*\})/g, '');
    expect(strip(await stream.rest())).toBe(strip(reference));
    expect(reference.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(await server.exit).toBe(0);
  });

  test('[E1] requests that exceed the deadline get an error in every format, and the exit code is still 0', async () => {
    const server = await folder.start(folder.model, '--shutdown-timeout', '2', '--context', '16384');
    const streams = await Promise.all([
      begun(call(server, 'POST', '/v1/chat/completions', { body: { ...long, max_tokens: 16_000 } })),
      begun(call(server, 'POST', '/v1/messages', { body: { ...long, max_tokens: 16_000 } })),
      begun(
        call(server, 'POST', '/v1/responses', {
          body: { model: 'tiny', input: 'hi', ignore_eos: true, stream: true, max_output_tokens: 16_000 },
        }),
      ),
    ]);
    server.process.kill('SIGTERM');
    const [chat, message, response] = await Promise.all(streams.map(({ rest }) => rest()));
    const last = (text: string): string => text.trimEnd().split('\n\n').at(-1)!;
    expect(last(chat!)).toMatch(/^data: \{"error":\{"message":/);
    expect(last(message!)).toMatch(/^event: error\ndata: \{"type":"error",/);
    expect(last(response!)).toMatch(/^event: response\.failed\ndata: \{"type":"response\.failed",/);
    expect(await server.exit).toBe(0);
  });

  test('[E2] [R6] acknowledged writes survive a kill', async () => {
    const server = await folder.start(folder.model);
    expect(server.isOpen).toBe(true);
    const make = async (name: string, scope: string, token?: string): Promise<{ id: string; token: string }> => {
      const body = { name, tenant: 'alice', scopes: [scope] };
      const made = await call(server, 'POST', '/admin/keys', { body, ...(token === undefined ? {} : { token }) });
      expect(made.status).toBe(201);
      return (await made.json()) as { id: string; token: string };
    };
    const admin = await make('admin', 'admin');
    const good = await make('good', 'inference', admin.token);
    const bad = await make('bad', 'inference', admin.token);
    const answer = await call(server, 'POST', '/v1/responses', {
      body: { model: 'tiny', input: 'hi', max_output_tokens: 1 },
      token: good.token,
    });
    const requestId = answer.headers.get('x-request-id')!;
    const { id } = (await answer.json()) as { id: string };
    const judged = await call(server, 'POST', '/v1/feedback', {
      body: { request_id: id, score: 0.25, correction: 'better' },
      token: good.token,
    });
    expect(judged.status).toBe(200);
    expect((await call(server, 'DELETE', `/admin/keys/${bad.id}`, { token: admin.token })).status).toBe(200);
    // A tenant's objects are written in order: this one after the response.
    const chat = await call(server, 'POST', '/v1/conversations', { body: {}, token: good.token });
    const { id: conversationId } = (await chat.json()) as { id: string };
    server.process.kill('SIGKILL');
    expect(await server.exit).toBeNull();
    const place = { data: folder.data, state: folder.environment['RUVLLM_STATE_DIR']! };
    expect(await readFeedback(place, 'alice', requestId)).toMatchObject({
      requestId,
      model: 'tiny',
      quality: 0.25,
      correction: 'better',
      feedback: [{ source: 'api', score: 0.25, hasCorrection: true }],
    });

    const next = await folder.start(folder.model);
    expect(next.isOpen).toBe(false);
    const look = async (path: string, token: string): Promise<number> =>
      (await call(next, 'GET', path, { token })).status;
    expect(await look('/v1/models', good.token)).toBe(200);
    expect(await look('/admin/keys', admin.token)).toBe(200);
    expect(await look('/v1/models', bad.token)).toBe(401);
    expect(await look(`/v1/conversations/${conversationId}`, good.token)).toBe(200);
    expect(await look(`/v1/responses/${id}`, good.token)).toBe(200);
  });

  test('[E2] feedback survives a kill also without learning', async () => {
    const server = await folder.start(folder.model, '--no-learning');
    const token = folder.keys('create', 'alice', '--tenant', 'alice').token;
    const body = { model: 'tiny', prompt: 'hi', max_tokens: 1 };
    const answer = await call(server, 'POST', '/v1/completions', { body, token });
    const requestId = answer.headers.get('x-request-id')!;
    const rating = { request_id: requestId, thumbs: 'up' };
    expect((await call(server, 'POST', '/v1/feedback', { body: rating, token })).status).toBe(200);
    server.process.kill('SIGKILL');
    expect(await server.exit).toBeNull();
    const place = { data: folder.data, state: folder.environment['RUVLLM_STATE_DIR']! };
    expect(await readFeedback(place, 'alice', requestId)).toMatchObject({ quality: 1, feedback: [{ score: 1 }] });
  });
});

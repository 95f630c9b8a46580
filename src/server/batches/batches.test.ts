import { describe, expect, test } from 'vitest';
import { lineOf, linesOf, openBatchServer, toJsonl } from '../../../test/support/batch-server.ts';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { hasOpenapi, violationsOf } from '../../../test/support/openapi-schemas.ts';
import { createHostedEcho } from '../../../test/support/scripted-model.ts';
import { RuvLLMError } from '../../core/errors.ts';

const expectValid = (schema: string, value: unknown): void => {
  if (hasOpenapi) expect(violationsOf(schema, value)).toEqual([]);
};
const idsOf = (results: readonly { custom_id: string }[]): string[] => results.map(({ custom_id: id }) => id);

describe('[B1] files', () => {
  test('are uploaded, listed, read as they were and deleted', async () => {
    const { upload, call, content } = await openBatchServer();
    const text = `\uFEFF${toJsonl([lineOf('a', 'größer 😀')])}\r\n`;
    const { status, body: file } = await upload(text);
    expect([status, file.filename, file.purpose, file.bytes]).toEqual([200, 'requests.jsonl', 'batch', new TextEncoder().encode(text).length]); // prettier-ignore
    expectValid('OpenAIFile', file);
    const { body: other } = await upload('x', { purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3600' }); // prettier-ignore
    expect(other.expires_at - other.created_at).toBe(3600);
    const list = (await call('GET', '/v1/files')).body;
    expectValid('ListFilesResponse', list);
    expect(list.data.map(({ id }: { id: string }) => id).sort()).toEqual([file.id, other.id].sort());
    expect(await content(file.id)).toBe(text);
    expect((await call('GET', `/v1/files/${file.id}`)).body).toEqual(file);
    const deleted = (await call('DELETE', `/v1/files/${file.id}`)).body;
    expectValid('DeleteFileResponse', deleted);
    expect([deleted.deleted, (await call('GET', `/v1/files/${file.id}`)).status]).toEqual([true, 404]);
  });

  test('of other purposes, unknown fields, no UTF-8 and too many bytes are refused with the reason', async () => {
    const { upload, send } = await openBatchServer({ limits: { maxBatchFileBytes: 1000, maxBatchBytes: 1500 } });
    const codes = [
      await upload('a', { purpose: 'fine-tune' }),
      await upload('a', { purpose: 'batch', colour: 'red' }),
      await upload(Uint8Array.of(0xc3, 0x28)),
      await upload('a'.repeat(1001)),
      await upload('a'.repeat(1000)),
      await upload('a'.repeat(1000)),
    ].map(({ status, body }) => [status, body.error?.code ?? null]);
    expect(codes).toEqual([
      [400, 'invalid_value'],
      [400, 'unknown_parameter'],
      [400, 'invalid_file'],
      [413, 'file_too_large'],
      [200, null],
      [422, 'limit_exceeded'],
    ]);
    const broken = await send('POST', '/v1/files', 'no form', 'multipart/form-data; boundary=x');
    expect(broken.status).toBe(400);
    expect((await send('POST', '/v1/files', '{}', 'application/json')).status).toBe(415);
  });
});

describe('[B2] a batch', () => {
  test('has one result per line, in the order of the lines, and failed requests in the error file', async () => {
    const { create, until, results, call, logs, memory } = await openBatchServer();
    const lines = [lineOf('a'), lineOf('wrong', 'hi', { temperature: 'hot' }), lineOf('b'), lineOf('gone', 'hi', { model: 'none' })]; // prettier-ignore
    const { status, body: created } = await create(lines, { metadata: { job: 'nightly' } });
    expect([status, created.status]).toEqual([200, 'validating']);
    expectValid('Batch', created);
    const batch = await until(created.id);
    expectValid('Batch', batch);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 4, completed: 2, failed: 2 }, metadata: { job: 'nightly' } }); // prettier-ignore
    const good = await results(batch.output_file_id);
    expect(idsOf(good)).toEqual(['a', 'b']);
    expect(good[0]).toMatchObject({ error: null, response: { status_code: 200, body: { object: 'chat.completion', choices: [{ message: { content: 're: about a' } }] } } }); // prettier-ignore
    const bad = await results(batch.error_file_id);
    expect(bad.map(({ custom_id: id, response }) => [id, response.status_code, response.body.error.code])).toEqual([
      ['wrong', 400, 'invalid_value'],
      ['gone', 404, 'model_not_found'],
    ]);
    expect(new Set([...good, ...bad].map(({ id }) => id)).size).toBe(4);
    // The same path as a request by HTTP: a log line and an audit entry for each.
    const logged = logs.filter((one: any) => one.batch === created.id) as any[];
    expect(logged.map(({ requestId }) => requestId).sort()).toEqual([...good, ...bad].map(({ response }) => response.request_id).sort()); // prettier-ignore
    await settle();
    await memory.audit.flush();
    const audited: string[] = [];
    for await (const entry of memory.audit.export('local')) audited.push(JSON.stringify(entry));
    for (const { response } of good) {
      expect(audited.filter((entry) => entry.includes(response.request_id as string)).length).toBe(1);
    }
    const files = (await call('GET', '/v1/files?purpose=batch_output')).body.data as { id: string; bytes: number }[];
    for (const [id, found] of [
      [batch.output_file_id, good],
      [batch.error_file_id, bad],
    ] as const) {
      // prettier-ignore
      expect(files.find((file) => file.id === id)!.bytes).toBe(new TextEncoder().encode(toJsonl(found)).length);
    }
    const list = (await call('GET', '/v1/batches')).body;
    expectValid('ListBatchesResponse', list);
    expect(list.data).toEqual([batch]);
  });

  test('runs at the lowest priority, with a bounded number of requests at the same time', async () => {
    const model = createHostedEcho(1000);
    const generate = model.generateStream.bind(model);
    let [numRunning, maxRunning] = [0, 0];
    model.generateStream = async function* (prompt, options) {
      maxRunning = Math.max(maxRunning, ++numRunning);
      await settle();
      yield* generate(prompt, options);
      numRunning--;
    };
    const { create, until, send } = await openBatchServer({ model, limits: { batchConcurrency: 3 } });
    const batches = await Promise.all([create(linesOf(10)), create(linesOf(10))]);
    for (const { body } of batches) await until(body.id);
    expect(maxRunning).toBe(3);
    expect(new Set(model.calls.map(({ options }) => options.priority))).toEqual(new Set([-10]));
    await send('POST', '/v1/chat/completions', JSON.stringify((lineOf('x') as any).body), 'application/json');
    expect(model.calls.at(-1)!.options.priority).toBeUndefined();
  });

  test('waits where a request would be refused for now, and gives up on one that breaks the engine', async () => {
    const model = createHostedEcho(1000);
    const generate = model.generateStream.bind(model);
    const counts = new Map<string, number>();
    model.generateStream = async function* (prompt, options) {
      const text = (prompt as unknown as { content: string }[]).at(-1)!.content;
      const count = (counts.get(text) ?? 0) + 1;
      counts.set(text, count);
      if (text === 'busy' && count < 6) throw new RuvLLMError('overloaded', 'full', { isRetryable: true });
      if (text === 'poison') throw new RuvLLMError('engine_crashed', 'gone', { isRetryable: true });
      yield* generate(prompt, options);
    };
    const clock = createManualClock();
    const { create, show, results } = await openBatchServer({ model, clock });
    const { body } = await create([lineOf('a', 'busy'), lineOf('b', 'poison')]);
    let batch = body;
    for (let i = 0; i < 200 && batch.status !== 'completed'; i++) {
      await settle();
      clock.advance(1000);
      batch = await show(body.id);
    }
    expect([batch.status, batch.request_counts.completed, batch.request_counts.failed]).toEqual(['completed', 1, 1]);
    expect(Object.fromEntries(counts)).toEqual({ busy: 6, poison: 3 });
    expect((await results(batch.error_file_id))[0].response.body.error.code).toBe('engine_crashed');
  });
});

describe('[B3] a file that is no batch', () => {
  test('fails with the line numbers and reasons, and runs nothing', async () => {
    const { create, until, model } = await openBatchServer();
    const lines = [
      JSON.stringify(lineOf('a')),
      'not json',
      '',
      JSON.stringify(lineOf('a')),
      JSON.stringify({ ...lineOf('b'), method: 'GET' }),
      JSON.stringify({ ...lineOf('c'), url: '/v1/embeddings' }),
      JSON.stringify({ ...lineOf('d'), custom_id: undefined }),
      JSON.stringify(lineOf('e', 'hi', { stream: true })),
      '[]',
    ];
    const { body } = await create(lines.join('\n'));
    const batch = await until(body.id);
    expectValid('Batch', batch);
    expect(batch.status).toBe('failed');
    expect(batch.errors.data.map(({ line, code, param }: any) => [line, code, param])).toEqual([
      [2, 'invalid_json_line', null],
      [4, 'duplicate_custom_id', 'custom_id'],
      [5, 'invalid_method', 'method'],
      [6, 'invalid_url', 'url'],
      [7, 'missing_required_parameter', 'custom_id'],
      [8, 'unsupported_parameter', 'body.stream'],
      [9, 'invalid_json_line', null],
    ]);
    expect(batch.errors.data[1].message).toContain('line 1');
    expect(model.calls).toEqual([]);
  });

  test('is empty, or has more lines than the limit', async () => {
    const { create, until } = await openBatchServer({ limits: { maxBatchLines: 2 } });
    const codeOf = async (lines: object[]): Promise<string> =>
      (await until((await create(lines)).body.id)).errors.data[0].code as string;
    expect([await codeOf([]), await codeOf(linesOf(3))]).toEqual(['empty_file', 'too_many_lines']);
    expect((await until((await create(linesOf(2))).body.id)).status).toBe('completed');
  });
});

describe('[B4] limits and conflicts', () => {
  test('open batches are limited, and their input cannot be deleted', async () => {
    const model = createHostedEcho(1000);
    model.isStuck = true;
    const { create, call, until } = await openBatchServer({ model, limits: { maxOpenBatches: 1 } });
    const { body: first } = await create(linesOf(2));
    const second = await create(linesOf(2));
    expect([second.status, second.body.error.code]).toEqual([422, 'limit_exceeded']);
    expect((await call('DELETE', `/v1/files/${first.input_file_id}`)).status).toBe(409);
    model.isStuck = false;
    await call('POST', `/v1/batches/${first.id}/cancel`);
    await until(first.id);
    expect((await call('DELETE', `/v1/files/${first.input_file_id}`)).status).toBe(200);
    expect((await create(linesOf(1))).status).toBe(200);
  });

  test('wrong requests are refused', async () => {
    const { call, create, upload, until } = await openBatchServer();
    const { body: file } = await upload('x', { purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3600' }); // prettier-ignore
    const { body: batch } = await create([lineOf('a')]);
    const { output_file_id: output } = await until(batch.id);
    const post = async (more: object) => {
      const right = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' };
      const { status, body } = await call('POST', '/v1/batches', { ...right, ...more });
      return [status, body.error.code, body.error.param];
    };
    expect(await post({})).toEqual([400, 'file_expires', 'input_file_id']);
    expect(await post({ input_file_id: 'file-none' })).toEqual([404, 'not_found', 'input_file_id']);
    expect(await post({ input_file_id: output })).toEqual([400, 'invalid_value', 'input_file_id']);
    expect(await post({ endpoint: '/v1/images' })).toEqual([400, 'invalid_value', 'endpoint']);
    expect(await post({ completion_window: '1h' })).toEqual([400, 'invalid_value', 'completion_window']);
    const ended = await call('POST', `/v1/batches/${batch.id}/cancel`);
    expect([ended.status, ended.body.error.code]).toEqual([409, 'batch_ended']);
  });
});

test('[S4] unknown fields of a new batch are named and ignored', async () => {
  const { upload, send } = await openBatchServer();
  const { body: file } = await upload(toJsonl(linesOf(1)));
  const wish = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h', surprise: 1 };
  const response = await send('POST', '/v1/batches', JSON.stringify(wish), 'application/json');
  expect([response.status, response.headers.get('x-ignored-fields')]).toEqual([200, 'surprise']);
});

describe('[B5] a batch that does not run to its end', () => {
  test('is cancelled: finished lines keep their results, the others have an error each', async () => {
    const model = createHostedEcho(1000);
    const { create, call, until, results } = await openBatchServer({ model, limits: { batchConcurrency: 1 } });
    const generate = model.generateStream.bind(model);
    model.generateStream = async function* (prompt, options) {
      if (model.calls.length === 2) model.isStuck = true;
      yield* generate(prompt, options);
    };
    const { body } = await create(linesOf(5));
    await until(body.id, ({ request_counts: { completed } }) => completed === 2);
    const cancelled = await call('POST', `/v1/batches/${body.id}/cancel`);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelling']);
    const batch = await until(body.id);
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { total: 5, completed: 2, failed: 3 } });
    expect(idsOf(await results(batch.output_file_id))).toEqual(['line-0', 'line-1']);
    const bad = await results(batch.error_file_id);
    expect(bad.map(({ custom_id: id, response, error }) => [id, response, error.code])).toEqual(
      ['line-2', 'line-3', 'line-4'].map((id) => [id, null, 'batch_cancelled']),
    );
  });

  test('expires after 24 hours, also while it waits behind another one', async () => {
    const clock = createManualClock();
    const model = createHostedEcho(1000);
    model.isStuck = true;
    const { create, until, results } = await openBatchServer({ model, clock });
    const { body: first } = await create(linesOf(3));
    const { body: second } = await create(linesOf(2));
    await until(first.id, ({ status }) => status === 'in_progress');
    await settle();
    clock.advance(86_400_000 - 1);
    await settle();
    expect((await until(first.id, () => true)).status).toBe('in_progress');
    clock.advance(1);
    for (const [id, count] of [
      [first.id, 3],
      [second.id, 2],
    ] as const) {
      // prettier-ignore
      const batch = await until(id);
      expect(batch).toMatchObject({ status: 'expired', request_counts: { total: count, completed: 0, failed: count } });
      const codes = (await results(batch.error_file_id)).map(({ error }) => error.code as string);
      expect(codes).toEqual(Array.from({ length: count }, () => 'batch_expired'));
    }
  });

  test('fails line by line once its key is revoked', async () => {
    const model = createHostedEcho(1000);
    const { create, until, results, keys, tokens } = await openBatchServer({
      model,
      tenants: ['alice', 'root'],
      limits: { batchConcurrency: 1 },
    });
    const other = await keys.create({ name: 'second', tenant: 'alice', scopes: ['inference'] });
    const generate = model.generateStream.bind(model);
    model.generateStream = async function* (prompt, options) {
      if (model.calls.length === 1) {
        keys.revoke(tokens.get('alice')!.id);
        tokens.set('alice', { token: other.token, id: other.key.id });
      }
      yield* generate(prompt, options);
    };
    const { body } = await create(linesOf(4));
    const batch = await until(body.id);
    expect(batch.request_counts).toEqual({ total: 4, completed: 2, failed: 2 });
    const codes = (await results(batch.error_file_id)).map(({ response }) => response.body.error.code as string);
    expect(codes).toEqual(['invalid_api_key', 'invalid_api_key']);
  });
});

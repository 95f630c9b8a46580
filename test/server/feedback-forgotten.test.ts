// Feedback is deleted with its request and its tenant.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT_TENANT } from '../../src/runtime/generate-options.ts';
import { isServerBuilt } from '../support/dist-server.ts';
import { readFeedback } from '../support/read-feedback.ts';
import { createServeFolder, type ServeFolder } from '../support/serve-process.ts';

let folder: ServeFolder;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 256 });
});
afterEach(() => folder.here.stopAll());
afterAll(() => folder.dispose());

describe.skipIf(!isServerBuilt)('[LF1] stored feedback', () => {
  test('is deleted with its request and its tenant, over HTTP and on the command line', async () => {
    const server = await folder.here.start(folder.model);
    const post = async (path: string, body: object): Promise<Response> => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
      expect(answer.status, `${path}: ${await answer.clone().text()}`).toBe(200);
      return answer;
    };
    const judge = async (): Promise<string> => {
      const answer = await post('/v1/completions', { model: 'tiny', prompt: 'hi', max_tokens: 1 });
      const requestId = answer.headers.get('x-request-id')!;
      await post('/v1/feedback', { request_id: requestId, score: 0, correction: 'a secret' });
      return requestId;
    };
    const state = folder.environment['RUVLLM_STATE_DIR']!;
    const areStored = async (requestIds: readonly string[]): Promise<boolean[]> => {
      const stored: boolean[] = [];
      for (const id of requestIds) {
        stored.push((await readFeedback({ data: folder.data, state }, DEFAULT_TENANT, id)) !== null);
      }
      return stored;
    };
    const ids = [await judge(), await judge(), await judge()] as const;
    await post('/admin/learning/forget', { requestId: ids[0] });
    await server.stop();
    expect(await areStored(ids)).toEqual([false, true, true]);

    const forgot = await folder.here.run('learn', 'forget', '--request', ids[1]);
    expect(forgot.status, forgot.stdout).toBe(0);
    expect(await areStored(ids)).toEqual([false, false, true]);
    const erased = await folder.here.run('memory', 'erase-tenant', DEFAULT_TENANT, '--confirm', DEFAULT_TENANT);
    expect(erased.status, erased.stdout).toBe(0);
    expect(await areStored(ids)).toEqual([false, false, false]);
  });

  test('is deleted with a tenant that a server erases', async () => {
    const server = await folder.here.start(folder.model);
    const post = (path: string, body: object): Promise<Response> =>
      fetch(server.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }); // prettier-ignore
    const answer = await post('/v1/completions', { model: 'tiny', prompt: 'hi', max_tokens: 1 });
    const requestId = answer.headers.get('x-request-id')!;
    expect((await post('/v1/feedback', { request_id: requestId, thumbs: 'down' })).status).toBe(200);
    const place = { data: folder.data, state: folder.environment['RUVLLM_STATE_DIR']! };
    const show = async (): Promise<{ judged?: { verdict: string } }> =>
      (await (await post('/admin/memory/audit/show', { requestId })).json()) as { judged?: { verdict: string } };
    await expect.poll(async () => (await show()).judged?.verdict).toBe('failure');
    expect((await post('/admin/memory/tenants/erase', { confirm: DEFAULT_TENANT })).status).toBe(200);
    await server.stop();
    expect(await readFeedback(place, DEFAULT_TENANT, requestId)).toBeNull();
  });
});

import { expect, test } from 'vitest';
import { systemClock } from '../core/clock.ts';
import { listModels } from './model-list.ts';
import { createNode, setHealth } from './node-table.ts';
import type { GatewayRequest, UpstreamRequest, UpstreamResponse } from './types.ts';

/** The list of nodes with these answers; null: the connection breaks. `down`: a node that is not up. */
async function list(answers: readonly ([status: number, body: string | Uint8Array] | null | 'down')[]) {
  const sent: UpstreamRequest[] = [];
  let numReturned = 0;
  const nodes = answers.map((answer, i) => {
    const node = createNode(String(i + 1), String(i));
    setHealth(node, answer === 'down' ? 'down' : 'up', null);
    return node;
  });
  async function send(url: string, request: UpstreamRequest): Promise<UpstreamResponse> {
    sent.push(request);
    const answer = answers[Number(url)] as [number, string | Uint8Array] | null;
    if (answer === null) throw new Error('gone');
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        yield typeof answer![1] === 'string' ? new TextEncoder().encode(answer![1]) : answer![1];
        yield new Uint8Array();
      } finally {
        numReturned++;
      }
    }
    return { status: answer[0], headers: {}, body: body() };
  }
  const request: GatewayRequest = { method: 'HEAD', target: '/v1/models?x=1', headers: new Headers({ accept: 'a' }), readBody: () => Promise.reject(new Error('no body')), signal: new AbortController().signal }; // prettier-ignore
  const response = await listModels({ nodes, upstream: { send, close() {} }, clock: systemClock }, request, 'me');
  const text = new TextDecoder().decode(response.body as Uint8Array);
  return { status: response.status, text, sent, numReturned };
}
const page = (...ids: readonly string[]): [number, string] => [
  200,
  JSON.stringify({ object: 'list', data: ids.map((id) => ({ id })) }),
];

test('[GW12] nodes that are up are asked, and what is no list is left out', async () => {
  const { status, text, sent } = await list([page('a'), 'down', [500, '{"data":[{"id":"b"}]}'], [200, '{'], [200, '{"data":1}'], null, page('c', 'a')]); // prettier-ignore
  expect([status, JSON.parse(text)]).toEqual([200, { object: 'list', data: [{ id: 'a' }, { id: 'c' }] }]);
  expect(sent.map(({ method, target, headers }) => [method, target, headers])).toEqual(
    Array.from({ length: 6 }, () => ['GET', '/v1/models?x=1', { accept: 'a', via: 'me' }]),
  );
});

test('[GW12] the first refusal is the answer if no node lists its models', async () => {
  expect(await list([null, [401, 'no key'], [500, 'bug']])).toMatchObject({ status: 401, text: 'no key' });
  await expect(list([null, 'down'])).rejects.toMatchObject({ code: 'overloaded', isRetryable: true, message: 'none of 2 nodes can list its models' }); // prettier-ignore
});

test('[GW12] a list of more than 8 MiB is not read to its end', async () => {
  const large = new TextEncoder().encode(JSON.stringify({ data: [], x: 'x'.repeat(8 * 2 ** 20) }));
  expect((await list([[200, large]])).numReturned).toBe(1);
});

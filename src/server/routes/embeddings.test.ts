import { describe, expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import type { Model } from '../../runtime/model.ts';

const DIMENSIONS = 96;
/** Every vector contains its index. */
const embed = async (input: readonly unknown[]) => ({
  embeddings: input.map((_, index) => new Float32Array(DIMENSIONS).fill(index + 0.5)),
  usage: { promptTokens: input.length, totalTokens: input.length },
});
const model = {
  embed,
  isLoaded: () => true,
  onLost() {},
  modelInfo: () => ({ memory: { totalBytes: 0 } }),
  dispose: async () => {},
} as unknown as Model;

function setUp() {
  const { fetch, services } = createTestServer([{ ...entryOf('m', async () => model), aliases: ['other'] }]);
  const leave = new AbortController();
  const ask = (numInputs: number, more: object = {}): Promise<Response> =>
    Promise.resolve(
      fetch(
        new Request('http://localhost/v1/embeddings', {
          method: 'POST',
          body: JSON.stringify({ model: 'm', input: Array<string>(numInputs).fill('a'), ...more }),
          headers: { 'content-type': 'application/json' },
          signal: leave.signal,
        }),
      ),
    );
  return { ask, leave, services };
}

describe('embeddings over HTTP', () => {
  test.each([1, 2, 85, 86, 500])('returns %i embeddings in order as one list', async (numInputs) => {
    const { ask, services } = setUp();
    const response = await ask(numInputs);
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^embd-/) as string,
      object: 'list',
      model: 'm',
      data: Array.from({ length: numInputs }, (_, index) => ({
        object: 'embedding',
        index,
        embedding: Array<number>(DIMENSIONS).fill(index + 0.5),
      })),
      usage: { prompt_tokens: numInputs, total_tokens: numInputs },
    });
    expect(services.admission.numRequests).toBe(0);
  });

  test('encodes base64', async () => {
    const { ask } = setUp();
    const { data } = (await (await ask(300, { encoding_format: 'base64' })).json()) as {
      data: { embedding: string }[];
    };
    const bytes = Uint8Array.from(atob(data[299]!.embedding), (char) => char.charCodeAt(0));
    expect(new Float32Array(bytes.buffer)).toEqual(new Float32Array(DIMENSIONS).fill(299.5));
  });

  test('answers an alias with the name of the model', async () => {
    const { ask } = setUp();
    expect(await (await ask(1, { model: 'other' })).json()).toMatchObject({ model: 'm' });
  });

  test('[G6] writes a long list in pieces, serves other requests in between, and counts as running until the end', async () => {
    const { ask, services } = setUp();
    const reader = (await ask(1000)).body!.getReader();
    let numTurns = 0;
    let isOver = false;
    // Turns, not milliseconds: a fast machine finishes before a second timer fires.
    const turn = (): unknown => isOver || (numTurns++, setImmediate(turn));
    turn();
    const sizes: number[] = [];
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      expect(services.admission.numRequests).toBe(1);
      sizes.push(value.length);
    }
    isOver = true;
    expect(sizes).toHaveLength(12);
    expect(Math.max(...sizes)).toBeLessThan(100_000);
    expect(numTurns).toBeGreaterThan(2);
    expect(services.admission.numRequests).toBe(0);
  });

  test('[G6] a client that leaves during a list no longer counts as running', async () => {
    const { ask, services } = setUp();
    const { body } = await ask(1000);
    expect(services.admission.numRequests).toBe(1);
    await body!.cancel();
    expect(services.admission.numRequests).toBe(0);
  });

  test('[G6] a client that left before the list was read no longer counts as running', async () => {
    const { ask, leave, services } = setUp();
    await ask(1000);
    expect(services.admission.numRequests).toBe(1);
    leave.abort();
    expect(services.admission.numRequests).toBe(0);
  });
});

// Streams with a slow client or model, over a real socket.
import { connect, type Socket } from 'node:net';
import OpenAI from 'openai';
import { afterEach, expect, test } from 'vitest';
import type { Listening } from '../../src/node/server/serve.ts';
import type { EchoModel } from '../support/echo-model.ts';
import { createHostedEcho } from '../support/scripted-model.ts';
import { createTestServer, entryOf, listenOnLoopback } from '../support/test-server.ts';

let listening: Listening | null = null;
afterEach(async () => {
  await listening?.close(1000);
  listening = null;
});

/** A model whose chunks come from a callback. */
function createPieceModel(pieces: () => AsyncIterable<string>): EchoModel {
  const model = createHostedEcho(1_000_000);
  const base = model.generateStream.bind(model);
  model.generateStream = async function* (prompt, options) {
    for await (const text of pieces()) {
      yield {
        text,
        reasoning: '',
        toolCalls: [],
        tokenIds: [1],
        logprobs: null,
        textLogprobs: null,
        finishReason: null,
      };
    }
    for await (const chunk of base(prompt, options)) if (chunk.finishReason !== null) yield chunk;
  };
  return model;
}

const ask = JSON.stringify({ model: 'slow', messages: [{ role: 'user', content: 'go' }], stream: true });
const contentOf = (events: string): string[] =>
  events.split('\n\n').flatMap((event) => {
    const data = /data: (\{.*)$/s.exec(event)?.[1];
    if (data === undefined) return [];
    return [(JSON.parse(data) as { choices: { delta: { content?: string } }[] }).choices[0]!.delta.content ?? ''];
  });

/** Until it has started and then stayed the same for a while. */
async function settled(read: () => number): Promise<number> {
  for (let last = 0, numSame = 0; ;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    numSame = last > 0 && read() === last ? numSame + 1 : 0;
    last = read();
    if (numSame === 50) return last;
  }
}

test('[G3] a client that does not read holds back only its own model, and misses nothing', async () => {
  const NUM_PIECES = 20_000;
  const pieceOf = (index: number): string => `${index} ${'x'.repeat(1000)} `;
  let numMade = 0;
  async function* make(): AsyncGenerator<string> {
    for (let index = 0; index < NUM_PIECES; index++) {
      numMade++;
      yield pieceOf(index);
    }
  }
  const quick = createHostedEcho(1000);
  listening = await listenOnLoopback(
    createTestServer([entryOf('slow', async () => createPieceModel(make)), entryOf('quick', async () => quick)]),
  );
  const { port, url } = listening;
  const socket = await new Promise<Socket>((resolve) => {
    const opened: Socket = connect(port, '127.0.0.1', () => resolve(opened));
  });
  socket.pause();
  const head = `POST /v1/chat/completions HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`;
  socket.write(`${head}content-length: ${ask.length}\r\n\r\n${ask}`);
  const numAhead = await settled(() => numMade);
  // Sockets buffer some megabytes of these twenty.
  expect(numAhead).toBeGreaterThan(0);
  expect(numAhead).toBeLessThan(NUM_PIECES / 2);
  const other = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'quick', messages: [{ role: 'user', content: 'hi' }] }),
  });
  expect(await other.json()).toMatchObject({ choices: [{ message: { content: 're: hi' } }] });
  expect(numMade).toBe(numAhead);

  const text = await new Promise<string>((resolve) => {
    let received = '';
    socket.setEncoding('utf8').on('data', (part: string) => (received += part));
    socket.on('close', () => resolve(received));
    socket.resume();
  });
  const pieces = contentOf(text.slice(text.indexOf('\r\n\r\n') + 4)).filter((piece) => piece !== '');
  expect(pieces.length).toBe(NUM_PIECES);
  expect(pieces.findIndex((piece, index) => piece !== pieceOf(index))).toBe(-1);
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
});

test('sends comments while a model is silent, which the official client ignores', async () => {
  let goOn = (): void => {};
  const silence = new Promise<void>((resolve) => (goOn = resolve));
  async function* make(): AsyncGenerator<string> {
    yield 'one ';
    await silence;
    yield 'two';
  }
  listening = await listenOnLoopback(
    createTestServer([entryOf('slow', async () => createPieceModel(make))], { limits: { keepAliveMs: 10 } }),
  );
  let received = '';
  const client = new OpenAI({
    baseURL: `${listening.url}/v1`,
    apiKey: 'none',
    async fetch(url, options) {
      const response = await fetch(url, options);
      const spy = new TransformStream<Uint8Array, Uint8Array>({
        transform(part, controller) {
          received += new TextDecoder().decode(part);
          if (received.split(': keep-alive').length > 3) goOn();
          controller.enqueue(part);
        },
      });
      return new Response(response.body!.pipeThrough(spy), response);
    },
  });
  const stream = await client.chat.completions.create({
    model: 'slow',
    messages: [{ role: 'user', content: 'go' }],
    stream: true,
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]!.delta.content ?? '';
  expect(text).toBe('one two');
  expect(received).toMatch(/data: [^\n]*one [^\n]*\n\n(: keep-alive\n\n){3,}data: [^\n]*two/);
});

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSseParser, readSse, type SseEvent } from './sse.ts';

const parse = (...chunks: string[]): SseEvent[] => {
  const parser = createSseParser();
  return chunks.flatMap((chunk) => parser.push(chunk));
};
const message = (data: string, event = 'message'): SseEvent => ({ event, data });

test.each<[string, string, SseEvent[]]>([
  ['parses a single data line', 'data: a\n\n', [message('a')]],
  ['joins several data lines', 'data: a\ndata:b\ndata\n\n', [message('a\nb\n')]],
  ['strips only one leading space', 'data:  a\n\n', [message(' a')]],
  ['reads the event name', 'event: live\ndata: 1\n\ndata: 2\n\n', [message('1', 'live'), message('2')]],
  ['ignores comments and other fields', ': keep-alive\nid: 3\nretry: 1\n\ndata: a\n\n', [message('a')]],
  ['accepts CRLF and CR', 'data: a\r\n\r\ndata: b\r\rdata: c\n\n', [message('a'), message('b'), message('c')]],
  ['skips a byte order mark', '\uFEFFdata: a\n\n', [message('a')]],
  ['drops an unterminated event', 'data: a\n\ndata: b\n', [message('a')]],
  ['drops an event without data', 'event: x\n\ndata: a\n\n', [message('a')]],
])('%s', (_name, text, events) => {
  expect(parse(text)).toEqual(events);
});

test('returns the same events for every chunking of the stream', () => {
  const text = fc
    .array(fc.constantFrom('data: x', 'data', ': c', 'event: e', '', '', '\n', '\r', '\r\n', '\n\n', 'data:é\u2028'))
    .map((parts) => parts.join('') + '\n\n');
  fc.assert(
    fc.property(text, fc.array(fc.nat(40)), (whole, cuts) => {
      const chunks: string[] = [];
      let remaining = whole;
      for (const cut of cuts) {
        chunks.push(remaining.slice(0, cut));
        remaining = remaining.slice(cut);
      }
      expect(parse(...chunks, remaining)).toEqual(parse(whole));
      expect(parse(...whole)).toEqual(parse(whole));
    }),
  );
});

test('treats a CRLF split across two chunks as one line break', () => {
  expect(parse('data: a\r', '\ndata: b\r\n\r\n')).toEqual([message('a\nb')]);
});

test('rejects an event that exceeds the size limit', () => {
  const parser = createSseParser();
  const chunk = `data: ${'x'.repeat(2 ** 20)}`;
  expect(() => {
    for (let pushes = 0; pushes < 10; pushes++) parser.push(chunk);
  }).toThrow(/longer than 8388608/);
});

test('reports a lost connection', async () => {
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new TypeError('network error')),
  });
  await expect(readSse(body).next()).rejects.toThrow('Lost the connection to the server: network error');
});

test('joins characters split across chunks and cancels the request when reading stops', async () => {
  const bytes = new TextEncoder().encode('data: é€😀\n\ndata: next\n\n');
  let isCancelled = false;
  let offset = 0;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(bytes.slice(offset, ++offset)),
    cancel: () => void (isCancelled = true),
  });
  for await (const { data } of readSse(body)) {
    expect(data).toBe('é€😀');
    break;
  }
  expect(isCancelled).toBe(true);
});

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSseParser, readSse, type SseEvent } from './sse.ts';

const parse = (...pieces: string[]): SseEvent[] => {
  const parser = createSseParser();
  return pieces.flatMap((piece) => parser.push(piece));
};
const message = (data: string, event = 'message'): SseEvent => ({ event, data });

test.each<[string, string, SseEvent[]]>([
  ['one line', 'data: a\n\n', [message('a')]],
  ['several lines are one text', 'data: a\ndata:b\ndata\n\n', [message('a\nb\n')]],
  ['only one space is no part of it', 'data:  a\n\n', [message(' a')]],
  ['a name', 'event: live\ndata: 1\n\ndata: 2\n\n', [message('1', 'live'), message('2')]],
  ['comments and other fields say nothing', ': keep-alive\nid: 3\nretry: 1\n\ndata: a\n\n', [message('a')]],
  ['CRLF and CR', 'data: a\r\n\r\ndata: b\r\rdata: c\n\n', [message('a'), message('b'), message('c')]],
  ['a byte order mark', '\uFEFFdata: a\n\n', [message('a')]],
  ['an event without its end is none', 'data: a\n\ndata: b\n', [message('a')]],
  ['a name without data is none', 'event: x\n\ndata: a\n\n', [message('a')]],
])('%s', (_name, text, events) => {
  expect(parse(text)).toEqual(events);
});

test('wherever the stream is cut, the events are the same', () => {
  const text = fc
    .array(fc.constantFrom('data: x', 'data', ': c', 'event: e', '', '', '\n', '\r', '\r\n', '\n\n', 'data:é\u2028'))
    .map((parts) => parts.join('') + '\n\n');
  fc.assert(
    fc.property(text, fc.array(fc.nat(40)), (whole, cuts) => {
      const pieces: string[] = [];
      let rest = whole;
      for (const cut of cuts) {
        pieces.push(rest.slice(0, cut));
        rest = rest.slice(cut);
      }
      expect(parse(...pieces, rest)).toEqual(parse(whole));
      expect(parse(...whole)).toEqual(parse(whole));
    }),
  );
});

test('a line break that is cut in two is one', () => {
  expect(parse('data: a\r', '\ndata: b\r\n\r\n')).toEqual([message('a\nb')]);
});

test('an event without an end is refused before it fills the page', () => {
  const parser = createSseParser();
  const piece = `data: ${'x'.repeat(2 ** 20)}`;
  expect(() => {
    for (let pushes = 0; pushes < 10; pushes++) parser.push(piece);
  }).toThrow(/longer than 8388608/);
});

test('a connection that breaks is told as that', async () => {
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new TypeError('network error')),
  });
  await expect(readSse(body).next()).rejects.toThrow('the connection to the server was lost: network error');
});

test('characters that are cut between two chunks are whole, and who stops reading ends the request', async () => {
  const bytes = new TextEncoder().encode('data: é€😀\n\ndata: next\n\n');
  let isCancelled = false;
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(bytes.slice(at, ++at)),
    cancel: () => void (isCancelled = true),
  });
  for await (const { data } of readSse(body)) {
    expect(data).toBe('é€😀');
    break;
  }
  expect(isCancelled).toBe(true);
});

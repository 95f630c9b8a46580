import { connect } from 'node:net';
import { formatPost } from './raw-connection.ts';
import type { Served } from './served.ts';

export interface HostileResult {
  readonly name: string;
  readonly status: string;
  /** The longest stall of the server's main thread during the answer. */
  readonly loopMaxMs: number;
}

const ROUNDS = 3;
const MEBIBYTE = 2 ** 20;
const question = { model: 'bench', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] };
const chat = (more: object): Buffer => formatPost('/v1/chat/completions', JSON.stringify({ ...question, ...more }));
const raw = (body: string): Buffer => formatPost('/v1/chat/completions', body);
const schema = (value: object): Buffer =>
  chat({ response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: value } } });
const prompt = (content: string): Buffer => chat({ messages: [{ role: 'user', content }] });
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
/** As many characters as a context of 8,192 tokens allows: longer ones are rejected before tokenizing. */
const MAX_PROMPT = 32 * 8192 - 16;

const REQUESTS: readonly (readonly [name: string, bytes: () => Buffer])[] = [
  ['60,000 nested arrays', () => raw(nested(60_000))],
  ['60,000 nested arrays as messages', () => raw(`{"model":"bench","messages":${nested(60_000)}}`)],
  ['10 MB of JSON, with its length', () => raw(JSON.stringify({ ...question, user: 'x'.repeat(10 * MEBIBYTE) }))],
  ['10 MB of JSON, in chunks', () => chunked(JSON.stringify({ ...question, user: 'x'.repeat(10 * MEBIBYTE) }))],
  ['4 MB of numbers', () => raw(`{"model":"bench","messages":[${'1,'.repeat(2 * MEBIBYTE - 100)}1]}`)],
  ['190,000 values', () => raw(`{"model":"bench","messages":[${'{"a":1},'.repeat(63_000)}1]}`)],
  [
    '190,000 keys',
    () => chat({ metadata: Object.fromEntries(Array.from({ length: 190_000 }, (_, i) => [`k${i}`, 1])) }),
  ],
  ['4 MB that is not JSON', () => raw(`{"a":"${'x'.repeat(4 * MEBIBYTE - 20)}`)],
  ['4 MB prompt', () => prompt('word '.repeat(800_000))],
  ['long prompt of one letter', () => prompt('a'.repeat(MAX_PROMPT))],
  ['long prompt of rare letters', () => prompt('龘靐齉'.repeat(MAX_PROMPT / 3))],
  ['long prompt of words', () => prompt('some words and others '.repeat(MAX_PROMPT / 22))],
  ['2048 messages', () => chat({ messages: Array.from({ length: 2048 }, () => ({ role: 'user', content: 'hello' })) })],
  ['128 K to tokenize', () => formatPost('/tokenize', JSON.stringify({ content: 'a'.repeat(2 ** 17) }))],
  [
    '128 K to tokenize, with pieces',
    () => formatPost('/tokenize', JSON.stringify({ content: 'aZ'.repeat(2 ** 16), with_pieces: true })),
  ],
  ['128 K to detokenize', () => formatPost('/detokenize', JSON.stringify({ tokens: Array(2 ** 17).fill(300) }))],
  ['many stop strings', () => chat({ stop: Array.from({ length: 100_000 }, (_, i) => `s${i}`) })],
  ['pattern with nested repeats', () => schema({ type: 'string', pattern: '^(a+)+(b|b+)*$' })],
  ['pattern with counted repeats', () => schema({ type: 'string', pattern: '^((a{1,100}){1,100}){1,100}$' })],
  ['recursive schema', () => schema({ $ref: '#' })],
  ['schema that refers to itself twice', () => schema({ anyOf: [{ $ref: '#' }, { $ref: '#' }] })],
  ['schema of 100,000 values', () => schema({ enum: Array.from({ length: 100_000 }, (_, i) => `value ${i}`) })],
  ['grammar that refers to itself', () => chat({ grammar: 'root ::= root root | root' })],
  ['64 KB header', () => formatPost('/v1/chat/completions', '{}', [`x-long: ${'a'.repeat(65_536)}`])],
  ['prototype keys', () => raw('{"__proto__":{"model":"x"},"constructor":{"prototype":{}},"messages":[]}')],
];

function chunked(body: string): Buffer {
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n';
  return Buffer.from(`${head}transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
}

/** Sends each of them alone and measures the longest stall of the server's main thread. */
export async function measureHostile(served: Served): Promise<readonly HostileResult[]> {
  const results: HostileResult[] = [];
  await send(served.port, chat({}));
  for (const [name, bytes] of REQUESTS) {
    await served.measure();
    let status = '';
    for (let round = 0; round < ROUNDS; round++) status = await send(served.port, bytes());
    results.push({ name, status, loopMaxMs: (await served.measure()).loopMaxMs });
  }
  return results;
}

/** The status; a server may close before it has read everything. */
function send(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (status: string): void => {
      socket.destroy();
      resolve(status);
    };
    socket.setEncoding('latin1').on('data', (part: string) => end(part.slice(9, 12)));
    socket.on('error', () => end('closed')).on('close', () => end('closed'));
    socket.write(bytes);
  });
}

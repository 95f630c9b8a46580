// JSON-RPC messages that break what reads them carelessly: wrong types in every field, depth, size, and bytes that are no JSON.
import type { Random } from '../../src/core/random.ts';

/** A message as bytes, and what is wrong with it. */
export interface HostileMessage {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const pick = <T>(random: Random, all: readonly T[]): T => all[Math.floor(random.next() * all.length)]!;
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const nestedObjects = (depth: number): string => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth);

/** Values that throw if they are made a text or compared, as JSON. */
const VALUES: Readonly<Record<string, string>> = {
  'an object with its own toString': '{"toString":1,"valueOf":1}',
  'a list of such objects': '[[{"toString":null}],{"valueOf":{}}]',
  'a prototype': '{"__proto__":{"toString":1},"constructor":null}',
  'lists 60,000 deep': nested(60_000),
  'objects 60,000 deep': nestedObjects(60_000),
  'lists 63 deep': nested(63),
  'a hundred thousand lists': `[${'[],'.repeat(100_000)}[]]`,
  'many keys': `{${Array.from({ length: 20_000 }, (_, i) => `"k${i}":0`).join()}}`,
  'a long text': JSON.stringify('x'.repeat(1 << 20)),
  'half a character': '"\\ud800"',
  'a number beyond all': '1e999',
  'a long number': '9'.repeat(100_000),
  'a fraction': '0.1',
  null: 'null',
  true: 'true',
  'a list': '[]',
  'a name of an object': '"__proto__"',
};
const FIELDS = [
  'jsonrpc',
  'id',
  'method',
  'params',
  'name',
  'arguments',
  'text',
  'requestId',
  'result',
  'error',
  'message',
  'code',
] as const;
type Field = (typeof FIELDS)[number];
const METHODS = ['tools/call', 'tools/list', 'initialize', 'ping', 'notifications/cancelled', 'constructor'] as const;
const TOOLS = ['memory_search', 'memory_add', 'memory_list', 'memory_get', 'audit_search'] as const;

/** A message whose field has this value, as JSON. */
function messageWith(random: Random, field: Field, value: string): string {
  const of = (name: Field, usual: string): string => `"${name}":${name === field ? value : usual}`;
  if (field === 'result') return `{"jsonrpc":"2.0","id":1,${of('result', '{}')}}`;
  if (field === 'error' || field === 'code' || field === 'message')
    return `{"jsonrpc":"2.0","id":1,${field === 'error' ? of('error', '{}') : `"error":{${of('code', '1')},${of('message', '"no"')}}`}}`;
  const isCall = field === 'name' || field === 'arguments' || field === 'text' || random.next() < 0.7;
  const method = field === 'requestId' ? METHODS[4] : isCall ? METHODS[0] : pick(random, METHODS);
  const args = field === 'arguments' ? value : `{${of('text', '"a"')}}`;
  const call = `{${of('name', JSON.stringify(pick(random, TOOLS)))},"arguments":${args}}`;
  const params = field === 'params' ? value : field === 'requestId' ? `{"requestId":${value}}` : isCall ? call : '{}';
  const id = String(Math.floor(random.next() * 1e6));
  return `{${of('jsonrpc', '"2.0"')},${of('id', id)},${of('method', JSON.stringify(method))},"params":${params}}`;
}

/** Bytes that are not one message. */
const BROKEN: Readonly<Record<string, (random: Random) => string | Uint8Array>> = {
  nothing: () => ' ',
  'half a message': () => '{"jsonrpc":"2.0","id":1,"met',
  'bytes that are no UTF-8': () => Uint8Array.of(0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d),
  zeros: () => new Uint8Array(1000),
  'random bytes': (random) =>
    Uint8Array.from({ length: 300 }, () => Math.floor(random.next() * 256)).filter((byte) => byte !== 10),
  'a batch': () => '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]',
  'a batch of 100,000': () => `[${'1,'.repeat(100_000)}1]`,
  'a text': () => '"ping"',
  'only brackets': () => nested(200_000),
  'open brackets': () => '['.repeat(200_000),
  'an id twice': () => '{"jsonrpc":"2.0","id":1,"id":{"toString":1},"method":"ping"}',
  'nine megabytes': () => `"${'x'.repeat(9 << 20)}"`,
};

/** They ended a process once. */
const KNOWN: readonly (readonly [field: Field, value: keyof typeof VALUES])[] = [
  ['name', 'an object with its own toString'],
  ['message', 'an object with its own toString'],
  ['name', 'lists 60,000 deep'],
  ['arguments', 'lists 60,000 deep'],
];

/** The message of a round: known ones first, then each kind before any repetition, in a field of the seed. */
export function hostileMessage(random: Random, round: number): HostileMessage {
  const encode = (text: string | Uint8Array): Uint8Array =>
    typeof text === 'string' ? new TextEncoder().encode(text) : text;
  const broken = Object.keys(BROKEN);
  const values = Object.keys(VALUES);
  if (round >= KNOWN.length && round % 3 === 2) {
    const name = broken[Math.floor(round / 3) % broken.length]!;
    return { name, bytes: encode(BROKEN[name]!(random)) };
  }
  const [field, value] = KNOWN[round] ?? [pick(random, FIELDS), values[round % values.length]!];
  return { name: `${value} as ${field}`, bytes: encode(messageWith(random, field, VALUES[value]!)) };
}

/** A JSON value of these kinds, for answers of a hostile server. */
export const hostileValue = (random: Random): string => VALUES[pick(random, Object.keys(VALUES))]!;

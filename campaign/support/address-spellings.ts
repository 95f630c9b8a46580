// Private addresses in the many ways in which a URL can spell them.
import { hostname } from 'node:os';
import type { Random } from '../../src/core/random.ts';

type V4 = readonly [number, number, number, number];

export const chooseOf = <T>(random: Random, values: readonly T[]): T =>
  values[Math.floor(random.next() * values.length)]!;
const below = (random: Random, limit: number): number => Math.floor(random.next() * limit);

/** Whatever is listening there: this host. */
const here = (random: Random): V4 =>
  chooseOf<V4>(random, [
    [127, 0, 0, 1],
    [127, 0, 0, 1],
    [0, 0, 0, 0],
    [127, below(random, 256), below(random, 256), 1 + below(random, 254)],
  ]);
/** Some network that is not public. */
function elsewhere(random: Random): V4 {
  const byte = (): number => below(random, 256);
  return chooseOf<() => V4>(random, [
    () => [10, byte(), byte(), byte()],
    () => [100, 64 + below(random, 64), byte(), byte()],
    () => [169, 254, 169, 254],
    () => [172, 16 + below(random, 16), byte(), byte()],
    () => [192, 168, byte(), byte()],
    () => [198, 18 + below(random, 2), byte(), byte()],
    () => [203, 0, 113, byte()],
    () => [224 + below(random, 32), byte(), byte(), byte()],
  ])();
}

const numberOf = ([a, b, c, d]: V4): number => ((a * 256 + b) * 256 + c) * 256 + d;
const hexPairs = (address: V4): string => {
  const text = numberOf(address).toString(16).padStart(8, '0');
  return `${text.slice(0, 4)}:${text.slice(4)}`;
};
const spellPart = (random: Random, part: number): string =>
  chooseOf(random, [String(part), `0x${part.toString(16)}`, `0${part.toString(8)}`]);

const V4_SPELLINGS: readonly ((address: V4, random: Random) => string)[] = [
  (address) => address.join('.'),
  (address) => `${address.join('.')}.`,
  (address) => String(numberOf(address)),
  (address) => `0x${numberOf(address).toString(16)}`,
  (address) => `0${numberOf(address).toString(8)}`,
  (address, random) => address.map((part) => spellPart(random, part)).join('.'),
  ([a, b, c, d]) => `${a}.${(b * 256 + c) * 256 + d}`,
  ([a, b, c, d]) => `${a}.${b}.${c * 256 + d}`,
  (address) =>
    [...address.join('.')]
      .map((char) => (/\d/.test(char) ? String.fromCodePoint(0xff10 + Number(char)) : char))
      .join(''),
  (address) => address.join('.').replace(/\d/, (digit) => `%3${digit}`),
  (address) => address.join('。'),
];
const V6_SPELLINGS: readonly ((address: V4) => string)[] = [
  (address) => `[::ffff:${address.join('.')}]`,
  (address) => `[::ffff:${hexPairs(address)}]`,
  (address) => `[0:0:0:0:0:FFFF:${hexPairs(address).toUpperCase()}]`,
  (address) => `[::${address.join('.')}]`,
  (address) => `[::ffff:0:${address.join('.')}]`,
  (address) => `[64:ff9b::${address.join('.')}]`,
  (address) => `[64:ff9b:1::${hexPairs(address)}]`,
  (address) => `[2002:${hexPairs(address)}::]`,
];
const NAMES = [
  'localhost',
  'LocalHost',
  'localhost.',
  'a.localhost',
  'x.y.LOCALHOST.',
  '[::1]',
  '[0:0::1]',
  '[::]',
  '[fe80::1]',
  '[fd00::1]',
  '[fec0::1]',
  '[ff02::1]',
  hostname(),
];

/** A URL that leads to this host or another private address. */
export function spellPrivateUrl(random: Random, port: number, path: string): string {
  const address = random.next() < 0.7 ? here(random) : elsewhere(random);
  const kind = random.next();
  const host =
    kind < 0.5
      ? chooseOf(random, V4_SPELLINGS)(address, random)
      : kind < 0.75
        ? chooseOf(random, V6_SPELLINGS)(address)
        : chooseOf(random, NAMES);
  const scheme = chooseOf(random, ['http://', 'http://', 'HTTP://', 'http:\\\\', 'http:/', 'http:']);
  const user = random.next() < 0.05 ? 'user:secret@' : '';
  return `${scheme}${user}${host}:${port}${path}`;
}

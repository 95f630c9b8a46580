// All files of a server's state, by kind, also those outside the data folder, and damage at random places of one.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '../../src/core/random.ts';
import { type Corruption, CORRUPTIONS } from '../../test/support/state-corruptions.ts';

const KINDS: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ['API key', /\/api-keys\/[^/]+\.json$/],
  ['database', /\/memory\.db$/],
  ['write-ahead log', /\/memory\.db-wal$/],
  ['memory header', /\/memory\.json$/],
  ['memory tenant key', /\/memory\/keys\//],
  ['owner lock', /\/owner\.lock$/],
  ['vector index', /\/vectors\//],
  ['word index', /\/lexical|\/words\//],
  ['audit segment', /\/archive\//],
  ['master key', /\/master\.key$/],
  ['server entry', /\/state\/servers\//],
  ['KV page', /\.page$/],
  ['spill header', /\/spill\.json$/],
  ['spill record', /\/spill\/(?:records\.json|sessions|records)/],
  ['spill tenant key', /\/spill\/keys\//],
  ['learned state', /\/learning\/|\/learned\//],
  ['cache', /\/cache\//],
];

export interface StateFile {
  readonly kind: string;
  readonly path: string;
}

/** A file of no known kind has the kind `other`: a new kind of file is damaged too. */
export const kindOf = (path: string): string => KINDS.find(([, pattern]) => pattern.test(path))?.[0] ?? 'other';

/** All files below the folders. */
export function listStateFiles(folders: readonly string[]): StateFile[] {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
      .map((path) => ({ kind: kindOf(path), path })),
  );
}

/** Damage at a place that depends on chance: `CORRUPTIONS` always hits the same ones. */
const atRandomPage = (name: string, random: Random, contentOf: () => number): Corruption => ({
  name,
  damage(bytes) {
    const length = Math.min(4096, bytes.length);
    const start = Math.floor((random.next() * (bytes.length - length)) / 4096) * 4096;
    return length === 0
      ? null
      : Uint8Array.from(bytes, (byte, i) => (i >= start && i < start + length ? contentOf() : byte));
  },
});

export const corruptionsOf = (random: Random): readonly Corruption[] => [
  ...CORRUPTIONS,
  atRandomPage('page of noise', random, () => Math.floor(random.next() * 256)),
  atRandomPage('zeroed page', random, () => 0),
  {
    name: 'flipped bit',
    damage(bytes) {
      const changed = Uint8Array.from(bytes);
      if (bytes.length > 0) changed[Math.floor(random.next() * bytes.length)]! ^= 1 << Math.floor(random.next() * 8);
      return bytes.length === 0 ? null : changed;
    },
  },
];

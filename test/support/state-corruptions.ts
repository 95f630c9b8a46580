// Damage to the files of a data folder, one file at a time, and an oracle that knows every acknowledged write.
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** What a state file is for. `derived` files are rebuilt, all others hold something that exists nowhere else. */
export type StateKind = 'database' | 'log' | 'head' | 'header' | 'tenant-key' | 'lock' | 'archive' | 'api-key' | 'master-key' | 'derived'; // prettier-ignore

export interface StateFile {
  readonly kind: StateKind;
  readonly path: string;
}

const KINDS: readonly (readonly [RegExp, StateKind])[] = [
  [/^memory\/memory\.db$/, 'database'],
  [/^memory\/memory\.db-wal$/, 'log'],
  [/^memory\/memory\.head$/, 'head'],
  [/^memory\/memory\.json(\.copy)?$/, 'header'],
  [/^memory\/keys\/[0-9a-f]+\.key$/, 'tenant-key'],
  [/^memory\/owner\.lock$/, 'lock'],
  [/^memory\/archive\//, 'archive'],
  [/^api-keys\/[^/]+$/, 'api-key'],
  [/^memory\/(vectors|lexical)\//, 'derived'],
];

/** The state files of a data folder, in the order of their names; temporary and quarantined files are left out. */
export function findStateFiles(data: string): StateFile[] {
  return readdirSync(data, { recursive: true, encoding: 'utf8' })
    .sort()
    .flatMap((name) => {
      const path = join(data, name);
      const kind = KINDS.find(([pattern]) => pattern.test(relative(data, path).replaceAll('\\', '/')))?.[1];
      return kind === undefined || !statSync(path).isFile() ? [] : [{ kind, path }];
    });
}

export interface Corruption {
  readonly name: string;
  /** Null: it does not apply, for example because there is no older copy. */
  damage(bytes: Uint8Array, older: Uint8Array | null): Uint8Array | 'removed' | null;
}

const flipAt = (share: number): Corruption => ({
  name: `a byte flipped at ${Math.round(share * 100)} %`,
  damage(bytes) {
    if (bytes.length === 0) return null;
    const changed = Uint8Array.from(bytes);
    changed[Math.min(bytes.length - 1, Math.floor(share * bytes.length))]! ^= 0x55;
    return changed;
  },
});

const cutAt = (share: number): Corruption => ({
  name: `cut to ${Math.round(share * 100)} %`,
  damage: (bytes) => (bytes.length < 2 ? null : bytes.slice(0, Math.floor(share * bytes.length))),
});

/** Every corruption of one file. */
export const CORRUPTIONS: readonly Corruption[] = [
  { name: 'emptied', damage: (bytes) => (bytes.length === 0 ? null : new Uint8Array(0)) },
  { name: 'removed', damage: () => 'removed' },
  cutAt(0.5),
  cutAt(0.9),
  flipAt(0),
  flipAt(0.3),
  flipAt(0.6),
  flipAt(1),
  { name: 'replaced by zeros', damage: (bytes) => (bytes.length === 0 ? null : new Uint8Array(bytes.length)) },
  {
    name: 'replaced by an older copy',
    damage: (bytes, older) => (older === null || Buffer.from(older).equals(Buffer.from(bytes)) ? null : older),
  },
];

/** Applies it to the file; false: it does not apply. */
export function corruptFile({ path }: StateFile, corruption: Corruption, olderPath: string | null): boolean {
  const older = olderPath !== null && existsSync(olderPath) ? readFileSync(olderPath) : null;
  const damage = corruption.damage(readFileSync(path), older);
  if (damage === null) return false;
  if (damage === 'removed') rmSync(path);
  else writeFileSync(path, damage);
  return true;
}

/** A copy of a folder that can be put back, so that each corruption starts from the same state. */
export function takeSnapshot(folder: string): { readonly copy: string; restore(): void; dispose(): void } {
  const copy = mkdtempSync(join(tmpdir(), 'ruvllm-state-'));
  cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
  return {
    copy,
    restore() {
      rmSync(folder, { recursive: true, force: true });
      cpSync(copy, folder, { recursive: true, preserveTimestamps: true });
    },
    dispose: () => rmSync(copy, { recursive: true, force: true }),
  };
}

/** The place of a file in another copy of its folder. */
export const counterpartOf = ({ path }: StateFile, folder: string, copy: string): string => join(copy, relative(folder, path)); // prettier-ignore

/** What a store or server answered for one acknowledged text: its text, `absent` (404), or `failed` (an error). */
export type Answer = { readonly text: string } | 'absent' | 'failed';

export interface StateVerdict {
  /** Acknowledged writes that are gone although nothing says so. */
  readonly numSilentlyLost: number;
  /** Answers with another text than the acknowledged one. */
  readonly numWrong: number;
  /** Whether other requests were answered. */
  readonly servesRest: boolean;
  readonly isDegraded: boolean;
}

export interface StateOracle {
  /** Notes a write that was acknowledged. */
  acknowledge(id: string, text: string): void;
  /** Compares what is answered now with all acknowledged writes. */
  judge(state: {
    read(id: string): Promise<Answer>;
    isDegraded(): Promise<boolean>;
    servesRest(): Promise<boolean>;
  }): Promise<StateVerdict>;
}

export function createStateOracle(): StateOracle {
  const acknowledged = new Map<string, string>();
  return {
    acknowledge: (id, text) => void acknowledged.set(id, text),
    async judge({ read, isDegraded, servesRest }) {
      let numAbsent = 0;
      let numWrong = 0;
      for (const [id, text] of acknowledged) {
        const answer = await read(id);
        if (answer === 'absent') numAbsent++;
        else if (answer !== 'failed' && answer.text !== text) numWrong++;
      }
      const degraded = await isDegraded();
      return {
        numSilentlyLost: degraded ? 0 : numAbsent,
        numWrong,
        servesRest: await servesRest(),
        isDegraded: degraded,
      };
    },
  };
}

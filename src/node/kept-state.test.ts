import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { defaultMasterKeyPath, openKeptState } from './kept-state.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ruvllm-kept-'));
  vi.stubEnv('RUVLLM_STATE_DIR', join(root, 'state'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});

const key = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);
const open = (masterKey: Uint8Array | null, warnings: string[] = []) =>
  openKeptState({ folder: join(root, 'kept'), limitBytes: 5, masterKey }, (message) => warnings.push(message));

test('finds sessions again with the same key, by tenant and model', () => {
  const { spill, openSessions } = open(key(1));
  expect(spill).toEqual({ folder: join(root, 'kept'), limitBytes: 5, masterKey: key(1) });
  const sessions = openSessions('model')!;
  sessions.put('t', 's', Uint8Array.of(1, 2));
  const later = open(key(1));
  expect([...later.openSessions('model')!.get('t', 's')!]).toEqual([1, 2]);
  expect(later.openSessions('model')!.list('t')).toEqual(['s']);
  expect(later.openSessions('model')!.get('u', 's')).toBeNull();
  expect(later.openSessions('other')!.get('t', 's')).toBeNull();
  expect(later.openSessions('other')!.delete('t', 's')).toBe(false);
  expect(later.openSessions('model')!.delete('t', 's')).toBe(true);
  expect(sessions.get('t', 's')).toBeNull();
});

test('creates one key per user by default, readable only by them', () => {
  const { masterKey } = open(null).spill;
  expect(masterKey).toHaveLength(32);
  expect(defaultMasterKeyPath()).toBe(join(root, 'state', 'master.key'));
  expect(new Uint8Array(readFileSync(defaultMasterKeyPath()))).toEqual(new Uint8Array(masterKey));
  if (process.platform !== 'win32') expect(statSync(defaultMasterKeyPath()).mode & 0o777).toBe(0o600);
  expect(open(null).spill.masterKey).toEqual(masterKey);
});

test('reports a folder with another key, does not touch it, and stores no sessions', () => {
  open(key(1)).openSessions('model')!.put('t', 's', Uint8Array.of(1));
  const warnings: string[] = [];
  expect(open(key(2), warnings).openSessions('model')).toBeNull();
  expect(warnings).toEqual([expect.stringContaining('sessions are not stored: ')]);
  expect(open(key(1)).openSessions('model')!.get('t', 's')).toEqual(Buffer.of(1));
});

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { defaultMasterKeyPath, keptStateProblem, openKeptState } from './kept-state.ts';

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
  const { masterKey } = open(null).spill!;
  expect(masterKey).toHaveLength(32);
  expect(defaultMasterKeyPath()).toBe(join(root, 'state', 'master.key'));
  expect(new Uint8Array(readFileSync(defaultMasterKeyPath()))).toEqual(new Uint8Array(masterKey));
  if (process.platform !== 'win32') expect(statSync(defaultMasterKeyPath()).mode & 0o777).toBe(0o600);
  expect(open(null).spill!.masterKey).toEqual(masterKey);
});

test('reports a folder with another key, does not touch it, and stores no sessions', () => {
  open(key(1)).openSessions('model')!.put('t', 's', Uint8Array.of(1));
  const warnings: string[] = [];
  expect(open(key(2), warnings).openSessions('model')).toBeNull();
  expect(warnings).toEqual([expect.stringMatching(/^KV pages and sessions are not stored: .*another master key$/)]);
  expect(keptStateProblem(join(root, 'kept'))).toBe(warnings[0]);
  expect(keptStateProblem(join(root, 'of another server'))).toBeNull();
  expect(open(key(1)).openSessions('model')!.get('t', 's')).toEqual(Buffer.of(1));
});

test('a damaged or unreadable key file stores nothing, reports it and changes nothing', () => {
  open(null).openSessions('model')!.put('t', 's', Uint8Array.of(1));
  const whole = readFileSync(defaultMasterKeyPath());
  const folder = join(root, 'kept');
  const before = readdirSync(folder, { recursive: true });
  writeFileSync(defaultMasterKeyPath(), whole.subarray(0, 16));
  const warnings: string[] = [];
  const { spill, openSessions } = open(null, warnings);
  expect([spill, openSessions('model')]).toEqual([null, null]);
  expect(warnings).toEqual([expect.stringContaining('has 16 bytes; 32 are required')]);
  expect(keptStateProblem(join(root, 'kept'))).toBe(warnings[0]);
  expect(readFileSync(defaultMasterKeyPath())).toEqual(whole.subarray(0, 16));
  expect(readdirSync(folder, { recursive: true })).toEqual(before);

  writeFileSync(defaultMasterKeyPath(), whole);
  expect(open(null).openSessions('model')!.get('t', 's')).toEqual(Buffer.of(1));
  expect(keptStateProblem(join(root, 'kept'))).toBeNull();
});

test('a missing key beside stored pages is replaced by a new one, which reads nothing of them', () => {
  open(null).openSessions('model')!.put('t', 's', Uint8Array.of(1));
  const whole = readFileSync(defaultMasterKeyPath());
  rmSync(defaultMasterKeyPath());
  const warnings: string[] = [];
  expect(open(null, warnings).openSessions('model')).toBeNull();
  expect(warnings).toEqual([expect.stringContaining('another master key')]);
  expect(readFileSync(defaultMasterKeyPath()).equals(whole)).toBe(false);
  writeFileSync(defaultMasterKeyPath(), whole);
  expect(open(null).openSessions('model')!.get('t', 's')).toEqual(Buffer.of(1));
});

test('reports a damaged header of the pages and stores sessions all the same', () => {
  mkdirSync(join(root, 'kept'));
  writeFileSync(join(root, 'kept', 'spill.json'), '{');
  const warnings: string[] = [];
  expect(open(null, warnings).openSessions('model')).not.toBeNull();
  expect(warnings).toEqual([`KV pages are not stored: ${join(root, 'kept', 'spill.json')} is not a RuvLLM header`]);
  expect(keptStateProblem(join(root, 'kept'))).toBe(warnings[0]);
});

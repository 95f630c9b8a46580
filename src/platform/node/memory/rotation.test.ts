import * as nodeFiles from 'node:fs';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import type { Files } from '../sealing/atomic-files.ts';
import type { MasterSource } from '../sealing/master-source.ts';
import { CHEAP_SCRYPT, contentsOf, hashesOf, masterKey, newFolder, openAt } from './memory-setup.contract.ts';
import { rotateMasterKey } from '../../../node/memory/open-memory-store.ts';

const newKey = { key: new Uint8Array(32).fill(99) };
const TENANTS = ['alpha', 'beta', 'gamma'];

async function fill(folder: string): Promise<void> {
  const { store } = openAt(folder);
  await store.put(TENANTS.map((tenant) => recordOf(1, { tenant, body: tenant, fields: { source: 'word' } })));
  await store.close();
}

async function expectOpens(folder: string, key: MasterSource): Promise<void> {
  const { store } = openAt(folder, { masterKey: key });
  const filter = { fields: [{ field: 'source', is: '=', value: 'word' }] } as const;
  for (const tenant of TENANTS) {
    expect((await store.get(tenant, [idOf(1)]))[0]).toMatchObject({ tenant, body: tenant });
    expect(await store.count(tenant, { kinds: ['fact'], filter })).toBe(1);
  }
  await store.checkIntegrity();
  await store.close();
}

const canOpen = async (folder: string, key: MasterSource): Promise<boolean> => {
  try {
    await openAt(folder, { masterKey: key }).store.close();
    return true;
  } catch {
    return false;
  }
};

describe('another master key', () => {
  test('[MS23] the new key opens everything, the old one nothing, and every key file is wrapped again', async () => {
    const folder = newFolder();
    await fill(folder);
    const before = contentsOf(folder);
    rotateMasterKey({ folder, from: masterKey, to: newKey });
    expect(() => openAt(folder)).toThrow('is encrypted with another master key');
    const after = contentsOf(folder);
    expect([...after.keys()]).toEqual([...before.keys()]);
    for (const [name, bytes] of after) expect([name, bytes.equals(before.get(name)!)]).toEqual([name, ['memory.db', 'memory.head'].includes(name)]); // prettier-ignore
    await expectOpens(folder, newKey);
  });

  test('[MS23] between key and passphrase, there and back', async () => {
    const folder = newFolder();
    await fill(folder);
    const steps: MasterSource[] = [masterKey, { passphrase: 'one' }, { passphrase: 'two' }, masterKey];
    for (let i = 1; i < steps.length; i++) {
      rotateMasterKey({ folder, from: steps[i - 1]!, to: steps[i]!, scryptN: CHEAP_SCRYPT });
      expect(await canOpen(folder, steps[i - 1]!)).toBe(false);
      await expectOpens(folder, steps[i]!);
    }
  });

  test('[MS23] the wrong old key changes nothing, a new one that is none neither', async () => {
    const folder = newFolder();
    await fill(folder);
    const before = hashesOf(folder);
    expect(() => rotateMasterKey({ folder, from: newKey, to: masterKey })).toThrow('another master key');
    expect(() => rotateMasterKey({ folder, from: masterKey, to: { key: new Uint8Array(5) } })).toThrow('32 bytes');
    expect(() => rotateMasterKey({ folder: newFolder(), from: masterKey, to: newKey })).toThrow('there is no memory');
    expect(hashesOf(folder)).toEqual(before);
    await expectOpens(folder, masterKey);
  });

  test('[MS23] an open store keeps working, with old and new tenants', async () => {
    const folder = newFolder();
    await fill(folder);
    const memory = openAt(folder);
    const writing = memory.store.put([recordOf(2)]);
    expect(() => rotateMasterKey({ folder, from: masterKey, to: newKey })).toThrow('is in use');
    memory.rotateMasterKey(newKey);
    await writing;
    await memory.store.put([recordOf(1, { tenant: 'delta' }), recordOf(3)]);
    await memory.store.close();
    await expectOpens(folder, newKey);
    const { store } = openAt(folder, { masterKey: newKey });
    expect((await store.get('delta', [idOf(1)]))[0]).not.toBeNull();
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(3);
  });

  test('[MS23] killed or failing at any call, one of the two keys opens everything, and the next opening finishes', async () => {
    // Each round lets one call more succeed, and fails all later ones: as if the process had ended there.
    let numSteps = 0;
    for (let allowed = 0; ; allowed++) {
      const folder = newFolder();
      await fill(folder);
      let left = allowed;
      const stop = <A extends unknown[], R>(call: (...args: A) => R) =>
        ((...args: A): R => {
          if (left-- <= 0) throw Object.assign(new Error('stopped'), { code: 'EIO' });
          return call(...args);
        }) as never;
      const files: Files = {
        ...nodeFiles,
        renameSync: stop(nodeFiles.renameSync),
        writevSync: stop(nodeFiles.writevSync),
        fsyncSync: stop(nodeFiles.fsyncSync),
        openSync: stop(nodeFiles.openSync as (...args: unknown[]) => number),
      };
      let isDone = true;
      try {
        rotateMasterKey({ folder, from: masterKey, to: newKey, files });
      } catch (error) {
        expect(error).toMatchObject({ name: 'RuvLLMError' });
        isDone = false;
      }
      const isOld = await canOpen(folder, masterKey);
      expect(await canOpen(folder, newKey)).toBe(!isOld);
      if (isDone) expect(isOld).toBe(false);
      await expectOpens(folder, isOld ? masterKey : newKey);
      // Nothing of the old wrapping is left once it was opened.
      const header = JSON.parse(readFileSync(join(folder, 'memory.json'), 'utf8')) as { secrets: string };
      expect(Buffer.from(header.secrets, 'base64')).toHaveLength(64 + 40);
      if (isDone) break;
      numSteps = allowed;
    }
    expect(numSteps).toBeGreaterThan(20);
  });
});

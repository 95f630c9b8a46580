import { describe, expect, test } from 'vitest';
import { idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import { contentsOf, DRIVERS, masterKey, newFolder, openAt } from './memory-setup.contract.ts';
import { AUDIT_KIND } from '../../../memory/types.ts';

const CANARIES = {
  body: 'canary-in-the-body',
  key: 'canary-as-a-key',
  word: 'canary-in-a-word',
  session: 'canary-of-a-session',
  tenant: 'canary-of-a-tenant',
  relation: 'canary-of-a-relation',
  space: 'canary-of-a-space',
};
/** Floats whose bytes spell something: those that end with a question mark are near 1. */
const vector = new Float32Array(new TextEncoder().encode('can?ary?vec?tor?').buffer);

const needles = (): Buffer[] => {
  const texts = Object.values(CANARIES);
  return [
    ...texts.flatMap((text) => [Buffer.from(text), Buffer.from(text, 'utf16le'), Buffer.from(Buffer.from(text).toString('hex')), Buffer.from(Buffer.from(text).toString('base64').slice(0, 12))]), // prettier-ignore
    Buffer.from('canary'),
    Buffer.from(vector.buffer),
    Buffer.from(masterKey.key),
  ];
};

function expectNothingFound(folder: string): number {
  let sizeBytes = 0;
  for (const [name, bytes] of contentsOf(folder)) {
    for (const needle of needles()) {
      expect([name, needle.toString('latin1'), bytes.indexOf(needle)]).toEqual([name, needle.toString('latin1'), -1]);
      expect(name).not.toContain(needle.toString('latin1'));
    }
    sizeBytes += bytes.length;
  }
  return sizeBytes;
}

describe.each(DRIVERS)('on disk (%s)', (driver) => {
  test('[MS22] nothing that was planted is found in any byte of any file', async () => {
    const folder = newFolder();
    const { store } = openAt(folder, { driver });
    const records = [1, 2, 3].map((i) =>
      recordOf(i, {
        tenant: CANARIES.tenant,
        kind: AUDIT_KIND,
        fields: { sessionId: CANARIES.session, model: CANARIES.word, quality: 0.5 },
        body: { [CANARIES.key]: [CANARIES.body] },
        vector,
        space: CANARIES.space,
      }),
    );
    await store.put(records);
    await store.putEdges(CANARIES.tenant, [{ from: idOf(1), to: idOf(2), relation: CANARIES.relation, weight: 1, confidence: 1 }]); // prettier-ignore
    const near = await store.nearest(CANARIES.tenant, { kinds: [AUDIT_KIND], vector, space: CANARIES.space, k: 3 });
    expect(near[0]!.record.body).toEqual({ [CANARIES.key]: [CANARIES.body] });
    expect([...contentsOf(folder).keys()]).toContain('memory.db-wal');
    expect(expectNothingFound(folder)).toBeGreaterThan(10_000);
    await store.delete(CANARIES.tenant, [idOf(1)]);
    await store.put([{ ...records[1]!, body: 'something else' }]);
    expectNothingFound(folder);
    await store.eraseTenant(CANARIES.tenant);
    expectNothingFound(folder);
    await store.close();
    expectNothingFound(folder);
  });

  test('[MS22] the search for plain text finds unsealed text', () => {
    expect(Buffer.from(JSON.stringify(CANARIES)).indexOf(needles()[0]!)).toBeGreaterThan(0);
    expect(vector.every(Number.isFinite)).toBe(true);
  });

  test('[MS22] an equal word looks another in another field and for another tenant', async () => {
    const folder = newFolder();
    const { store } = openAt(folder, { driver });
    const fields = { sessionId: 'same', model: 'same' };
    await store.put([
      recordOf(1, { kind: AUDIT_KIND, fields }),
      recordOf(1, { kind: AUDIT_KIND, tenant: 'beta', fields }),
    ]);
    await store.close();
    const text = contentsOf(folder).get('memory.db')!.toString('latin1');
    const hashes = [...text.matchAll(/\{"model":"([0-9a-f]{32})","sessionId":"([0-9a-f]{32})"\}/g)].flatMap(([, a, b]) => [a, b]); // prettier-ignore
    expect(hashes).toHaveLength(4);
    expect(new Set(hashes).size).toBe(4);
  });
});

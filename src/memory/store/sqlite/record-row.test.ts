import { expect, test } from 'vitest';
import { RECORD_KINDS } from '../../types.ts';
import type { CheckedPut } from '../check-put.ts';
import type { TenantSealer } from '../sealer.ts';
import { createRowOpener, type RowHead, sealRecord } from './record-row.ts';

const open: TenantSealer = { seal: (_, plain) => plain, unseal: (_, sealed) => sealed, nameOf: (_, text) => text };

test.each([0, 1, 768])('[MS33] counts the text of a record, not its %d floats', (numFloats) => {
  const vector = numFloats === 0 ? null : new Float32Array(numFloats).fill(0.5);
  const space = numFloats === 0 ? null : 'é';
  const put = { fields: { source: 'x' }, bodyText: '{"text":"ü"}', space, vector } as unknown as CheckedPut;
  const sealed = sealRecord(put, {} as RowHead, open);
  const row = { id: '0190000000007000800000000000002a', head: '[1,5,6,null,2,9,null,"{}"]', sealed };
  const text = `{"fields":{"source":"x"},"space":${JSON.stringify(space)},"body":{"text":"ü"}}`;
  for (const withVector of [false, true]) {
    const { record, textBytes } = createRowOpener('t', { tenant: 'acme', sealer: open, withVector })(row);
    expect(textBytes).toBe(new TextEncoder().encode(text).length);
    expect(record).toEqual({
      id: '01900000-0000-7000-8000-00000000002a',
      tenant: 'acme',
      kind: RECORD_KINDS[0],
      createdMs: 5,
      updatedMs: 6,
      expiresMs: null,
      version: 2,
      fields: { source: 'x' },
      body: { text: 'ü' },
      vector: withVector ? vector : null,
      space,
    });
  }
});

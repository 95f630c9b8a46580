import { z } from 'zod';
import { name, text } from '../schemas/primitives.ts';
import { plainRequestId } from '../schemas/trajectory.ts';
import { defineOperation, refuseInput, type MemoryOperation } from './operation.ts';

const erase = defineOperation({
  name: 'tenants.erase',
  summary:
    'Erases a tenant and its key, or one of its users or requests, everywhere, and proves it. `confirm` must name the tenant.',
  input: z.strictObject({ confirm: text(1024, 1), userId: name.optional(), requestId: name.optional() }),
  async run(memory, tenant, { confirm, userId = null, requestId = null }) {
    if (confirm !== tenant) {
      throw refuseInput(`confirm must be the name of the tenant to erase, ${JSON.stringify(tenant)}`, 'confirm');
    }
    if (userId !== null && requestId !== null) throw refuseInput('either userId or requestId is possible', 'requestId');
    const id = requestId === null ? null : plainRequestId(requestId);
    return { ...(await memory.erase({ tenant, userId, requestId: id })), isErased: true };
  },
});

/** 32 bytes in Base64, with or without padding. */
const keyText = z.string().regex(/^[A-Za-z0-9+/]{43}=?$/, 'must be 32 bytes in Base64');

const rotateKey = defineOperation({
  name: 'memory.rotate-key',
  summary: 'Replaces the master key of the running memory; the old key no longer opens it.',
  input: z.strictObject({ key: keyText.optional(), passphrase: text(1024, 1).optional() }),
  async run(memory, _tenant, { key, passphrase }) {
    if ((key === undefined) === (passphrase === undefined)) throw refuseInput('either key or passphrase is required', 'key'); // prettier-ignore
    await memory.rotateKey(key === undefined ? { passphrase: passphrase! } : { key: bytesOf(key) });
    return { isRotated: true };
  },
});

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

export const tenantOperations: readonly MemoryOperation[] = [erase, rotateKey];

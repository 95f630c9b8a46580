import { z } from 'zod';
import { text } from '../schemas/primitives.ts';
import { defineOperation, refuseInput, type MemoryOperation } from './operation.ts';

const erase = defineOperation({
  name: 'tenants.erase',
  summary: 'Forgets a tenant for good: its key is destroyed. `confirm` must name the tenant.',
  scope: 'admin',
  input: z.strictObject({ confirm: text(1024, 1) }),
  async run(memory, tenant, { confirm }) {
    if (confirm !== tenant) {
      throw refuseInput(`confirm must be the name of the tenant that is erased, ${JSON.stringify(tenant)}`, 'confirm');
    }
    await memory.eraseTenant(tenant);
    return { tenant, isErased: true };
  },
});

export const tenantOperations: readonly MemoryOperation[] = [erase];

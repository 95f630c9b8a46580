import { RuvLLMError } from '../core/errors.ts';

/** The tenant of the memory's internal state; no API key can have it. */
export const STATE_TENANT = 'ruvllm';

/** Refuses the memory's own tenant. */
export function checkTenantIsCallers(tenant: string): void {
  if (tenant !== STATE_TENANT) return;
  throw new RuvLLMError('invalid_option', `the tenant "${tenant}" is reserved for the memory`, {
    data: { option: 'tenant' },
  });
}

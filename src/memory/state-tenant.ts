import { RuvLLMError } from '../core/errors.ts';

/** The tenant that holds what the memory knows of itself; no API key can have it. */
export const STATE_TENANT = 'ruvllm';

/** Refuses the memory's own tenant, which a caller could take apart or erase. */
export function checkTenantIsCallers(tenant: string): void {
  if (tenant !== STATE_TENANT) return;
  throw new RuvLLMError('invalid_option', `the tenant "${tenant}" is the memory's own`, { data: { option: 'tenant' } });
}
